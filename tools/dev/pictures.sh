#!/usr/bin/env bash
# pictures.sh — makes the README's pictures again: runs examples/telemetry.js against a server with its limits, and photographs the mosaic of the
# bad key and of the good one in the portal, with Chromium.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"
setup build example browser
[ -n "${TESELA_BIN:-}" ] || build_release tesela
TESELA_BIN=${TESELA_BIN:-$root/build/tesela} TESELA_PICTURES=${1:-$root/docs/images} exec node "$root/tests/browser/pictures.js"
