# SPDX-License-Identifier: Apache-2.0
"""Adds up the result files of a test run: tests by room, the longest ten, what was skipped and why.

Exit status 1 when a test failed, or when nothing ran.
"""

import sys
import xml.etree.ElementTree as tree
from pathlib import Path


def cases(folder):
    """(room, name, seconds, outcome, reason) of every test case in the XML files of a folder."""
    for path in sorted(Path(folder).glob("*.xml")):
        for case in tree.parse(path).getroot().iter("testcase"):
            outcome, reason = "passed", ""
            if case.find("failure") is not None or case.find("error") is not None:
                outcome = "failed"
            elif case.find("skipped") is not None:
                outcome, reason = "skipped", case.find("skipped").get("message", "")
            elif case.get("status") == "notrun":
                outcome, reason = "skipped", "disabled"
            name = f"{case.get('classname', '')}.{case.get('name', '')}"
            yield path.stem, name, float(case.get("time", 0)), outcome, reason.strip().splitlines()[0] if reason.strip() else ""


def main(folder):
    all_cases = list(cases(folder))
    rooms = {}
    for room, _, seconds, outcome, _ in all_cases:
        row = rooms.setdefault(room, {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
        row[outcome] += 1
        row["seconds"] += seconds
    print(f"\n{'room':<12}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>9}")
    for room, row in rooms.items():
        print(f"{room:<12}{row['passed']:>8}{row['failed']:>8}{row['skipped']:>8}{row['seconds']:>9.1f}")
    print("\nlongest ten:")
    for room, name, seconds, _, _ in sorted(all_cases, key=lambda c: -c[2])[:10]:
        print(f"  {seconds:7.1f} s  {room}: {name}")
    for room, name, _, outcome, reason in all_cases:
        if outcome == "skipped":
            print(f"skipped: {room}: {name}: {reason}")
        if outcome == "failed":
            print(f"FAILED: {room}: {name}")
    total = {kind: sum(row[kind] for row in rooms.values()) for kind in ("passed", "failed", "skipped")}
    print(f"\n{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
