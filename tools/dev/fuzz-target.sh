#!/usr/bin/env bash
# fuzz-target.sh NAME SECS [RUNS] — runs one fuzz target that is built, from a random seed. What it learns goes to build-asan/corpus, what it
# finds to build-asan/found. With RUNS it tries so many inputs, always the same ones, and learns nothing.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
name=$1 seconds=$2 runs=${3:-} build=$root/build-asan input_seconds=20
dictionary=$root/tests/fuzz/$name.dict flags=() learned=$build/corpus/$name
[ ! -f "$dictionary" ] || flags=(-dict="$dictionary")
if [ -n "$runs" ]; then
    flags+=(-seed=1 -runs="$runs")
    input_seconds=120 # other steps run beside it, with higher priority
    learned=$build/corpus-empty/$name
    rm -rf "$learned"
fi
mkdir -p "$learned" "$build/found"
"$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout="$input_seconds" -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/found/$name-" "${flags[@]}" "$learned" "$root/tests/fuzz/corpus/$name" ||
    die "$name failed; the input is in build-asan/found. Again: build-asan/tests/fuzz/fuzz_$name build-asan/found/$name-..."
