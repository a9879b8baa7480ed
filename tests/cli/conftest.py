# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def root():
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def example(root):
    """The worked case: catalog, profile, batch and plan of two ranks."""
    return root / "tests/golden/worked_case"


@pytest.fixture(scope="session")
def zellige():
    """Runs the command: zellige("plan", ...) gives code, out, err and, with --json, json."""

    def run(*arguments, env=None, cwd=None, timeout=300):
        result = subprocess.run(
            [os.environ["ZELLIGE_COMMAND"], *map(str, arguments)],
            capture_output=True, text=True, timeout=timeout, cwd=cwd, env={**os.environ, **(env or {})},
        )  # fmt: skip
        parsed = json.loads(result.stdout) if "--json" in arguments and result.stdout else None
        return SimpleNamespace(code=result.returncode, out=result.stdout, err=result.stderr, json=parsed)

    return run


@pytest.fixture(scope="session")
def high_v50(zellige, tmp_path_factory):
    path = tmp_path_factory.mktemp("batch") / "high-v50.json"
    assert zellige("batch", "--workload", "high:V50", "-o", path).code == 0
    return path
