# steps.sh — sourced: the steps of ./dev test, each a line that tells and a function. tests/README.md says what runs where, and why.

declare -A about
steps=() long_steps=()
step() { steps+=("$1"); about[$1]=$2; }
long_step() { long_steps+=("$1"); about[$1]=$2; }

step includes 'includes point downward only, as docs/architecture.md draws it'
step links 'links in the documents lead somewhere'
step spelling 'words in documents, comments and messages, by codespell'
step build 'the binary that users get (gcc, optimised, LTO, hardened), and with clang everything for AddressSanitizer and ThreadSanitizer; no warnings'
step asan 'unit tests and fuzz corpora with AddressSanitizer and UndefinedBehaviorSanitizer'
step tsan 'the tests with threads, a server under load, and SDK and Gremlin files in which threads meet, with ThreadSanitizer'
step cases 'requests and answers as text, against the optimised build and with AddressSanitizer'
step query 'cases of the query language, against the second opinion and the server with AddressSanitizer, on one range and on four; random queries'
step sdk 'the official SDK against the server with AddressSanitizer, over https'
step table "the Table API with Microsoft's SDKs for JavaScript and Python and with bare requests, against the server with AddressSanitizer, over https"
step mongo "the MongoDB API with MongoDB's driver for Node.js and PyMongo, against the server with AddressSanitizer, plain and over TLS"
step cassandra "the Cassandra API with the drivers for Node.js and Python, against the server with AddressSanitizer, plain and over TLS"
step client 'the C client library against the server, both with AddressSanitizer; its threads with ThreadSanitizer; what is installed'
step gremlin "the Gremlin API with TinkerPop's drivers for Node.js, of two versions, and for Python, against the server with AddressSanitizer, plain and over TLS"
step browser "the portal in Debian's Chromium, against the server with AddressSanitizer"
step python "Microsoft's Python SDK, as Debian has it, against the server with AddressSanitizer"
step timed 'SDK files that measure time, and the examples, against the optimised build'
step fuzz 'each fuzz target with the same few thousand inputs'
step abuse 'what attackers do: more memory than there is, all turns, slow and idle connections; a victim is served'
step crash 'kill -9, lost power, full disks, strange folders: nothing acknowledged is lost'

long_step unit 'unit tests and fuzz corpora with gcc, optimised, with all their rounds and variants; the tools of bench/'
long_step variants 'the rest of the unit tests on two stores and clustered, with AddressSanitizer; with ThreadSanitizer where they have threads'
long_step sdkhttp 'the official SDK against the optimised build, over http'
long_step sdktsan 'every SDK file that sends requests at once, with ThreadSanitizer'
long_step valgrind 'the tests of the C client library, under valgrind: no error, and nothing definitely lost'
long_step fuzzlong 'each fuzz target for a minute'
long_step abuselong 'the attacks for a minute, against both builds'
long_step crashlong 'eight times as many kills'

# Steps that run at the same time as an earlier one: drivers, browsers, `timed`, `abuse` and `crash` leave processors idle, and `fuzz` runs only on
# idle ones.
declare -A beside=([mongo]=table [cassandra]=table [client]=table [gremlin]=table [browser]=table [python]=table [fuzz]=timed [crash]=abuse)

# How the sanitizers behave, in every step: what they find ends the program that has it.
export ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$root/tests/tsan.supp

# ---- tools ----

# Two more than there are processors: some tests mostly wait.
run_meson() { meson test -C "$root/$1" --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 2)) "${@:2}"; }

# Runs these functions, all of them at the same time, and shows what they said when all have ended. Not to be called as a condition.
at_once() {
    local name failed=0
    local -A pids
    for name in "$@"; do
        "$name" >"$root/build-logs/$name.log" 2>&1 &
        pids[$name]=$!
    done
    for name in "$@"; do
        wait "${pids[$name]}" || failed=1
        cat "$root/build-logs/$name.log"
    done
    [ $failed -eq 0 ]
}

# ---- source and builds ----

step_includes() { "$root/tools/check-includes"; }
step_links() { "$root/tools/check-links"; }
step_spelling() { "$root/tools/check-spelling"; }

# At the same time, since linking the optimised binary leaves a processor idle for some of its time.
step_build() { at_once build_for_users build_for_tests; }
build_for_users() { build_release tesela; }
build_for_tests() {
    build_asan all bench
    build_tsan "${tsan_targets[@]}"
}
tsan_targets=(tesela threaded bench/tesela-load)

