#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need, once: Debian packages (when root) and pinned Python wheels in .venv.
# Quiet when all is there. ZELLIGE_SETUP=check only names what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache python3-venv python3-dev libprotozero-dev librapidcheck-dev libtomlplusplus-dev libcli11-dev
  nlohmann-json3-dev libspdlog-dev libfmt-dev libssl-dev libgtest-dev libgmock-dev libbenchmark-dev clang-format)
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
fi
# A tool that is there without its package (another cmake, a Python of one's own) will do.
keep=()
for package in "${missing[@]}"; do
  case "$package" in
    g++ | cmake | ccache | clang-format) command -v "$package" >/dev/null && continue ;;
    ninja-build) command -v ninja >/dev/null && continue ;;
    python3-dev) python3 -c 'import pathlib, sysconfig, sys; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' && continue ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null && continue ;;
  esac
  keep+=("$package")
done
missing=("${keep[@]}")

if ((${#missing[@]})); then
  if [[ $(id -u) == 0 && ${ZELLIGE_SETUP:-install} == install ]]; then
    echo "setup: installing ${missing[*]}" >&2
    log=$(mktemp)
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
      >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    rm -f "$log"
  else
    echo "setup: these Debian packages are missing: ${missing[*]}" >&2
    echo "setup: install them as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

requirements=cmake/requirements.txt
stamp=.venv/zellige-requirements.txt
if ! cmp -s "$requirements" "$stamp"; then
  echo "setup: installing the Python wheels of $requirements into .venv (torch is 4.6 GB on disk)" >&2
  [[ -x .venv/bin/python3 ]] || python3 -m venv .venv
  .venv/bin/python3 -m pip install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$stamp"
fi
