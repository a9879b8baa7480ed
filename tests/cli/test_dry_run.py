# SPDX-License-Identifier: Apache-2.0
"""zellige dry-run: exit codes, names of samples, and that what it suggests is true when it is followed."""

from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"

RULES = """[model]
preset = "wan2.1-t2v-1.3b"
[[bucket]]
name = "256p"
kind = "image"
size = [256, 256]
[[bucket]]
name = "480p5s"
kind = "video"
size = [480, 832]
frames = 81
[[bucket]]
name = "1080p40s"
kind = "video"
size = [1088, 1920]
frames = 641
[sampling]
video_share = 0.9
"""


@pytest.fixture
def long_videos(tmp_path):
    """A manifest with one video that is too long for two small devices, and its rules."""
    rows = ["path,text,num_frames,height,width,fps"]
    rows += [f"images/{i}.jpg,a,1,256,256," for i in range(40)]
    rows += [f"clips/short{i}.mp4,a,81,480,832,16" for i in range(6)]
    rows += ["clips/endless.mp4,a,641,1088,1920,16"]
    manifest, rules = tmp_path / "m.csv", tmp_path / "rules.toml"
    manifest.write_text("\n".join(rows) + "\n")
    rules.write_text(RULES)
    return manifest, rules


def test_the_demo_fits(zellige):
    words = ("dry-run", DEMO / "manifest.csv", "--rules", DEMO / "rules.toml", "--profile", "h200", "--ranks", 4, "--tokens-per-rank", 4096)
    result = zellige(*words)
    assert result.code == 0, result.err
    assert "no step runs out of memory" in result.out
    assert result.err == ""  # no progress where stderr is no terminal
    answer = zellige(*words, "--json").json
    assert answer["code"] == 0 and answer["complete"] and answer["drawn"] == answer["samples"] == 171
    assert answer["out_of_memory"] == 0 and answer["failing"] == []
    assert [s["predicted_us"] for s in answer["longest"]] == sorted((s["predicted_us"] for s in answer["longest"]), reverse=True)


def test_a_step_that_runs_out_is_named_and_the_remedy_is_true(zellige, long_videos):
    manifest, rules = long_videos
    words = ["dry-run", manifest, "--rules", rules, "--profile", "a6000", "--tokens-per-rank", 40000, "--json", "--ranks"]
    result = zellige(*words, 2)
    assert result.code == 3 and result.json["code"] == 3
    assert result.json["out_of_memory"] >= 1
    step = result.json["failing"][0]
    assert [s["source"] for s in step["oversized"]] == ["clips/endless.mp4"]
    assert step["oversized"][0]["over_bytes"] > 0
    remedies = {remedy["kind"]: remedy for remedy in step["remedies"]}

    assert zellige(*words, remedies["more-ranks"]["ranks"]).code == 0
    assert zellige(*words, remedies["more-ranks"]["ranks"] // 2).code == 3

    frames = remedies["fewer-frames"]["frames"]
    rules.write_text(RULES.replace("frames = 641", f"frames = {frames}"))
    assert zellige(*words, 2).code == 0
    rules.write_text(RULES.replace("frames = 641", f"frames = {frames + 4}"))
    assert zellige(*words, 2).code == 3
    assert remedies["smaller-bucket"]["to_bucket"] == "480p5s"

    rules.write_text(RULES)
    text = zellige(*words[:-2], "--ranks", 2)
    assert text.code == 3 and "clips/endless.mp4" in text.out and f"at most {frames} frames" in text.out


def test_a_time_that_is_too_short_is_no_answer(zellige):
    result = zellige("dry-run", DEMO / "manifest.csv", "--rules", DEMO / "rules.toml", "--profile", "h200", "--ranks", 4,
                     "--tokens-per-rank", 4096, "--time-limit", 1e-9, "--json")
    assert result.code == 4 and not result.json["complete"]
    result = zellige("dry-run", DEMO / "manifest.csv", "--rules", DEMO / "rules.toml", "--profile", "h200", "--ranks", 4,
                     "--tokens-per-rank", 4096, "--time-limit", 1e-9)
    assert result.code == 4 and "cut short: " in result.out and "no step runs" not in result.out, result.out


def test_a_profile_with_checkpointing_is_no_run_without(zellige, example):
    result = zellige("dry-run", DEMO / "manifest.csv", "--rules", DEMO / "rules.toml", "--profile", example / "profile.json",
                     "--ranks", 2, "--tokens-per-rank", 4096, "--no-checkpointing")
    assert result.code == 2 and "checkpointing" in result.err
