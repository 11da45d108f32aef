#!/usr/bin/env bash
# bench.sh [FLAGS] — builds the server and the tools of bench/, then bench/run with these flags.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
setup bench sdk
# The libraries to compare with are optional to meson: it looks for them again in a build folder that was set up without this command.
[ -f "$root/build/.bench" ] || rm -f "$root/build/build.ninja"
build_release tesela bench
touch "$root/build/.bench"
exec "$root/bench/run" "$@"
