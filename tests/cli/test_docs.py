# SPDX-License-Identifier: Apache-2.0
"""Every `$ build/zellige ...` in the README and the docs runs, and prints what the page says it prints.

In a ```console block, a line that starts with "$ " is a command and the lines up to the next one are its output. A line "..." stands
for any number of lines. Planning times differ from run to run and are not compared.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TIMES = re.compile(r"planned in \d+(\.\d+)? (us|ms|s)\b|\b\d+(\.\d+)? (us|ms|s)$")


def blocks(text):
    """The ```console blocks of a page, each a list of (command, expected output lines)."""
    for body in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        commands = []
        for line in body.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands:
                commands[-1][1].append(line)
        yield commands


def comparable(line):
    return re.sub(r"\s+", " ", TIMES.sub("TIME", line)).strip()  # a shorter time moves the columns


def matches(expected, actual):
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and comparable(expected[0]) == comparable(actual[0]) and matches(expected[1:], actual[1:])


def cases():
    for page in PAGES:
        for number, commands in enumerate(blocks(page.read_text()), start=1):
            if any(command.startswith("build/zellige") for command, _ in commands):
                yield pytest.param(commands, id=f"{page.relative_to(ROOT)}-{number}")


def test_the_comparison_can_fail():
    assert matches(["a", "...", "z planned in 3 ms"], ["a", "b", "c", "z planned in 1.2 s"])
    assert not matches(["a", "b"], ["a", "c"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a", "...", "z"], ["a", "b"])


@pytest.mark.parametrize("commands", list(cases()))
def test_a_page_says_what_is_printed(commands):
    (ROOT / "out").mkdir(exist_ok=True)
    for command, expected in commands:
        if not command.startswith("build/zellige"):
            continue
        words = shlex.split(command)
        words[0] = os.environ["ZELLIGE_COMMAND"]
        result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, f"{command}\n{result.stderr}"
        if expected:
            assert matches(expected, result.stdout.splitlines()), f"{command} printed:\n{result.stdout}"
