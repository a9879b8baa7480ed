#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test of a build folder and says how many there are a room, which took longest, and what was skipped.
#   tests/run.sh [BUILD=build] [more arguments for ctest]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
[[ $# -gt 0 ]] && shift
rm -rf "$build/tests/results"
mkdir -p "$build/tests/results"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"
status=$?
python3 tests/summary.py "$build/tests/results" || status=1
exit $status
