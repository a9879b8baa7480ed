# SPDX-License-Identifier: Apache-2.0
"""The room table of docs/design/architecture.md as data, and the walk over every `#include` that holds the code to it."""

import re
from pathlib import Path

# Room -> rooms it may include directly; what those may include is allowed too.
ROOMS = {
    "base": [],
    "catalog": ["base"],
    "profile": ["catalog"],
    "placement": ["profile"],
    "plan": ["placement"],
    "engine": ["placement"],
    "model": ["engine"],
    "calibrate": ["model", "profile"],
    "train": ["plan", "model"],
    "report": ["placement"],
}

# Public header -> its room.
PUBLIC = {
    "error": "base", "units": "base", "log": "base", "env": "base", "version": "base", "text": "base",
    "catalog": "catalog", "batch": "catalog", "manifest": "catalog",
    "profile": "profile",
    "placement": "placement", "anchor_proof": "placement", "check": "placement", "load_model": "placement", "score": "placement", "schedule": "placement",
    "planner": "plan", "dry_run": "plan",
    "engine": "engine", "thread_ranks": "engine", "process_group": "engine",
    "flow": "model", "model": "model",
    "calibrate": "calibrate", "step_timer": "calibrate",
    "trainer": "train",
    "report": "report",
}  # fmt: skip

# Library (by the start of the include) -> rooms that may include it. What is not listed is the standard library's or the
# system's and is allowed everywhere, but for streams that print.
LIBRARIES = {
    "nlohmann/": {"base", "app"},
    "openssl/": {"base"},
    "arrow/": {"catalog"},
    "parquet/": {"catalog"},
    "toml++/": {"catalog", "train"},
    "protozero/": {"plan"},
    "dlfcn.h": {"plan", "engine", "calibrate"},
    "torch/": {"engine", "model", "calibrate", "train", "app"},
    "ATen/": {"engine", "model", "calibrate", "train", "app"},
    "c10/": {"engine", "model", "calibrate", "train", "app"},
    "CLI/": {"app"},
    "spdlog/": {"app"},
    "iostream": {"app"},
}

# A room's file that may not include one of its own room's headers: the checker shares nothing with the scorer.
FORBIDDEN_PAIRS = {
    (f"src/placement/{source}.cpp", header)
    for source in ("check", "check_anchors", "check_batch", "check_certificate", "check_claims", "check_digests", "check_loads", "refutation", "pattern_doubt", "relaxation")
    for header in ("zellige/score.h", "placement/rank_sums.h")
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def closure(room):
    allowed = {room}
    for lower in ROOMS[room]:
        allowed |= closure(lower)
    return allowed


def room_of(path):
    """Room of a source file, given relative to the root: "app" for the command."""
    parts = Path(path).parts
    if parts[:2] == ("include", "zellige"):
        return PUBLIC.get(Path(path).stem)
    if parts[0] == "src":
        return parts[1]
    return parts[0]


def violations(root):
    """Returns a line for every include that points against the table, and how many includes were judged."""
    found, judged = [], 0
    root = Path(root)
    files = [p for folder in ("include", "src", "app") for p in sorted((root / folder).rglob("*")) if p.suffix in (".h", ".cpp")]
    for path in files:
        relative = path.relative_to(root).as_posix()
        room = room_of(relative)
        if room is None or (room != "app" and room not in ROOMS):
            found.append(f"{relative}: belongs to no room of the table")
            continue
        for included in INCLUDE.findall(path.read_text()):
            judged += 1
            if (relative, included) in FORBIDDEN_PAIRS:
                found.append(f"{relative}: must not include {included}")
            library = next((rooms for start, rooms in LIBRARIES.items() if included.startswith(start)), None)
            if library is not None and room not in library:
                found.append(f"{relative}: room {room} may not include <{included}>")
            target = None
            private = False
            if included.startswith("zellige/"):
                target = PUBLIC.get(Path(included).stem, "unknown")
            elif included.split("/")[0] in ROOMS and "/" in included:
                target, private = included.split("/")[0], True
            if target is None:
                continue
            if target == "unknown":
                found.append(f"{relative}: {included} belongs to no room of the table")
            elif room == "app":
                if private:
                    found.append(f"{relative}: the command may use public headers only, not {included}")
            elif target not in closure(room):
                found.append(f"{relative}: room {room} may not include room {target} ({included})")
            if private and relative.startswith("include/"):
                found.append(f"{relative}: a public header may not include the private {included}")
    return found, judged
