#!/usr/bin/env bash
# test.sh [STEP...] — runs the steps that CI runs, or those named, one after the other; some at the same time as the step before
# them (`beside` of steps.sh). `long` stands for all steps, the long ones too.
#
#   test.sh --list     the steps, a line each
#   test.sh --record   runs them, and writes their times to tests/step-times.txt if all passed
#
# A step's output goes to build-logs/STEP.log and is shown when it fails; TESELA_VERBOSE=1 shows it as it comes.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
source "$root/tools/dev/sdk-files.sh"
source "$root/tools/dev/steps.sh"
recorded=$root/tests/step-times.txt

list() {
    local name
    echo 'Steps of ./dev test, in their order:'
    for name in "${steps[@]}"; do printf '  %-10s %s\n' "$name" "${about[$name]}"; done
    echo 'By name, or all of them after these by `./dev test long`:'
    for name in "${long_steps[@]}"; do printf '  %-10s %s\n' "$name" "${about[$name]}"; done
}

# Runs a step's function in this shell; at the end writes what `times` says of its processes to build-logs/STEP.times.
run_body() {
    set -euo pipefail
    trap 'times >"$root/build-logs/$name.times"' EXIT
    "step_$name"
}

# Runs one step, and writes its exit code, numbers of passed and failed tests, seconds and processor seconds to build-logs/STEP.result. Not to be
# called as a condition: bash would forget `set -e` within.
run_step() {
    local name=$1 log=$root/build-logs/$1.log start=$EPOCHREALTIME rc ok bad
    set +e
    if [ -n "${TESELA_VERBOSE:-}" ]; then
        (run_body) 2>&1 | tee "$log"
        rc=${PIPESTATUS[0]}
    else
        (run_body) >"$log" 2>&1
        rc=$?
    fi
    set -e
    read -r ok bad < <("$root/tools/dev/count-tests" "$log")
    # A step that counts nothing is one test.
    if [ "$rc" -eq 0 ]; then
        [ "$ok" -gt 0 ] || ok=1
    else
        [ "$bad" -gt 0 ] || bad=1
    fi
    [ -f "$root/build-logs/$name.times" ] || : >"$root/build-logs/$name.times" # a step that failed may not have come to its end
    echo "$rc $ok $bad $(seconds_since "$start") $(processor_seconds <"$root/build-logs/$name.times")" >"$root/build-logs/$name.result"
}

# Prints a step's result, and adds it to the sums of run_steps.
report_step() {
    local rc ok bad seconds processor
    read -r rc ok bad seconds processor <"$root/build-logs/$1.result"
    if [ "$rc" -eq 0 ]; then
        printf 'ok    %5d passed  %8s s  %8s s of processor time\n' "$ok" "$seconds" "$processor"
    else
        printf 'FAIL  %5d failed  %8s s  %8s s of processor time\n' "$bad" "$seconds" "$processor"
        tail -n 200 "$root/build-logs/$1.log" | sed 's/^/    /'
        failures+=("$1")
    fi
    echo "$1 $seconds $processor" >>"$times"
    passed=$((passed + ok)) failed=$((failed + bad))
}

# runs_beside STEP FIRST: whether the step runs at the same time as the one before it.
runs_beside() { [ -n "$1" ] && [ "${beside[$1]:-}" = "$2" ] && [ -z "${TESELA_VERBOSE:-}" ]; }

run_steps() {
    local name passed=0 failed=0 count=$# failures=() group start=$EPOCHREALTIME times=$root/build-logs/times.txt
    mkdir -p "$root/build-logs"
    : >"$times"
    while [ $# -gt 0 ]; do
        group=("$1")
        while runs_beside "${2:-}" "${group[0]}"; do group+=("$2") && shift; done
        shift
        for name in "${group[@]:1}"; do run_step "$name" & done
        for name in "${group[@]}"; do
            printf '%-10s ' "$name"
            if [ "$name" = "${group[0]}" ]; then run_step "$name"; else wait; fi
            report_step "$name"
        done
    done
    echo
    "$root/tools/dev/compare-times" "$recorded" "$times"
    [ ${#failures[@]} -eq 0 ] || echo "failed: ${failures[*]} (logs in build-logs/)"
    echo "$passed tests passed, $failed failed, $count steps, $(seconds_since "$start") s"
    [ ${#failures[@]} -eq 0 ]
}

record=
case ${1:-} in
    --list) list; exit 0 ;;
    --record) record=yes; shift ;;
esac
case $* in '') set -- "${steps[@]}" ;; long) set -- "${steps[@]}" "${long_steps[@]}" ;; esac
for name in "$@"; do
    [ -n "${about[$name]:-}" ] || die "no test step '$name'; there are: ${steps[*]} ${long_steps[*]}, and long for all of them"
done
setup test
run_steps "$@"
[ -z "$record" ] || "$root/tools/dev/compare-times" --record "$recorded" "$root/build-logs/times.txt"
