# SPDX-License-Identifier: Apache-2.0
"""Wrong input to each subcommand: the right exit code, and a message that names the thing, its value, and what would be right."""

import json
import os
import subprocess

import pytest


def refuse(result, code, *fragments):
    assert result.code == code, (result.code, result.out, result.err)
    for fragment in fragments:
        assert fragment in result.err, result.err


def test_no_subcommand(zellige):
    refuse(zellige(), 2, "subcommand")


def test_unknown_subcommand_and_option(zellige, example):
    refuse(zellige("plann"), 2, "'plann'", "did you mean 'plan'?")
    refuse(zellige("frob"), 2, "'frob'", "catalog", "train")
    refuse(zellige("plan", example / "batch.json", "--profile", "h200", "--methd", "usp"), 2, "--methd")


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_planning_arguments(zellige, example, command):
    batch = example / "batch.json"
    refuse(zellige(command, batch), 2, "--profile")
    refuse(zellige(command, "missing.json", "--profile", "h200"), 2, "missing.json", "No such file")
    refuse(zellige(command, example, "--profile", "h200"), 2, "directory")
    refuse(zellige(command, batch, "--profile", "h900"), 2, "'h900' is neither a file nor a built-in profile", "h200")
    refuse(zellige(command, batch, "--profile", "h200", "--menu", "some"), 2, "some", "powers-of-two")
    refuse(zellige(command, batch, "--profile", "h200", "--waves", 0), 2, "--waves")
    refuse(zellige(command, batch, "--profile", "h200", "--time-limit", "soon"), 2, "--time-limit")


def test_unknown_method_suggests(zellige, example):
    refuse(zellige("plan", example / "batch.json", "--profile", "h200", "--method", "knapfromer"), 2, "knapfromer", "knapformer")
    refuse(zellige("compare", example / "batch.json", "--profile", "h200", "--methods", "zellige,magic"), 2, "magic", "usp")


def test_errors_are_json_when_asked(zellige):
    result = zellige("plan", "missing.json", "--profile", "h200", "--json")
    assert result.code == 2 and result.json["code"] == 2 and "missing.json" in result.json["error"]
    result = zellige("plan", "--json")
    assert result.code == 2 and result.json["code"] == 2


def edited(example, tmp_path, name, edit):
    document = json.loads((example / f"{name}.json").read_text())
    edit(document)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "edit, fragments",
    [
        (lambda d: d.pop("ranks"), ["ranks is missing"]),
        (lambda d: d.update(rankz=d.pop("ranks")), ["rankz"]),
        (lambda d: d.update(ranks=0), ["ranks is 0"]),
        (lambda d: d.update(ranks=2.0), ["ranks is 2.0", "whole number"]),
        (lambda d: d.update(version=9), ["version is 9"]),
        (lambda d: d["sequences"][1].update(id="clip-7"), ["clip-7"]),
        (lambda d: d["sequences"][1].update(bucket="1081p"), ["1081p"]),
        (lambda d: d["catalog"]["buckets"][0].update(tokens=3601), ["3601", "3600"]),
        (lambda d: d["catalog"]["model"].update(heads="12"), ["heads"]),
    ],
)
def test_malformed_batch(zellige, example, tmp_path, edit, fragments):
    path = edited(example, tmp_path, "batch", edit)
    refuse(zellige("plan", path, "--profile", example / "profile.json"), 2, "batch.json", *fragments)


@pytest.mark.parametrize(
    "edit, fragments",
    [
        (lambda d: d["prices"].pop(0), ["720p", "[1, 1, 1]"]),
        (lambda d: d["prices"][0].update(time_us=0), ["time_us is 0"]),
        (lambda d: d["prices"][0].update(source="guessed"), ["guessed", "measured"]),
        (lambda d: d["prices"][3].update(config=[1, 5, 1]), ["5"]),
        (lambda d: d["memory"].update(usable_bytes=1), ["usable"]),
        (lambda d: d.pop("links"), ["links is missing"]),
    ],
)
def test_malformed_profile(zellige, example, tmp_path, edit, fragments):
    path = edited(example, tmp_path, "profile", edit)
    result = zellige("plan", example / "batch.json", "--profile", path)
    refuse(result, 2, "profile.json")
    flat = result.err.replace("[1,1,1]", "[1, 1, 1]")
    for fragment in fragments:
        assert fragment in flat, result.err


