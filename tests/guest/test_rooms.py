# SPDX-License-Identifier: Apache-2.0
"""Every `#include` follows the room table; the check is first seen to fail on trees that break it."""

import pytest
import rooms


def test_the_tree_follows_the_table(root):
    found, judged = rooms.violations(root)
    assert judged > 300, "the walk saw too few includes to mean anything"
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "file, line, expected",
    [
        ("src/catalog/a.cpp", '#include "zellige/profile.h"', "room catalog may not include room profile"),
        ("src/plan/a.cpp", '#include "zellige/engine.h"', "room plan may not include room engine"),
        ("src/engine/a.cpp", '#include "plan/cp_sat.h"', "room engine may not include room plan"),
        ("src/plan/a.cpp", "#include <ATen/ATen.h>", "room plan may not include <ATen/ATen.h>"),
        ("src/placement/check.cpp", '#include "zellige/score.h"', "must not include zellige/score.h"),
        ("src/profile/a.cpp", "#include <iostream>", "room profile may not include <iostream>"),
        ("src/profile/a.cpp", "#include <nlohmann/json.hpp>", "room profile may not include <nlohmann/json.hpp>"),
        ("app/a.cpp", '#include "base/json.h"', "the command may use public headers only"),
        ("include/zellige/catalog.h", '#include "base/json.h"', "a public header may not include"),
        ("src/cellar/a.cpp", "", "belongs to no room"),
        ("src/plan/a.cpp", '#include "zellige/cellar.h"', "belongs to no room"),
    ],
)
def test_a_breach_is_noticed(tmp_path, file, line, expected):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    found, _ = rooms.violations(tmp_path)
    assert any(expected in entry for entry in found), found


def test_a_good_include_is_not_refused(tmp_path):
    path = tmp_path / "src/plan/a.cpp"
    path.parent.mkdir(parents=True)
    path.write_text('#include <vector>\n#include "zellige/placement.h"\n#include "base/json.h"\n#include "plan/bounds.h"\n')
    assert rooms.violations(tmp_path) == ([], 4)
