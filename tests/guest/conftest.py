# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root():
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build():
    """The build folder under test, given by the runner."""
    return Path(os.environ["ZELLIGE_BUILD"])
