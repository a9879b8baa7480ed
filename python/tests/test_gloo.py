# SPDX-License-Identifier: Apache-2.0
"""The engine over processes: parity with one process's attention, and what the ranks say when one of them fails."""

import subprocess
import sys
from pathlib import Path

import pytest

RANKS = Path(__file__).with_name("gloo_ranks.py")
TIME_LIMIT_S = 150


def run(case, world, tmp_path):
    """(exit status, output) of every rank; none may outlast the time limit."""
    ranks = [
        subprocess.Popen([sys.executable, RANKS, case, str(rank), str(world), tmp_path / "store"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for rank in range(world)
    ]  # fmt: skip
    try:
        results = [(rank.communicate(timeout=TIME_LIMIT_S), rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [(status, out + err) for (out, err), status in results]


@pytest.mark.parametrize("world", [2, 4, 8])
def test_every_configuration_equals_one_process(world, tmp_path):
    for status, output in run("parity", world, tmp_path):
        assert status == 0 and "worst" in output and "done" in output, output


def test_another_plan_on_one_rank_is_the_same_error_on_all(tmp_path):
    outputs = [output for _, output in run("other_plan", 3, tmp_path)]
    errors = {line for output in outputs for line in output.splitlines() if line.startswith("code")}
    assert len(errors) == 1, outputs
    assert errors.pop().startswith("code 7:") and all("different plans" in output for output in outputs)


def test_a_rank_that_dies_is_an_error_on_the_others(tmp_path):
    *others, (status, _) = run("dies", 3, tmp_path)
    assert status == 9
    for _, output in others:
        assert "code 7:" in output and "again code 7" in output, output


def test_a_rank_without_memory_is_an_error_on_all(tmp_path):
    for status, output in run("out_of_memory", 2, tmp_path):
        assert status == 1 and ("code 7" in output or "memory" in output.lower()), output
