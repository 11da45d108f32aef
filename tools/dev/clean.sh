#!/usr/bin/env bash
# clean.sh — removes the build folders and the logs, not ./data.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
rm -rf "$root"/build "$root"/build-*/
