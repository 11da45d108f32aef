#!/usr/bin/env bash
# example.sh NAME [FLAGS] — builds the server, and runs one of examples/.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
name=${1:-}
script=$root/examples/${name%.js}.js
[ -n "$name" ] && [[ ! $name =~ ^(lab|draw)$ ]] && [ -f "$script" ] || die "which example? $(cd "$root/examples" && ls -- *.js | sed -E 's/\.js$//;/^(lab|draw)$/d' | tr '\n' ' ')"
setup build example
build_release tesela
TESELA_BIN=${TESELA_BIN:-$root/build/tesela} exec node "$script" "${@:2}"
