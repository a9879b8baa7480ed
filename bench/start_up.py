#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the command takes to start: `zellige` (no libtorch) and `zellige-torch` (with it), and a small plan. Writes a result file.

python3 bench/start_up.py BUILD RESULT.json
"""

import datetime
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

RUNS = 31
ROOT = Path(__file__).resolve().parents[1]


def times_us(command):
    """Wall time of every run, sorted; one run goes before and does not count."""
    result = []
    for run in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if run > 0:
            result.append((time.perf_counter() - start) * 1e6)
    return sorted(result)


def device():
    name = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{name.group(1) if name else 'unknown processor'}, {os.cpu_count()} cores"


def main():
    build, output = Path(sys.argv[1]), Path(sys.argv[2])
    case = ROOT / "tests/golden/worked_case"
    commands = {
        "zellige --version": [build / "zellige", "--version"],
        "zellige-torch --version": [build / "zellige-torch", "--version"],
        "zellige plan (worked case)": [build / "zellige", "plan", case / "batch.json", "--profile", case / "profile.json"],
    }
    rows = []
    for name, command in commands.items():
        times = times_us(command)
        rows.append({"what": name, "runs": RUNS, "least_us": round(times[0]), "median_us": round(times[RUNS // 2]), "most_us": round(times[-1])})
    for row in rows:
        row["least_to_with_torch"] = round(row["least_us"] / rows[1]["least_us"], 4)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip() or "unknown"
    document = {
        "name": "start_up", "commit": commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device(), "command": f"python3 bench/start_up.py {sys.argv[1]} {sys.argv[2]}", "rows": rows,
    }  # fmt: skip
    output.write_text(json.dumps(document, indent=2) + "\n")


main()
