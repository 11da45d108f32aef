# common.sh — sourced by the scripts of this folder: where the project is, and messages.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf '%s\n' "$*" >&2; }
die() { say "dev: $*"; exit 1; }
setup() { "$root/tools/dev/setup.sh" "$@"; }
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
