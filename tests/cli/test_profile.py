# SPDX-License-Identifier: Apache-2.0
"""zellige profile: wrong input before anything is measured, a signal, and a small measurement."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def with_torch():
    if not (Path(os.environ["ZELLIGE_COMMAND"]).parent / "zellige-torch").exists():
        pytest.skip("a build without torch")


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        '[model]\npreset = "tiny"\n[sampling]\nvideo_share = 0.5\n'
        '[[bucket]]\nname = "a"\nkind = "image"\nsize = [64, 64]\n[[bucket]]\nname = "b"\nkind = "image"\nsize = [128, 128]\n'
    )
    return path


@pytest.mark.parametrize(
    "option, value, wanted",
    [
        ("--budget", "nan", "above 0"), ("--budget", "-1", "above 0"), ("--spread", "inf", "above 0"), ("--ranks", "0", "from 1 to 256"),
        ("--ranks", "1.5", "from 1 to 256"), ("--text-dim", "1e9", "whole number"), ("--depth", "-1", "whole number"), ("--precision", "fp8", "fp32"),
    ],
)  # fmt: skip
def test_options_are_refused_by_name(zellige, rules, tmp_path, option, value, wanted):
    result = zellige("profile", "--rules", rules, "-o", tmp_path / "p.json", option, value)
    assert result.code == 2 and option in result.err and wanted in result.err and len(result.err) < 300, result.err


def test_outputs_are_tried_before_anything_is_measured(zellige, rules, tmp_path):
    start = time.monotonic()
    result = zellige("profile", "--rules", rules, "-o", tmp_path / "none/p.json")
    assert result.code == 2 and "No such file" in result.err
    result = zellige("profile", "--rules", rules, "-o", rules)
    assert result.code == 2 and "would overwrite" in result.err
    result = zellige("profile", "--rules", rules, "-o", "-", "--json")
    assert result.code == 2 and "stdout" in result.err
    result = zellige("profile", "--rules", rules, "-o", "/dev/full", "--resume")
    assert result.code == 2 and "--resume" in result.err
    assert time.monotonic() - start < 60 and not Path("/dev/full.partial").exists()


def test_a_profile_on_stdout_is_a_profile(zellige, rules, tmp_path):
    result = zellige("profile", "--rules", rules, "-o", "-", "--budget", 30, "--text-dim", 16)
    assert result.code == 0, result.err
    assert json.loads(result.out)["format"] == "zellige.profile"
    assert not (tmp_path / "-.partial").exists() and not Path("-.partial").exists()
    result = zellige("profile", "--rules", rules, "-o", "/dev/full", "--budget", 30, "--text-dim", 16)
    assert result.code == 2 and "No space left" in result.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_first_measurement_ends_it(rules, tmp_path, number):
    """A model that is large for this machine: set-up and warming up take longer than anyone waits."""
    large = tmp_path / "large.toml"
    large.write_text(rules.read_text().replace('preset = "tiny"', 'preset = "wan2.1-t2v-1.3b"'))
    command = [os.environ["ZELLIGE_COMMAND"], "profile", "--rules", large, "-o", tmp_path / "p.json", "--ranks", "2", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    handled = 1 << (number - 1)
    for _ in range(600):  # until the signal has its handler
        status = Path(f"/proc/{process.pid}/status").read_text()
        if int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16) & handled:
            break
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, (process.returncode, err)
    assert "stopped before the first measurement" in err and json.loads(out)["code"] == 4