# ---- unit tests ----

# With the default quarantine of 256 MB a fifth of the processor time goes into fresh pages; 32 MB is more than a test frees at a time.
step_asan() {
    build_asan all bench
    export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=32
    run_meson build-asan --timeout-multiplier 3 --no-suite long --no-suite client
}

step_tsan() {
    setup sdk gremlin
    build_tsan "${tsan_targets[@]}"
    run_meson build-tsan --timeout-multiplier 5 --suite threaded --no-suite long --no-suite clustered
    "$root/tests/threads/run"
    sdk_run 3 build-tsan "${sdk_threads[@]}"
    (cd "$root/tests/gremlin-driver" &&
        TESELA_BIN=$root/build-tsan/tesela TESELA_SANITIZED=1 TESELA_WAYS=plain timeout 300 node --test --test-reporter=spec ./concurrency.test.js ./atomic.test.js)
}

step_unit() {
    build_unit all bench
    run_meson build-unit --no-suite client
}

step_variants() {
    build_asan all
    run_meson build-asan --timeout-multiplier 3 --suite long
    build_tsan threaded
    run_meson build-tsan --timeout-multiplier 5 --suite threaded
}

# ---- fuzzing ----

# fuzz_all SECONDS [RUNS]: two targets at a time, each for so many seconds or inputs, on idle processors only, since a step that measures time may
# run beside it. A failing target shows its log when all are done.
fuzz_all() {
    local seconds=$1 runs=${2:-} logs=$root/build-asan/fuzz-logs names=() name failed=0
    build_asan all
    for name in "$root"/build-asan/tests/fuzz/fuzz_*; do
        if [ -f "$name" ]; then names+=("${name##*/fuzz_}"); fi
    done
    rm -rf "$logs" && mkdir -p "$logs"
    export root seconds runs logs
    # shellcheck disable=SC2016 # the shells that xargs starts expand it
    printf '%s\n' "${names[@]}" | xargs -P 2 -I NAME chrt --idle 0 bash -c '"$root/tools/dev/fuzz-target.sh" NAME "$seconds" $runs >"$logs/NAME" 2>&1 || touch "$logs/NAME.failed"'
    for name in "${names[@]}"; do
        if [ -f "$logs/$name.failed" ]; then
            failed=$((failed + 1))
            cat "$logs/$name"
        else
            printf '%-12s %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$name")"
        fi
    done
    echo "$((${#names[@]} - failed)) tests passed"
    echo "$failed tests failed"
    [ $failed -eq 0 ]
}

# What fails here failed before the change was submitted: new inputs are for fuzzlong and ./dev fuzz.
step_fuzz() { fuzz_all 60 3000; }
step_fuzzlong() { fuzz_all 60; }

# ---- requests and queries ----

step_cases() {
    setup node
    build_release tesela
    "$root/tests/cases/run"
    build_asan tesela
    TESELA_BIN=$root/build-asan/tesela "$root/tests/cases/run"
}

step_query() {
    setup sdk
    build_asan tesela
    export TESELA_BIN=$root/build-asan/tesela
    at_once query_cases query_random
}

query_cases() {
    "$root/tests/query/run" --reference
    "$root/tests/query/run"
    "$root/tests/query/run" --ranges
}

query_random() {
    "$root/tests/query/random.mjs" --seed 1 --queries 1000
    "$root/tests/query/random.mjs" --seed 1 --queries 300 --ranges
    "$root/tests/query/random.mjs" --seed 1 --queries 300 --functions
}

# ---- SDKs ----

step_sdk() {
    setup sdk
    build_asan tesela
    local names
    mapfile -t names < <(sdk_files)
    sdk_run 4 build-asan "${names[@]}"
}

step_timed() {
    setup sdk example
    build_release tesela
    local two=0
    sdk_run 3 build throughput overload scale || two=$? # the first two mostly wait
    sdk_run 1 build examples && [ $two -eq 0 ]
}

step_sdkhttp() {
    setup sdk
    build_release tesela
    local names
    mapfile -t names < <(sdk_files)
    sdk_run 3 build "${names[@]}"
}

