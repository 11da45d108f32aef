#!/usr/bin/env bash
# clean.sh — removes the build folders, the logs and the built portal, not ./data.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
rm -rf "$root"/build "$root"/build-*/ "$root"/portal/dist
