# SPDX-License-Identifier: Apache-2.0
"""The engine over processes: parity with one process's attention, gradients of transformer blocks, and what the ranks say when
one of them fails. Where there is a GPU all of it runs again with every process on that one."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

RANKS = Path(__file__).with_name("gloo_ranks.py")
TIME_LIMIT_S = 150
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def run(case, world, tmp_path, device="cpu"):
    """(exit status, output) of every rank; none may outlast the time limit."""
    ranks = [
        subprocess.Popen([sys.executable, RANKS, case, str(rank), str(world), tmp_path / "store", device],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(world)
    ]  # fmt: skip
    try:
        results = [(rank.communicate(timeout=TIME_LIMIT_S), rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [(status, out + err) for (out, err), status in results]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("world", [2, 4, 8])
def test_every_configuration_equals_one_process(world, device, tmp_path):
    for status, output in run("parity", world, tmp_path, device):
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


@pytest.mark.parametrize("device", DEVICES)
def test_a_rank_without_memory_is_an_error_on_all(device, tmp_path):
    (status, first), *others = run("out_of_memory", 3, tmp_path, device)
    assert status == 1 and "code 6: [engine] rank 0 of 3 ran out of memory" in first, first
    for status, output in others:
        assert status == 1 and "code 7:" in output, output


@pytest.mark.parametrize("device, world", [("cpu", 4), pytest.param("cuda", 8, marks=DEVICES[1].marks)])
def test_gradients_of_transformer_blocks_equal_those_of_one_piece(device, world, tmp_path):
    for status, output in run("blocks", world, tmp_path, device):
        print(output)
        assert status == 0 and "tiny:" in output and "done" in output, output
        assert device == "cpu" or "wan2.1-1.3b:" in output, output