step_sdktsan() {
    setup sdk
    build_tsan tesela
    local names
    mapfile -t names < <(sdk_files_with_threads)
    sdk_run 3 build-tsan "${names[@]}"
}

step_table() {
    setup table
    build_asan tesela
    export TESELA_BIN=$root/build-asan/tesela TESELA_SANITIZED=1
    (cd "$root/tests/table" && TESELA_SCHEMES=https timeout 600 node --test --test-reporter=spec --test-concurrency=3 ./*.test.js)
    timeout 300 "$root/tests/table/python-client"
}

# Pictures of the main views stay in build-logs/browser.
step_browser() {
    setup browser
    build_asan tesela include/libtesela.so.0.1.0
    (cd "$root/tests/browser" && TESELA_BIN=$root/build-asan/tesela TESELA_SANITIZED=1 TESELA_PICTURES=$root/build-logs/browser timeout 600 node --test --test-reporter=spec ./*.test.js)
}

step_mongo() {
    setup mongo
    build_asan tesela tests/mongo/libmongoc tests/mongo/damage
    export TESELA_BIN=$root/build-asan/tesela TESELA_SANITIZED=1
    (cd "$root/tests/mongo" && timeout 900 node --test --test-reporter=spec --test-concurrency=3 ./*.test.js)
    timeout 300 "$root/tests/mongo/pymongo-client"
}

step_cassandra() {
    setup cassandra
    build_asan tesela
    export TESELA_BIN=$root/build-asan/tesela TESELA_SANITIZED=1
    (cd "$root/tests/cassandra" && timeout 900 node --test --test-reporter=spec --test-concurrency=3 ./*.test.js)
    timeout 300 "$root/tests/cassandra/python-client"
}

# The ring's test mostly waits.
step_client() {
    build_asan client-tests
    build_tsan client-threads tesela
    run_meson build-asan --timeout-multiplier 3 --suite client
    run_meson build-tsan --timeout-multiplier 5 --suite client-threads
    build_release
    "$root/tests/client/install" "$root/build"
}

# The server and what the tests start run as they are.
step_valgrind() {
    build_unit client-tests
    run_meson build-unit --timeout-multiplier 10 --suite client \
        --wrapper 'valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite'
}

step_gremlin() {
    setup gremlin
    build_asan tesela
    (cd "$root/tests/gremlin-driver" &&
        TESELA_BIN=$root/build-asan/tesela TESELA_SANITIZED=1 timeout 600 node --test --test-reporter=spec --test-concurrency=3 ./*.test.js)
    TESELA_BIN=$root/build-asan/tesela timeout 300 "$root/tests/gremlin-driver/python/run"
}

step_python() {
    build_asan tesela
    TESELA_BIN=$root/build-asan/tesela timeout 300 "$root/tests/python/run"
}

# ---- attackers ----

# abuse_run BUILD FILE...; TESELA_ABUSE_SECONDS is how long mixed.test.js attacks.
abuse_run() {
    local build=$1 limit=$((${TESELA_ABUSE_SECONDS:-8} + 600))
    shift
    (cd "$root/tests/abuse" && TESELA_BIN=$root/$build/tesela timeout $limit node --test --test-reporter=spec --test-concurrency=1 "$@")
}

# The optimised build runs with little memory; the sanitizers look at what is done on the way.
step_abuse() {
    setup node
    build_release tesela
    build_asan tesela
    abuse_run build ./memory.test.js ./mixed.test.js
    TESELA_SANITIZED=1 abuse_run build-asan ./connections.test.js ./mixed.test.js
}

step_abuselong() {
    setup node
    build_release tesela
    build_asan tesela
    export TESELA_ABUSE_SECONDS=${TESELA_ABUSE_SECONDS:-60}
    abuse_run build ./*.test.js
    TESELA_SANITIZED=1 abuse_run build-asan ./*.test.js
}

# ---- crashes ----

# Each has a server of its own, and waits for it to start about as long as it loads it.
step_crash() {
    build_release tesela
    at_once crash_kills crash_reshape crash_faults
}

crash_kills() { timeout 500 "$root/tests/crash/run" crash; }
crash_reshape() { timeout 500 "$root/tests/crash/run" reshape bank; }
crash_faults() { timeout 500 "$root/tests/crash/run" faults; }

step_crashlong() {
    build_release tesela
    "$root/tests/crash/run" --kills 200
}
