#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benchmarks and writes bench/results/<name>.json, with commit, date and device in each file.
#   bench/run.sh [NAME ...]     all of them when none is named
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
cmake --build "$build" --target zellige_bench >/dev/null

names=("$@")
if ((${#names[@]} == 0)); then
  names=(catalog_manifest placement_check lowering plan_large planner_high_v50 filler_repair planner_suites planner_adversarial planner_scale
    methods_suites methods_scale table3 fig1 fig3a fig6 price_error overlap_loads checked_batches engine_overhead plan_ahead host_memory start_up)
fi
mkdir -p bench/results
for name in "${names[@]}"; do
  echo "== $name" >&2
  case "$name" in
    planner_suites | planner_adversarial | planner_scale) "$build/bench/planner_suites" "$name" "bench/results/$name.json" ;;
    start_up) python3 bench/start_up.py "$build" "bench/results/$name.json" ;;
    methods_suites | methods_scale) "$build/bench/methods_suites" "$name" "bench/results/$name.json" ;;
    fig1 | fig3a | fig6) "$build/bench/figures" "$name" "bench/results/$name.json" ;;
    *) "$build/bench/$name" "bench/results/$name.json" ;;
  esac
done
