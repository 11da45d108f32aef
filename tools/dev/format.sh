#!/usr/bin/env bash
# format.sh [--check] — clang-format on every C file; --check only tells which ones it would change.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
flags=(-i)
case ${1:-} in '') ;; --check) flags=(--dry-run -Werror) ;; *) die "format takes --check or nothing, and was given: $*" ;; esac
setup format
cd "$root" && git ls-files -z '*.c' '*.cc' '*.h' | xargs -0 clang-format "${flags[@]}"
