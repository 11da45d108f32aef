#!/usr/bin/env bash
# sdk-file.sh BUILD NAME — runs tests/sdk/NAME.test.js against the server of a build folder. The output goes to build-logs/sdk/BUILD-NAME.log;
# BUILD-NAME.passed beside it is there if all passed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/sdk-files.sh"
build=$1 name=$2 start=$EPOCHREALTIME
log=$root/build-logs/sdk/$build-$name

# One scheme is enough for a build: between them they have both. The files that measure time know one build, and so have both schemes there.
case "$build ${sdk_timed[*]} " in
    *" $name "*) ;;
    build-asan*) export TESELA_SCHEMES=https ;;
    *) export TESELA_SCHEMES=http ;;
esac
case $build in *san) export TESELA_SANITIZED=1 ;; esac
# hnswlib takes the locks of its vectors in any order: they are for several writers, and ours is alone. The order of locks is not looked at.
case $name in vectors) export TSAN_OPTIONS=$TSAN_OPTIONS:detect_deadlocks=0 ;; esac

cd "$root/tests/sdk"
# The time-out is for a server or a test that hangs.
TESELA_BIN=$root/$build/tesela timeout 600 node --test --test-reporter=spec "./$name.test.js" >"$log.log" 2>&1 && touch "$log.passed"
times >"$log.times"
echo "$build $name: $(seconds_since "$start") s, $(processor_seconds <"$log.times") s of processor time" >>"$log.log"
