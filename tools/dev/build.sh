#!/usr/bin/env bash
# build.sh — the optimised binary, build/tesela.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
[ $# -eq 0 ] || die "build takes no arguments, and was given: $*"
setup build
build_release tesela
say "build/tesela"
