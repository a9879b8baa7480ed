#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on four CPU ranks: a mixed batch from a manifest is planned, trained on for a few steps, compared with the
# baselines and with one rank, and drawn. About a minute on two cores; latents are synthetic.
set -euo pipefail
cd "$(dirname "$0")/.."
zellige=build/zellige
demo=examples/demo
mkdir -p out

say() { printf '\n== %s\n' "$1"; }

say "the data: zellige catalog $demo/manifest.csv --rules $demo/rules.toml"
$zellige catalog $demo/manifest.csv --rules $demo/rules.toml --show-skipped 3

say "training: zellige train $demo/train.toml"
$zellige train $demo/train.toml --parity --compare zellige,naive,adaptiveload,usp,knapformer \
  --log out/demo.jsonl --report out/demo.html
