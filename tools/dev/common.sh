# common.sh — sourced by the scripts of this folder: where the project is, and messages.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf '%s\n' "$*" >&2; }
die() { say "dev: $*"; exit 1; }
setup() { "$root/tools/dev/setup.sh" "$@"; }
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# The sum of what `times` has written, lines of 0m1.234s 0m0.567s: the processor seconds of a shell and of the processes that it has waited for.
processor_seconds() { tr ms '  ' | awk '{ sum += $1 * 60 + $2 + $3 * 60 + $4 } END { printf "%.1f", sum }'; }
