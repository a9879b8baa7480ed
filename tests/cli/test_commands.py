# SPDX-License-Identifier: Apache-2.0
"""Every subcommand does its work and answers in text and JSON."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


def stable(plan):
    """A plan without what may differ from run to run or from solver to solver: the own solver adds its proof."""
    plan = {**plan, "certificate": dict(plan["certificate"])}
    for field in ("solve_us", "solver"):
        plan.pop(field)
    plan["certificate"].pop("duals", None)
    return plan


def test_the_worked_case(zellige, example, tmp_path):
    out = tmp_path / "plan.json"
    result = zellige("plan", example / "batch.json", "--profile", example / "profile.json", "-o", out)
    assert result.code == 0, result.err
    assert "optimal, certified" in result.out and "1 split" in result.out
    assert stable(json.loads(out.read_text())) == stable(json.loads((example / "plan.json").read_text()))


def test_plan_to_stdout_is_the_file(zellige, example):
    result = zellige("plan", example / "batch.json", "--profile", example / "profile.json", "-o", "-")
    assert result.code == 0
    assert stable(json.loads(result.out)) == stable(json.loads((example / "plan.json").read_text()))


def test_overlapped_loads(zellige, example, tmp_path):
    """The plan states its load model; the checker holds it to that one and to no other."""
    out = tmp_path / "plan.json"
    inputs = (example / "batch.json", "--profile", example / "profile.json")
    result = zellige("plan", *inputs, "--load-model", "overlapped", "-o", out)
    assert result.code == 0, result.err
    assert "of overlapped loads (80.0% of an exchange hidden)" in result.out
    plan = json.loads(out.read_text())
    assert plan["load_model"] == {"kind": "overlapped", "hidden_per_mille": 800}
    assert plan["makespan_us"] == 3521470 and plan["sequences"][0]["exchange_us"] == 53587
    assert zellige("check", out, *inputs).code == 0
    plan["load_model"]["hidden_per_mille"] = 700
    out.write_text(json.dumps(plan))
    result = zellige("check", out, *inputs, "--json")
    assert result.code == 2 and "wrong-load" in [finding["what"] for finding in result.json["findings"]]
    rows = zellige("compare", *inputs, "--load-model", "overlapped", "--hidden-per-mille", "0", "--methods", "zellige,naive", "--json").json["methods"]
    assert [row["score"]["makespan_us"] for row in rows] == [3564339, 6431933]
    assert zellige("plan", *inputs, "--load-model", "hidden").code == 2
    assert zellige("plan", *inputs, "--hidden-per-mille", "1001").code == 2
    result = zellige("plan", *inputs, "--hidden-per-mille", "700")
    assert result.code == 2 and "additive loads hide nothing" in result.err


def test_check_takes_the_worked_plan(zellige, example):
    result = zellige("check", example / "plan.json", example / "batch.json", "--profile", example / "profile.json")
    assert result.code == 0 and "nothing is wrong" in result.out
    result = zellige("check", example / "plan.json", example / "batch.json", "--profile", example / "profile.json", "--json")
    assert result.json == {"code": 0, "findings": [], "unverified": []}


def test_check_names_what_is_wrong(zellige, example, tmp_path):
    plan = json.loads((example / "plan.json").read_text())
    plan["makespan_us"] -= 1
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    result = zellige("check", path, example / "batch.json", "--profile", example / "profile.json", "--json")
    assert result.code == 2 and result.json["code"] == 2
    assert "wrong-makespan" in [finding["what"] for finding in result.json["findings"]]


def test_check_shows_what_it_could_not_verify(zellige, example, tmp_path):
    """A plan that calls itself optimal and certified: believed of nobody, and of CP-SAT only with a word of warning."""

    def check(**changes):
        plan = json.loads((example / "plan.json").read_text())
        for sequence in plan["sequences"]:
            whole = sequence["id"] == "clip-7"
            sequence.update({"config": [1, 1, 1], "ranks": [0], "time_us": 6431933, "memory_bytes": 6778736640} if whole else {"ranks": [1]})
        plan.update(load_us=[6431933, 589570], memory_bytes=[6778736640, 2492743680], makespan_us=6431933, split_count=0)
        plan["certificate"].update(anchor_load_us=6431933, anchor_bound_us=6431933, split_count=0, split_bound=0, makespan_bound_us=6431933)
        plan.update(changes)
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan))
        arguments = ("check", path, example / "batch.json", "--profile", example / "profile.json")
        return zellige(*arguments), zellige(*arguments, "--json")

    # The digest is the worked plan's; what the rest says is what matters here.
    text, judged = check(solver="own")
    assert text.code == 2 and "unproved-claim: anchor_bound_us is 6431933, which nothing proves" in text.out
    assert judged.json["unverified"] == []
    text, judged = check(solver="cp-sat")
    assert "unverified: anchor_bound_us is 6431933, stated by solver cp-sat and not verified" in text.out
    assert [claim["field"] for claim in judged.json["unverified"]] == ["anchor_bound_us", "makespan_bound_us"]
    assert [finding["what"] for finding in judged.json["findings"]] == ["wrong-digest"]


def test_check_tells_memory_apart(zellige, example, tmp_path):
    profile = json.loads((example / "profile.json").read_text())
    profile["memory"]["usable_bytes"] = profile["memory"]["base_bytes"] + 4_000_000_000
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile))
    result = zellige("check", example / "plan.json", example / "batch.json", "--profile", path, "--json")
    # The plan names the profile it was made with, so another one is a finding of its own beside the memory cap's.
    assert {finding["what"] for finding in result.json["findings"]} == {"over-memory-cap", "wrong-profile"}
    assert result.code == 2


def test_plan_check_and_explain_high_v50(zellige, high_v50, tmp_path):
    plan, page, trace = tmp_path / "plan.json", tmp_path / "page.html", tmp_path / "trace.json"
    result = zellige("plan", high_v50, "--profile", "h200", "-o", plan, "--report", page, "--time-limit", 20)
    assert result.code == 0, result.err
    assert zellige("check", plan, high_v50, "--profile", "h200").code == 0
    # Against another profile every price is wrong: the cause comes first, and the page stays readable.
    other = zellige("check", plan, high_v50, "--profile", "a800")
    everything = zellige("check", plan, high_v50, "--profile", "a800", "--json").json["findings"]
    assert other.code == 2 and other.out.startswith("wrong-profile: ") and "wrong-claim: and " in other.out
    assert len(other.out.splitlines()) < 60 < len(everything)
    result = zellige("explain", plan, "--trace", trace)
    assert result.code == 0 and "is split over ranks" in result.out and "rank 7:" in result.out
    assert len(json.loads(trace.read_text())["traceEvents"]) > 8
    assert page.read_text().lower().startswith("<!doctype html>")


def test_compare_high_v50(zellige, high_v50, tmp_path):
    page = tmp_path / "page.html"
    methods = "zellige,naive,adaptiveload,usp,knapformer,megatron"
    result = zellige("compare", high_v50, "--profile", "h200", "--methods", methods, "--time-limit", 20, "--report", page, "--json")
    assert result.code == 0, result.err
    rows = {row["method"]: row for row in result.json["methods"]}
    assert list(rows) == methods.split(",")
    ours = rows["zellige"]["score"]["makespan_us"]
    for method, row in rows.items():
        if "score" in row:
            assert ours <= row["score"]["makespan_us"], method
    assert rows["usp"]["score"]["split_count"] > rows["zellige"]["score"]["split_count"]
    text = zellige("compare", high_v50, "--profile", "h200", "--methods", "zellige,naive", "--time-limit", 20).out
    assert "over floor" in text and "naive" in text
    assert "<svg" in page.read_text()


def test_plans_without_ortools(zellige, high_v50):
    result = zellige("plan", high_v50, "--profile", "h200", "--json", env={"ZELLIGE_ORTOOLS": "none"})
    assert result.code == 0
    assert result.json["plan"]["solver"] in ("own", "greedy") and result.json["plan"]["status"] in ("feasible", "optimal")


def test_batch_is_the_same_for_the_same_seed(zellige, root, tmp_path):
    demo = root / "examples/demo"
    paths = [tmp_path / f"{i}.json" for i in range(3)]
    for path, seed in zip(paths, (1, 1, 2)):
        result = zellige("batch", demo / "manifest.csv", "--rules", demo / "rules.toml", "--ranks", 4, "--tokens-per-rank", 4096,
                         "--seed", seed, "-o", path)  # fmt: skip
        assert result.code == 0, result.err
    assert paths[0].read_text() == paths[1].read_text() != paths[2].read_text()


def test_catalog_with_rules(zellige, root):
    demo = root / "examples/demo"
    result = zellige("catalog", demo / "manifest.csv", "--rules", demo / "rules.toml", "--json")
    assert result.code == 0, result.err
    assert result.json["used"] + len(result.json["skipped"]) >= result.json["samples"]
    assert sum(row["samples"] for row in result.json["buckets"]) == result.json["used"]
    text = zellige("catalog", demo / "manifest.csv", "--rules", demo / "rules.toml").out
    assert "tokens each" in text


def test_catalog_without_rules_counts_what_fits(zellige, root):
    demo = root / "examples/demo"
    result = zellige("catalog", demo / "manifest.csv", "--json")
    assert result.code == 0, result.err
    assert result.json["usable"] == sum(row["samples"] for row in result.json["sizes"])


def test_ctrl_c_keeps_the_best_plan_so_far(high_v50, tmp_path):
    plan = tmp_path / "plan.json"
    process = subprocess.Popen(
        [os.environ["ZELLIGE_COMMAND"], "plan", high_v50, "--profile", "h200", "--method", "joint-no-ecf", "-o", plan],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 4), err
    assert plan.exists(), "nothing is lost"
    assert json.loads(plan.read_text())["status"] in ("feasible", "timeout", "optimal")


@pytest.mark.parametrize("command", ["", "catalog", "batch", "plan", "check", "compare", "explain", "dry-run", "train", "profile"])
def test_help(zellige, command):
    result = zellige(*command.split(), "--help")
    if command in ("train", "profile") and not (Path(os.environ["ZELLIGE_COMMAND"]).parent / "zellige-torch").exists():
        assert result.code != 0 and "-DZELLIGE_TORCH=ON" in result.err, "a build that plans only says so"
    else:
        assert result.code == 0 and "Usage" in result.out
