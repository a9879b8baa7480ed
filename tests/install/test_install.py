# SPDX-License-Identifier: Apache-2.0
"""The installed package serves a small outside project, found by find_package and by add_subdirectory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMER = Path(__file__).parent / "consumer"
ENGINE_CONSUMER = Path(__file__).parent / "engine_consumer"
ROOT = Path(__file__).resolve().parents[2]


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", os.environ["ZELLIGE_BUILD"], "--prefix", prefix)
    return prefix


def test_what_is_installed(prefix):
    assert (prefix / "bin/zellige").exists()
    assert (prefix / "include/zellige/planner.h").exists()
    assert not list(prefix.rglob("json.h")), "private headers stay at home"
    assert run(prefix / "bin/zellige", "--version").startswith("zellige ")
    if (Path(os.environ["ZELLIGE_BUILD"]) / "zellige-torch").exists():
        assert "CONFIG" in run(prefix / "bin/zellige", "train", "--help"), "one program finds the other where both are installed"


def test_a_consumer_builds_by_find_package(prefix, tmp_path):
    run("cmake", "-S", CONSUMER, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    status, sequences, findings = run(tmp_path / "build/consumer").split()
    assert status in ("optimal", "feasible")
    assert int(sequences) > 100 and int(findings) == 0


def test_the_package_names_no_folder_of_the_build(prefix):
    """Where the wheels lie is found anew by the project that uses the package; only the Python of the build is remembered."""
    for file in (prefix / "lib/cmake/zellige").iterdir():
        text = file.read_text()
        if file.name == "zellige-config.cmake":
            text = text.replace(sys.executable, "")
        assert str(ROOT) not in text and ".venv/lib" not in text and "/cuda" not in text, file


def test_a_consumer_of_the_engine(prefix, tmp_path):
    if not (prefix / "bin/zellige-torch").exists():
        pytest.skip("built without torch")
    run("cmake", "-S", ENGINE_CONSUMER, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/consumer").split() == ["ranks", "2", "differences", "0"]


def test_a_python_without_the_wheels_is_refused_by_name(prefix, tmp_path):
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho\n")  # finds no package
    bare.chmod(0o755)
    result = subprocess.run(
        ["cmake", "-S", CONSUMER, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DZELLIGE_PYTHON={bare}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode != 0 and str(bare) in result.stderr and "-DZELLIGE_PYTHON" in result.stderr


def test_the_package_refuses_a_wrong_version(prefix, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(CONSUMER, source)
    lists = source / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("zellige 0.1", "zellige 7.0"))
    result = subprocess.run(
        ["cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode != 0 and "7.0" in result.stderr


def test_a_consumer_builds_by_add_subdirectory(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(CONSUMER, source)
    lists = source / "CMakeLists.txt"
    text = lists.read_text()
    # Warnings as errors like the build that runs this test: the same commands, which a compiler cache answers.
    added = f'set(ZELLIGE_TORCH OFF)\nset(ZELLIGE_ARROW OFF)\nset(ZELLIGE_WERROR ON)\nadd_subdirectory("{ROOT}" zellige EXCLUDE_FROM_ALL)'
    lists.write_text(text.replace("find_package(zellige 0.1 REQUIRED COMPONENTS plan)", added))
    run("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/consumer").split()[0] in ("optimal", "feasible")