def test_batch_and_profile_of_other_buckets(zellige, example, tmp_path):
    def rename(document):
        document["catalog"]["buckets"][0]["name"] = "721p"
        for price in document["prices"]:
            if price["bucket"] == "720p":
                price["bucket"] = "721p"

    path = edited(example, tmp_path, "profile", rename)
    refuse(zellige("plan", example / "batch.json", "--profile", path), 2, "720p")


def test_a_plan_of_another_batch(zellige, example, high_v50):
    result = zellige("check", example / "plan.json", high_v50, "--profile", "h200")
    assert result.code == 2 and (result.err or result.out)


def test_a_plan_with_an_edited_sequence(zellige, example, tmp_path):
    path = edited(example, tmp_path, "plan", lambda d: d["sequences"][1].update(ranks=[1]))
    result = zellige("check", path, example / "batch.json", "--profile", example / "profile.json")
    lines = result.out.splitlines()
    assert result.code == 2 and lines[0].startswith("wrong-load: load_us[0]") and lines[-1].startswith("wrong-digest: ")


def test_infeasible_is_exit_3_with_words(zellige, example, tmp_path):
    path = edited(example, tmp_path, "profile", lambda d: d["memory"].update(usable_bytes=d["memory"]["base_bytes"] + 1_000_000_000))
    plan = tmp_path / "none.json"
    result = zellige("plan", example / "batch.json", "--profile", path, "-o", plan)
    assert result.code == 3, (result.out, result.err)
    assert "clip-7" in result.out or "480p10s" in result.out
    written = json.loads(plan.read_text())
    assert written["status"] == "infeasible" and written["sequences"] == [] and written["reason"]


def test_a_missing_solver_is_exit_5(zellige, example):
    result = zellige("plan", example / "batch.json", "--profile", example / "profile.json", "--method", "joint",
                     env={"ZELLIGE_ORTOOLS": "none"})  # fmt: skip
    refuse(result, 5, "OR-Tools")


def test_catalog_and_batch_arguments(zellige, root, tmp_path):
    demo = root / "examples/demo"
    refuse(zellige("catalog", "nowhere.csv"), 2, "nowhere.csv")
    refuse(zellige("catalog", demo / "manifest.csv", "--format", "opensorra"), 2, "opensorra", "opensora")
    refuse(zellige("catalog", demo / "manifest.csv", "--rules", demo / "manifest.csv"), 2, "manifest.csv")
    refuse(zellige("batch"), 2, "MANIFEST", "--workload")
    refuse(zellige("batch", "--workload", "high:V47x"), 2, "high:V47x")
    refuse(zellige("batch", "--workload", "hihg:V50"), 2, "hihg", "high")
    refuse(zellige("batch", demo / "manifest.csv", "--rules", demo / "rules.toml"), 2, "--ranks")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    refuse(zellige("catalog", empty), 2, "empty.csv")


def test_explain_refuses_what_is_no_plan(zellige, example):
    refuse(zellige("explain", example / "batch.json"), 2, "zellige.plan")


@pytest.mark.parametrize(
    "edit, fragment",
    [
        (lambda d: d.update(load_us=[]), "load_us has 0 entries"),
        (lambda d: d["sequences"][0].update(ranks=[0, 77]), "rank 77; ranks are 0 to 1"),
        (lambda d: d["sequences"][0].update(ranks=[]), "'clip-7' has 0 ranks"),
    ],
)
def test_explain_refuses_what_it_cannot_draw(zellige, example, tmp_path, edit, fragment):
    refuse(zellige("explain", edited(example, tmp_path, "plan", edit)), 2, fragment)


def test_output_that_cannot_be_written(zellige, example):
    refuse(zellige("plan", example / "batch.json", "--profile", example / "profile.json", "-o", "/nowhere/plan.json"), 2, "/nowhere/plan.json")


def test_nothing_goes_to_stdout_on_failure(zellige):
    result = zellige("plan", "missing.json", "--profile", "h200")
    assert result.out == "" and result.err.startswith("zellige: ")
    assert "\x1b" not in result.err, "no colour when not a terminal"


