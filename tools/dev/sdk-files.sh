# sdk-files.sh — sourced: which files of tests/sdk (named without their .test.js) run against which build, and how many at a time.

# Those that take long, and so begin first.
sdk_long=(hostile-query query-continuation vectors sprocs partitions fairness change-feed ttl admin change-feed-versions query index-kinds hostile-scripts triggers udf keys)

# Those that measure time, and so do not run beside others.
sdk_timed=(scale examples throughput overload)

# Those in which threads of the server meet most: on one item, in batches, followers beside writers while ranges split, the sweep beside clients.
sdk_threads=(concurrency batch change-feed ttl)

# Those that may run beside others, the long ones first.
sdk_files() {
    local name
    printf '%s\n' "${sdk_long[@]}"
    for name in "$root"/tests/sdk/*.test.js; do
        name=${name##*/} name=${name%.test.js}
        case " ${sdk_long[*]} ${sdk_timed[*]} " in *" $name "*) ;; *) printf '%s\n' "$name" ;; esac
    done
}

# Every file that sends several requests at once, without the hostile ones: their heavy queries take minutes under ThreadSanitizer, and each is
# one thread's.
sdk_files_with_threads() {
    local name
    for name in $(sdk_files); do
        case $name in hostile-*) continue ;; esac
        ! grep -q 'Promise\.all' "$root/tests/sdk/$name.test.js" || printf '%s\n' "$name"
    done
}

# sdk_run JOBS BUILD NAME...: runs these files, JOBS at a time, since most of a file's time it waits. Failures are shown last.
sdk_run() {
    local jobs=$1 build=$2 logs=$root/build-logs/sdk name failed=()
    shift 2
    mkdir -p "$logs"
    for name in "$@"; do rm -f "$logs/$build-$name.passed"; done
    printf '%s\n' "$@" | xargs -P "$jobs" -n 1 "$root/tools/dev/sdk-file.sh" "$build" || true
    for name in "$@"; do
        if [ -f "$logs/$build-$name.passed" ]; then cat "$logs/$build-$name.log"; else failed+=("$name"); fi
    done
    for name in "${failed[@]}"; do
        echo "---- $build $name"
        cat "$logs/$build-$name.log"
    done
    [ ${#failed[@]} -eq 0 ]
}
