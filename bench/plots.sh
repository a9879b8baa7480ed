#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws docs/images/*.svg from bench/results/*.json, in a virtual environment of its own (build/plots).
#   bench/plots.sh [NAME ...]     all of them when none is named
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${BUILD:-build}/plots
if ! cmp -s bench/requirements.txt "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
  cp bench/requirements.txt "$venv/requirements.txt"
fi
"$venv/bin/python3" bench/plots.py "$@"
