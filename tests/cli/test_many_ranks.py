# SPDX-License-Identifier: Apache-2.0
"""What is printed of many ranks: summed up, unless all are asked for."""

import json
import math
import re

import pytest

RANKS = 200
SHOWN = 32


@pytest.fixture(scope="module")
def many(zellige, root, tmp_path_factory):
    """(batch, plan, its JSON answer) of 200 ranks with split and whole sequences."""
    folder = tmp_path_factory.mktemp("many")
    demo = root / "examples/demo"
    drawn = zellige(
        "batch", demo / "manifest.csv", "--rules", demo / "rules.toml", "--ranks", RANKS, "--tokens-per-rank", 3000, "-o", folder / "batch.json"
    )  # fmt: skip
    assert drawn.code == 0, drawn.err
    answer = zellige("plan", folder / "batch.json", "--profile", "cpu", "--json", timeout=600)
    assert answer.code == 0, answer.err
    (folder / "plan.json").write_text(json.dumps(answer.json["plan"]))
    return folder / "batch.json", folder / "plan.json", answer.json


def rows(text):
    """The cells of the table behind the headline, by first cell."""
    table = text.split("\n\n")[0].splitlines()[1:]
    return [re.split(r"\s{2,}", line.strip()) for line in table]


def test_plan_sums_up(zellige, many):
    batch, _, answer = many
    result = zellige("plan", batch, "--profile", "cpu", timeout=600)
    header, *table = rows(result.out)
    assert header[0] == f"of {RANKS} ranks"
    assert [row[0] for row in table] == ["least", "10%", "median", "90%", "most"]
    tokens = sorted(answer["score"]["tokens"])
    assert len(set(tokens)) > 3  # the columns of the table differ
    for row, part in zip(table, (0, 0.1, 0.5, 0.9, 1)):
        at = max(math.ceil(part * RANKS) - 1, 0)
        assert row[-1] == f"{tokens[at]:,}"
    bars = [line for line in result.out.splitlines() if line.startswith("rank ") and "|" in line]
    assert len(bars) == SHOWN and f"and {RANKS - SHOWN} more ranks" in result.out


def test_all_ranks_on_request(zellige, many):
    batch, plan, answer = many
    result = zellige("plan", batch, "--profile", "cpu", "--all-ranks", timeout=600)
    header, *table = rows(result.out)
    assert header[0] == "rank" and [row[0] for row in table] == [str(r) for r in range(RANKS)]
    assert [row[-1] for row in table] == [f"{tokens:,}" for tokens in answer["score"]["tokens"]]
    words = zellige("explain", plan, "--all-ranks").out
    assert sum(line.startswith("rank ") and "|" in line for line in words.splitlines()) == RANKS
    assert words.count(" is split over ") == answer["score"]["split_count"] and "more" not in words


def test_explain_cuts_its_lists(zellige, many):
    _, plan, answer = many
    words = zellige("explain", plan).out
    splits = answer["score"]["split_count"]
    assert words.count(" is split over ") == min(splits, SHOWN)
    assert (f"and {splits - SHOWN} more split sequence" in words) == (splits > SHOWN)
    assert sum(bool(re.match(r"rank \d+: ", line)) for line in words.splitlines()) == SHOWN
    assert words.count(f"and {RANKS - SHOWN} more ranks") == 2  # of the words and of the picture


def test_explain_draws_runs_of_ranks_together(zellige, many, tmp_path):
    """Where every sequence is split over all ranks; and quickly, although no two rank sets differ."""
    batch, _, _ = many
    planned = zellige("plan", batch, "--profile", "cpu", "--method", "usp", "-o", tmp_path / "plan.json")
    assert planned.code == 0, planned.out + planned.err
    words = zellige("explain", tmp_path / "plan.json", timeout=60).out
    assert f"is split over ranks 0 to {RANKS - 1}: " in words and "more split sequences" in words
    assert re.search(r"rank 0: shards of (r\d+, ){15}r\d+ and \d+ more; ", words)


def test_plan_compare_and_explain_say_the_same_over_the_floor(zellige, many):
    batch, plan, _ = many
    said = [
        re.search(r"makespan [^(]*\(([^ ]+) over the floor", zellige("explain", plan).out).group(1),
        re.search(r"^zellige .*?([+-][\d.]+%)", zellige("compare", batch, "--profile", "cpu", "--methods", "zellige", timeout=600).out, re.M).group(1),
    ]  # fmt: skip
    assert said[0] == said[1]
