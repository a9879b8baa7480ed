# SPDX-License-Identifier: Apache-2.0
"""Two programs, one command: `zellige` starts without libtorch and becomes `zellige-torch` for the subcommands that need it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def programs():
    command = Path(os.environ["ZELLIGE_COMMAND"])
    return command, command.parent / "zellige-torch"


@pytest.fixture
def with_torch(programs):
    if not programs[1].exists():
        pytest.skip("a build without torch")


def libraries(program):
    return subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout


def test_the_planner_loads_neither_torch_nor_a_solver(programs):
    loaded = libraries(programs[0])
    assert "libcrypto" in loaded, "positive control: what it does load is seen"
    for heavy in ("libtorch", "libc10", "libcuda", "libortools"):
        assert heavy not in loaded


def test_the_other_program_loads_torch(programs, with_torch):
    assert "libtorch_cpu" in libraries(programs[1])


def test_a_plan_of_the_own_solver_loads_no_ortools(programs, example):
    plan = [programs[0], "plan", example / "batch.json", "--profile", example / "profile.json", "--method"]
    trace = lambda method: subprocess.run([*plan, method], check=True, capture_output=True, text=True, env={**os.environ, "LD_DEBUG": "files"}).stderr
    assert "libortools" not in trace("zellige")
    assert "libortools" in trace("joint"), "positive control"


def test_help_lists_the_subcommands_of_both(zellige):
    result = zellige("--help")
    assert result.code == 0
    for name in ("catalog", "batch", "plan", "check", "compare", "explain", "train"):
        assert f"\n  {name} " in result.out


def test_a_subcommand_of_the_other_program_behaves_like_one_of_the_first(zellige, with_torch):
    result = zellige("train", "--help")
    assert result.code == 0 and "CONFIG" in result.out and "zellige train" in result.out and result.err == ""
    assert zellige("-v", "train", "--help").out == result.out
    result = zellige("train", "missing.toml", "--json")
    assert result.code == 2 and result.json["code"] == 2 and "missing.toml" in result.json["error"]
    assert result.err.startswith("zellige: ")
    result = zellige("train", "--stepz", 3, "x.toml")
    assert result.code == 2 and "--stepz" in result.err and "zellige train --help" in result.err


def test_found_through_a_link_and_from_elsewhere(programs, with_torch, tmp_path):
    link = tmp_path / "z"
    link.symlink_to(programs[0])
    result = subprocess.run([link, "train", "missing.toml"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and "missing.toml" in result.stderr


def test_without_the_other_program_it_says_what_is_missing(programs, tmp_path):
    alone = tmp_path / "zellige"
    shutil.copy(programs[0], alone)
    result = subprocess.run([alone, "train", "x.toml", "--json"], capture_output=True, text=True)
    assert result.returncode == 2 and "zellige-torch" in result.stderr and "ZELLIGE_TORCH=ON" in result.stderr
    assert json.loads(result.stdout)["code"] == 2
    assert subprocess.run([alone, "--version"], capture_output=True).returncode == 0
