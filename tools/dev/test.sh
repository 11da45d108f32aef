#!/usr/bin/env bash
# test.sh [STEP...] — runs the steps that CI runs, or those named, one after the other. `long` stands for all steps, the long ones too.
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

# Runs one step; sets step_rc, step_ok, step_bad and step_seconds. Not to be called as a condition: bash would forget `set -e` within.
run_step() {
    local name=$1 log=$root/build-logs/$1.log start=$EPOCHREALTIME
    set +e
    if [ -n "${TESELA_VERBOSE:-}" ]; then
        (set -euo pipefail; "step_$name") 2>&1 | tee "$log"
        step_rc=${PIPESTATUS[0]}
    else
        (set -euo pipefail; "step_$name") >"$log" 2>&1
        step_rc=$?
    fi
    set -e
    step_seconds=$(seconds_since "$start")
    read -r step_ok step_bad < <("$root/tools/dev/count-tests" "$log")
    # A step that counts nothing is one test.
    if [ "$step_rc" -eq 0 ]; then
        [ "$step_ok" -gt 0 ] || step_ok=1
    else
        [ "$step_bad" -gt 0 ] || step_bad=1
    fi
}

report_step() {
    if [ "$step_rc" -eq 0 ]; then
        printf 'ok    %5d passed  %8s s\n' "$step_ok" "$step_seconds"
    else
        printf 'FAIL  %5d failed  %8s s\n' "$step_bad" "$step_seconds"
        tail -n 200 "$root/build-logs/$1.log" | sed 's/^/    /'
    fi
}

run_steps() {
    local name passed=0 failed=0 failures=() start=$EPOCHREALTIME times=$root/build-logs/times.txt
    mkdir -p "$root/build-logs"
    : >"$times"
    for name in "$@"; do
        printf '%-10s ' "$name"
        run_step "$name"
        report_step "$name"
        [ "$step_rc" -eq 0 ] || failures+=("$name")
        echo "$name $step_seconds" >>"$times"
        passed=$((passed + step_ok)) failed=$((failed + step_bad))
    done
    echo
    "$root/tools/dev/compare-times" "$recorded" "$times"
    [ ${#failures[@]} -eq 0 ] || echo "failed: ${failures[*]} (logs in build-logs/)"
    echo "$passed tests passed, $failed failed, $# steps, $(seconds_since "$start") s"
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
