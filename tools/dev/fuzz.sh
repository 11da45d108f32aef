#!/usr/bin/env bash
# fuzz.sh NAME [SECS] — builds the fuzz targets and runs one, until it finds something, SECS have passed or you press Ctrl-C.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
targets=$(cd "$root/tests/fuzz" && grep -l LLVMFuzzerTestOneInput -- *.c | sed 's/\.c$//;/^replay$/d' | tr '\n' ' ')
case " $targets " in *" ${1:-?} "*) ;; *) die "which fuzz target? $targets" ;; esac
setup test
build_asan "tests/fuzz/fuzz_$1"
exec "$root/tools/dev/fuzz-target.sh" "$1" "${2:-0}"
