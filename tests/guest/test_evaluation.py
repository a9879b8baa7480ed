# SPDX-License-Identifier: Apache-2.0
"""docs/evaluation.md: every table comes from a result that is kept, and every picture is there."""

import re
import sys

import pytest


@pytest.fixture(scope="module")
def tables(root):
    sys.path.insert(0, str(root / "bench"))
    try:
        import evaluation_tables
    finally:
        sys.path.pop(0)
    return evaluation_tables


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/evaluation.md").read_text()


def test_every_table_is_made_from_a_kept_result(root, tables, page):
    blocks = re.findall(r"<!-- table (\S+) -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert len(blocks) > 5
    for name, text in blocks:
        assert name in tables.TABLES, f"no table '{name}' in bench/evaluation_tables.py"
        result = tables.TABLES[name][0]
        assert (root / f"bench/results/{result}.json").exists(), f"table '{name}' has no bench/results/{result}.json"
        assert text.startswith(f"`bench/results/{result}.json`"), f"table '{name}' is empty: run python3 bench/tables.py"
    assert {name for name, _ in blocks} == set(tables.TABLES), "a table is made and not shown"


def test_every_picture_is_there(root, page):
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page)
    assert pictures
    for picture in pictures:
        assert (root / "docs" / picture).exists(), picture


def test_tables_say_what_the_rows_say(tables):
    rows = [{"suite": "high", "profile": "h200", "memory_binds": True, "method": "usp", "video_share_percent": 35, "outcome": "feasible",
             "over_floor": 0.25},
            {"suite": "high", "profile": "h200", "memory_binds": True, "method": "usp", "video_share_percent": 40, "outcome": "OOM"}]  # fmt: skip
    lines = tables.suites(rows, lambda row: True)
    assert lines[0] == "| suite | method | V35 | V40 | V45 | V50 | V55 | V60 |"
    assert lines[2:] == ["| high | usp | 1.250 | OOM |  |  |  |  |"]
