#!/usr/bin/env bash
# fuzz-target.sh NAME SECS — runs one fuzz target that is built. What it learns goes to build-asan/corpus, what it finds to build-asan/found.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
name=$1 seconds=$2 build=$root/build-asan
dictionary=$root/tests/fuzz/$name.dict flags=()
mkdir -p "$build/corpus/$name" "$build/found"
[ ! -f "$dictionary" ] || flags=(-dict="$dictionary")
"$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/found/$name-" "${flags[@]}" "$build/corpus/$name" "$root/tests/fuzz/corpus/$name" ||
    die "$name failed; the input is in build-asan/found. Again: build-asan/tests/fuzz/fuzz_$name build-asan/found/$name-..."
