# SPDX-License-Identifier: Apache-2.0
"""Two programs, one command: `zellige` starts without libtorch and becomes `zellige-torch` for the subcommands that need it."""

import json
import os
import shutil
import signal
import subprocess
import time
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


def config(root, folder, **changes):
    """The demo's train.toml with lines replaced: key -> the whole new line."""
    lines = (root / "examples/demo/train.toml").read_text().splitlines()
    for key, line in changes.items():
        assert any(old.startswith(f"{key} = ") for old in lines)
        lines = [line if old.startswith(f"{key} = ") else old for old in lines]
    for name in ("manifest.csv", "rules.toml"):
        shutil.copy(root / "examples/demo" / name, folder)
    path = folder / "train.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_more_ranks_than_fit_are_refused_early(zellige, root, with_torch, tmp_path):
    path = config(root, tmp_path, preset="heads = 40\nhead_dim = 128\nffn = 13824\nlayers = 400", count="count = 1000")
    start = time.monotonic()
    result = zellige("train", path)
    assert result.code == 2 and "[ranks] count is 1000" in result.err and "GiB" in result.err and "enough for 0" in result.err
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_has_nothing_to_keep(programs, root, with_torch, tmp_path, number):
    path = config(root, tmp_path, manifest='manifest = "pipe.csv"')
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    process = subprocess.Popen([programs[0], "train", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer = None
    for _ in range(600):  # until it waits for the manifest
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            time.sleep(0.1)
    assert writer is not None
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == 4, (process.returncode, err)
    assert "stopped before the first step" in err and json.loads(out)["code"] == 4


def test_outputs_of_a_run_are_tried_before_it(zellige, root, with_torch, tmp_path):
    path = config(root, tmp_path)
    for option in ("--log", "--report"):
        result = zellige("train", path, option, tmp_path / "none/x")
        assert result.code == 2 and option in result.err and "No such file" in result.err
    result = zellige("train", path, "--log", tmp_path / "x", "--report", tmp_path / "x")
    assert result.code == 2 and "both name" in result.err


def test_training_that_diverges_is_an_error(zellige, root, with_torch, tmp_path):
    result = zellige("train", config(root, tmp_path, lr="lr = 1e30", count="count = 1", tokens_per_rank="tokens_per_rank = 2560"), "--steps", 1)
    assert result.code == 2 and "step 0" in result.err and "is inf" in result.err
