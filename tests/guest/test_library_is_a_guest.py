# SPDX-License-Identifier: Apache-2.0
"""The library never prints, exits, aborts or reads the environment. Judged by the symbols that its archives ask for."""

import re
import subprocess

import pytest

# What a library must not call. std::terminate and __assert_fail come in through the compiler and are no calls of ours.
FORBIDDEN = re.compile(
    r"^(exit|_exit|_Exit|quick_exit|abort|printf|puts|putchar|fprintf|vprintf|vfprintf|fputs|perror|getenv|secure_getenv|"
    r"setenv|putenv|_ZSt4cout|_ZSt4cerr|_ZSt4clog|stdout|stderr|__printf_chk|__fprintf_chk)(@.*)?$"
)
# The one object that reads the environment, and the CUDA compiler's own start-up code around our kernels.
ALLOWED = {("env.cpp.o", "getenv"), ("slice_tasks.o", "exit")}


def wanted_symbols(archive):
    """(object, symbol) for everything an archive asks of others. Fails when nm does."""
    text = subprocess.run(["nm", "--undefined-only", "-A", str(archive)], check=True, capture_output=True, text=True).stdout
    result = []
    for line in text.splitlines():
        place, symbol = re.match(r"(.*?):\s+[Uwv] (\S+)$", line).groups()
        result.append((place.split(":")[1], symbol.split("@")[0]))
    return result


def archives(build):
    found = sorted((build / "src").rglob("libzellige_room_*.a"))
    assert len(found) >= 6, f"too few room archives under {build}"
    return found


def breaches(symbols):
    return [entry for entry in symbols if FORBIDDEN.match(entry[1]) and entry not in ALLOWED]


def test_no_room_prints_exits_or_reads_the_environment(build):
    for archive in archives(build):
        symbols = wanted_symbols(archive)
        assert not breaches(symbols), f"{archive.name}: {breaches(symbols)}"


def test_the_symbols_are_really_seen(build):
    base = next(a for a in archives(build) if a.name == "libzellige_room_base.a")
    symbols = wanted_symbols(base)
    assert ("env.cpp.o", "getenv") in symbols, "the one permitted reader of the environment must show up"
    assert any(symbol == "EVP_Digest" for _, symbol in symbols)


@pytest.mark.parametrize(
    "body, symbol",
    [
        ("#include <cstdlib>\nvoid f() { std::exit(1); }", "exit"),
        ("#include <cstdlib>\nvoid f() { std::abort(); }", "abort"),
        ('#include <cstdio>\nvoid f(int n) { std::printf("%d", n); }', "printf"),
        ("#include <iostream>\nvoid f() { std::cout << 1; }", "_ZSt4cout"),
        ('#include <cstdlib>\nconst char* f() { return std::getenv("HOME"); }', "getenv"),
    ],
)
def test_a_breach_is_noticed(tmp_path, body, symbol):
    source = tmp_path / "guest.cpp"
    source.write_text(body)
    subprocess.run(["g++", "-O1", "-c", str(source), "-o", str(tmp_path / "guest.cpp.o")], check=True)
    subprocess.run(["ar", "rcs", str(tmp_path / "libguest.a"), str(tmp_path / "guest.cpp.o")], check=True)
    assert symbol in [name for _, name in breaches(wanted_symbols(tmp_path / "libguest.a"))]