def test_outputs_do_not_overwrite_each_other(zellige, example, tmp_path):
    out = tmp_path / "both"
    result = zellige("plan", example / "batch.json", "--profile", example / "profile.json", "-o", out, "--report", out)
    refuse(result, 2, "--report", str(out))
    assert not out.exists()


def test_a_full_stdout_is_no_success(example):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [os.environ["ZELLIGE_COMMAND"], "check", example / "plan.json", example / "batch.json", "--profile",
             example / "profile.json"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert result.returncode == 2 and "stdout" in result.stderr


# ---- text from elsewhere

NASTY = ["esc\x1b[31m", "two\nlines", "c1\u009b31m", "bidi\u202e", "sep\u2028", "del\x7f", "bom\ufeff"]


@pytest.mark.parametrize("text", NASTY)
def test_text_that_is_not_printable_is_refused_and_never_printed_raw(zellige, example, tmp_path, text):
    for name, edit in [
        ("batch", lambda d: d["sequences"][0].update(id=text)),
        ("batch", lambda d: d["catalog"]["buckets"][0].update(name=text)),
        ("batch", lambda d: d["sequences"][0].update({text: 1})),
        ("plan", lambda d: d["sequences"][0].update(id=text)),
        ("plan", lambda d: d.update(method=text)),
        ("plan", lambda d: d.update(status="infeasible", reason=text)),
    ]:
        path = edited(example, tmp_path, name, edit)
        result = zellige("explain", path) if name == "plan" else zellige("plan", path, "--profile", "h200")
        refuse(result, 2, f"{name}.json")
        special = text.strip("abcdefghijklmnopqrstuvwxyz0123456789[")
        assert special not in result.err.rstrip("\n") and text not in result.out
        assert "\\u" in result.err or "\\n" in result.err or "U+" in result.err


def test_a_manifest_row_with_such_a_path_is_skipped_by_name(zellige, tmp_path):
    manifest = tmp_path / "clips.csv"
    manifest.write_text('path,num_frames,height,width,fps\na\x1b[2J.jpg,1,256,256,0\n"b\nc.jpg",1,256,256,0\nd.jpg,1,256,256,0\n')
    result = zellige("catalog", manifest)
    assert result.code == 0 and "\x1b" not in result.out
    assert "2 samples skipped" in result.out and "row 1" in result.out and "U+001B" in result.out
    result = zellige("catalog", manifest, "--json")
    assert result.json["usable"] == 1


@pytest.mark.parametrize(
    "edit, fragment",
    [
        (lambda d: d["load_us"].__setitem__(0, 5), "load_us[0] is 5; the plan's own sequences make it"),
        (lambda d: d["memory_bytes"].__setitem__(1, 5), "memory_bytes[1] is 5"),
        (lambda d: d.update(makespan_us=1), "makespan_us is 1"),
        (lambda d: d.update(split_count=7), "split_count is 7"),
    ],
)
def test_explain_refuses_a_plan_that_contradicts_itself(zellige, example, tmp_path, edit, fragment):
    refuse(zellige("explain", edited(example, tmp_path, "plan", edit)), 2, fragment)


def test_explain_says_whose_word_it_is(zellige, example):
    assert "as the plan says" in zellige("explain", example / "plan.json").out


# ---- outputs


def planning(example):
    return [example / "batch.json", "--profile", example / "profile.json"]


def test_a_dash_is_stdout_everywhere(zellige, example, root, tmp_path):
    demo = root / "examples/demo"
    batch = zellige("batch", "--workload", "high:V50", "-o", "-", cwd=tmp_path)
    assert batch.code == 0 and json.loads(batch.out)["format"] == "zellige.batch"
    catalog = zellige("catalog", demo / "manifest.csv", "--rules", demo / "rules.toml", "-o", "-", cwd=tmp_path)
    assert json.loads(catalog.out)["format"] == "zellige.catalog"
    assert json.loads(zellige("plan", *planning(example), "-o", "-", cwd=tmp_path).out)["format"] == "zellige.plan"
    assert zellige("plan", *planning(example), "--report", "-", cwd=tmp_path).out.lower().startswith("<!doctype html")
    assert zellige("compare", *planning(example), "--methods", "naive", "--report", "-", cwd=tmp_path).out.lower().startswith("<!doctype html")
    assert "traceEvents" in json.loads(zellige("explain", example / "plan.json", "--trace", "-", cwd=tmp_path).out)
    assert not list(tmp_path.iterdir()), "no file named -"


def test_one_stdout_for_one_output(zellige, example):
    refuse(zellige("plan", *planning(example), "-o", "-", "--json"), 2, "--json", "-o -", "stdout")
    refuse(zellige("plan", *planning(example), "-o", "-", "--report", "-"), 2, "-o -", "--report -")


def test_outputs_are_tried_before_the_work(zellige, example, tmp_path):
    for command, option in [("plan", "-o"), ("plan", "--report"), ("compare", "--report")]:
        refuse(zellige(command, *planning(example), option, tmp_path), 2, option, "directory")
        refuse(zellige(command, *planning(example), option, tmp_path / "none/x"), 2, option, "No such file")
        refuse(zellige(command, *planning(example), option, ""), 2, "must not be empty")
    refuse(zellige("explain", example / "plan.json", "--trace", tmp_path), 2, "--trace", "directory")


def test_an_output_does_not_overwrite_what_is_read(zellige, example, tmp_path):
    path = edited(example, tmp_path, "batch", lambda d: None)
    before = path.read_text()
    refuse(zellige("plan", path, "--profile", "h200", "-o", tmp_path / "." / "batch.json"), 2, "would overwrite", "BATCH")
    assert path.read_text() == before


# ---- numbers and words on the command line


def test_numbers_that_are_none(zellige, example, root):
    demo = root / "examples/demo"
    draw = ["batch", demo / "manifest.csv", "--rules", demo / "rules.toml", "--ranks", 4, "--tokens-per-rank", 4096]
    for value in ("nan", "inf", "-0.1", "1.5", "x"):
        refuse(zellige(*draw, "--video-share", value), 2, "--video-share", value, "0 to 1")
    for value in ("-1", "18446744073709551616", "1.0", "nan"):
        refuse(zellige(*draw, "--seed", value), 2, "--seed", value, "whole number")
    refuse(zellige(*draw, "--skip", 2147483647), 2, "--skip", "2147483647", "1000000")
    for value in ("inf", "nan", "0", "-1"):
        refuse(zellige("plan", *planning(example), "--time-limit", value), 2, "--time-limit", value, "above 0")
    for value in ("-1", "2147483648"):
        refuse(zellige("plan", *planning(example), "--seed", value), 2, "--seed", value, "2147483647")
    refuse(zellige("batch", "--workload", "high:V50", "--seed", 3), 2, "--seed", "MANIFEST")
    refuse(zellige("batch", "--workload", "high:V50", "--ranks", 1 << 20), 2, "--ranks", "65536")


def test_layouts_where_none_is_taken(zellige, example):
    refuse(zellige("plan", *planning(example), "--layout", "g1n2"), 2, "zellige", "g1n2", "knapformer")
    refuse(zellige("compare", *planning(example), "--methods", "naive,zellige:g1n2"), 2, "zellige", "g1n2")
    refuse(zellige("compare", *planning(example), "--methods", "knapformer:"), 2, "knapformer:", "colon")
    refuse(zellige("compare", *planning(example), "--methods", "naive,usp,naive"), 2, "naive", "twice")


def test_compare_without_a_single_plan(zellige, example, tmp_path):
    path = edited(example, tmp_path, "profile", lambda d: d["memory"].update(usable_bytes=d["memory"]["base_bytes"] + 1_000_000_000))
    result = zellige("compare", example / "batch.json", "--profile", path, "--methods", "zellige,naive", "--json")
    assert result.code == 3 and result.json["code"] == 3 and len(result.json["methods"]) == 2


# ---- files


def test_what_a_parser_says_is_said_once(zellige, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"format": "zellige.batch",\n  x}')
    result = zellige("plan", path, "--profile", "h200")
    refuse(result, 2, "x.json: not JSON at line 2")
    assert "json.exception" not in result.err and result.err.count("line 2") == 1


def test_toml_is_called_toml(zellige, root, tmp_path):
    demo = root / "examples/demo"
    for line, fragments in [("fps = nan", ["[toml]", "fps is nan"]), ("fps = inf", ["fps is inf"]), ("fp = 2", ["[toml]", "did you mean 'fps'"])]:
        rules = tmp_path / "rules.toml"
        rules.write_text((demo / "rules.toml").read_text().replace("fps = 16", line))
        refuse(zellige("catalog", demo / "manifest.csv", "--rules", rules), 2, *fragments)


def test_too_many_ranks_are_refused(zellige, example, tmp_path):
    refuse(zellige("plan", edited(example, tmp_path, "batch", lambda d: d.update(ranks=1 << 20)), "--profile", "h200"), 2, "ranks is 1048576", "65536")
    path = edited(example, tmp_path, "batch", lambda d: d.update(ranks=1 << 16))
    result = zellige("plan", path, "--profile", "h200", "--method", "disjoint")
    assert result.code == 3 and "at most 4096 ranks" in result.out


def test_empty_files_are_called_empty(zellige, example, root, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    batch, demo = example / "batch.json", root / "examples/demo"
    wanted = ("empty", "it must hold one JSON object")
    refuse(zellige("plan", empty, "--profile", "h200"), 2, *wanted)
    refuse(zellige("plan", batch, "--profile", empty), 2, *wanted)
    refuse(zellige("check", empty, batch, "--profile", "h200"), 2, *wanted)
    refuse(zellige("explain", empty), 2, *wanted)
    refuse(zellige("catalog", demo / "manifest.csv", "--rules", empty), 2, "is empty", "TOML")
    refuse(zellige("catalog", empty), 2, "a manifest has a record for each image or clip")
    header = tmp_path / "header.csv"
    header.write_text("path,num_frames,height,width\n")
    refuse(zellige("batch", header, "--rules", demo / "rules.toml", "--ranks", 2, "--tokens-per-rank", 9), 2, "header.csv", "holds no records", "at least one")
    nameless = tmp_path / "nameless.json"
    nameless.write_text("{}")
    refuse(zellige("plan", nameless, "--profile", "h200"), 2, 'format is missing; it must be "zellige.batch"')


def test_a_header_of_a_thousand_columns_is_no_message_of_a_thousand_words(zellige, tmp_path):
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{i}" for i in range(1000)) + "\n" + ",".join("1" for _ in range(1000)) + "\n")
    result = zellige("catalog", wide)
    refuse(result, 2, "'c0'", "and 976 more")
    assert len(result.err) < 1000


def test_check_of_a_plan_that_is_none_is_no_success(zellige, example, tmp_path):
    """Whoever runs what `check` lets pass must not be handed a file without a placement."""
    profile = edited(example, tmp_path, "profile", lambda p: p["memory"].update(usable_bytes=p["memory"]["base_bytes"] + 1))
    plan = tmp_path / "plan.json"
    assert zellige("plan", example / "batch.json", "--profile", profile, "-o", plan).code == 3
    result = zellige("check", plan, example / "batch.json", "--profile", profile)
    assert result.code == 3 and "holds no placement" in result.out, result.out
    assert zellige("check", plan, example / "batch.json", "--profile", profile, "--json").json["code"] == 3


def test_columns_line_up_whatever_the_letters(zellige, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[model]\npreset = "tiny"\n[sampling]\nfps = 16\nvideo_share = 0.5\n'
        '[[bucket]]\nname = "gr\u00f6\u00dfe"\nkind = "image"\nsize = [256, 256]\n[[bucket]]\nname = "\u6b63\u65b9\u5f62"\nkind = "image"\nsize = [512, 512]\n'
    )
    manifest = tmp_path / "m.csv"
    manifest.write_text("path,num_frames,height,width\na.png,1,256,256\nb.png,1,512,512\n")
    result = zellige("catalog", manifest, "--rules", rules)
    assert result.code == 0, result.err
    lines = result.out.splitlines()[2:5]

    def place(line):
        """Where the second column ends, in columns of a terminal."""
        return sum(2 if "\u2e80" <= letter else 1 for letter in line[: line.index("image") + 5]) if "image" in line else line.index("kind") + 4

    assert len({place(line) for line in lines}) == 1, result.out
