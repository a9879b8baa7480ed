# SPDX-License-Identifier: Apache-2.0
"""Writes docs/benchmarks.md and the tables of docs/evaluation.md from bench/results/*.json: they show what the files hold
and nothing else.

python3 bench/tables.py
"""

import json
from pathlib import Path

import evaluation_tables

ROOT = Path(__file__).resolve().parents[1]

# Result -> what it measures, and the columns to show: field, heading, divisor, format.
MS, S = 1e3, 1e6
TABLES = {
    "catalog_manifest": (
        "A CSV manifest of a million rows read, cut to buckets and summed up. Goal: 5 s, 1 GiB.",
        [("rows", "rows", 1, "{:,.0f}"), ("read_us", "read, s", S, "{:.2f}"), ("bucket_us", "buckets, s", S, "{:.2f}"),
         ("total_us", "together, s", S, "{:.2f}"), ("peak_rss_bytes", "memory, MiB", 2**20, "{:.0f}")],
    ),
    "plan_large": (
        "Batches of 100,000 sequences planned without OR-Tools, checked and scored. Goal: 1 s.",
        [("ranks", "ranks", 1, "{:.0f}"), ("videos_in_1000", "videos in 1,000", 1, "{:.0f}"), ("plan_us", "plan, ms", MS, "{:.1f}"),
         ("check_us", "check, ms", MS, "{:.1f}"), ("score_us", "score, ms", MS, "{:.1f}"), ("slowest_total_us", "slowest run, ms", MS, "{:.1f}")],
    ),
    "placement_check": (
        "A placement of 100,000 sequences completed, checked, scored and digested.",
        [("ranks", "ranks", 1, "{:.0f}"), ("complete_us", "complete, ms", MS, "{:.1f}"), ("check_us", "check, ms", MS, "{:.1f}"),
         ("score_us", "score, ms", MS, "{:.1f}"), ("digest_us", "digest, ms", MS, "{:.1f}"), ("write_json_us", "JSON, ms", MS, "{:.0f}")],
    ),
    "lowering": (
        "One rank's schedule of a step of 64 ranks with 24 split and 4,000 whole sequences. Goal: 5 ms.",
        [("waves", "waves", 1, "{:.0f}"), ("keep_kv", "keep K/V", None, "{}"), ("median_rank_us", "median rank, ms", MS, "{:.2f}"),
         ("slowest_rank_us", "slowest rank, ms", MS, "{:.2f}")],
    ),
    "planner_high_v50": (
        "`high:V50` by CP-SAT, prices of the estimated h200 profile: the paper's two-stage planner and the joint reference, with ECF in "
        "both forms and without. A row at the time limit did not finish.",
        [("planner", "planner", None, "{}"), ("form", "form", None, "{}"), ("status", "status", None, "{}"), ("solve_us", "median, s", S, "{:.3f}"),
         ("limit_s", "limit, s", 1, "{:.0f}"), ("makespan_us", "makespan, s", S, "{:.3f}"), ("split_count", "splits", 1, "{:.0f}")],
    ),
    "planner_suites": (
        "The own solver's Anchor Placement, both rounds, on random batches of the four suites: processor time of the solver, of the "
        "verification of its proofs, and of both. Gap: of the largest anchor load over its proved bound. Goal up to 32 ranks: 15 ms.",
        [("instances", "suite", None, "{}"), ("ranks", "ranks", 1, "{:.0f}"), ("batches", "batches", 1, "{:.0f}"), ("cpu_p50_ms", "p50, ms", 1, "{:.2f}"),
         ("cpu_p99_ms", "p99, ms", 1, "{:.2f}"), ("cpu_max_ms", "max, ms", 1, "{:.2f}"), ("verify_p50_ms", "verification p50, ms", 1, "{:.2f}"),
         ("verify_p99_ms", "p99, ms", 1, "{:.2f}"), ("solve_and_verify_p99_ms", "both p99, ms", 1, "{:.2f}"),
         ("load_gap_p50", "gap p50", 0.01, "{:.3f}%"), ("load_gap_p90", "p90", 0.01, "{:.3f}%"), ("load_gap_p99", "p99", 0.01, "{:.3f}%"),
         ("load_gap_above_1e-4", "gap above 1e-4", 1, "{:.0f}"), ("split_uncertified", "splits not proved", 1, "{:.0f}"),
         ("unknown", "no placement found", 1, "{:.0f}"), ("proofs_beyond_the_planners_limit", "proofs too long for the planner", 1, "{:.0f}")],
    ),
    "filler_repair": (
        "Methods two-stage (the paper's Alg. 1) and zellige (with repair) over what is proved for all placements of the batch: the bound "
        "that the plan carries, that of the same method with more work, or CP-SAT's with the fillers as sand, the largest. Modelled prices; processor time of planning. Goal: 0.1%. Cells without numbers "
        "fit no placement.",
        [("workload", "workload", None, "{}"), ("device_priced", "device priced", None, "{}"), ("two_stage_over_bound", "two-stage over the bound", 0.01, "{:.3f}%"),
         ("zellige_over_bound", "zellige over the bound", 0.01, "{:.3f}%"),
         ("zellige_over_its_own_bound", "as the plan says", 0.01, "{:.3f}%"), ("meets_goal", "meets the goal", None, "{}"),
         ("two_stage_cpu_ms", "two-stage, ms", 1, "{:.2f}"), ("zellige_cpu_ms", "zellige, ms", 1, "{:.2f}"), ("zellige_certified", "certified", None, "{}")],
    ),
    "plan_ahead": (
        "What a step waits for its plan, which is made while the step before runs; steps are simulated by sleeping. Goal: 1% of a step.",
        [("ranks", "ranks", 1, "{:.0f}"), ("most_sequences", "most sequences", 1, "{:.0f}"), ("simulated_step_ms", "step, ms", 1, "{:.0f}"),
         ("solve_p50_us", "planning p50, ms", MS, "{:.2f}"), ("wait_p50_us", "wait p50, ms", MS, "{:.3f}"), ("wait_p99_us", "p99, ms", MS, "{:.3f}"),
         ("wait_share_of_step", "wait of the step", 0.01, "{:.2f}%")],
    ),
    "host_memory": (
        "Memory that one training step of the demo's model takes on thread ranks (the kernel's peak of the process, less what it holds before), "
        "and the estimate by which `train` refuses runs that do not fit.",
        [("ranks", "ranks", 1, "{:.0f}"), ("tokens_per_rank", "tokens a rank", 1, "{:,.0f}"), ("checkpointing", "checkpointing", None, "{}"),
         ("estimated_bytes", "estimated, MiB", 1 << 20, "{:.0f}"), ("measured_bytes", "measured, MiB", 1 << 20, "{:.0f}"),
         ("measured_over_estimated", "measured / estimated", 1, "{:.2f}")],
    ),
    "start_up": (
        "Start of the command, least and median of 31 runs: `zellige` loads no libtorch, `zellige-torch` is what a subcommand that needs it "
        "becomes. The last column is the least time over that with libtorch.",
        [("what", "command", None, "{}"), ("least_us", "least, ms", MS, "{:.1f}"), ("median_us", "median, ms", MS, "{:.1f}"),
         ("least_to_with_torch", "of zellige-torch", 0.01, "{:.1f}%")],
    ),
    "engine_overhead": (
        "The engine on four thread ranks against dense attention of the same sequences on one thread, forward and backward of two layers: "
        "processor time of all ranks together over that of the dense run, less one. Goal: 15% at the demo's sizes.",
        [("work", "work", None, "{}"), ("tokens", "tokens", 1, "{:,.0f}"), ("dense_cpu_s", "dense, s", 1, "{:.3f}"),
         ("engine_cpu_s", "engine, s", 1, "{:.3f}"), ("overhead", "overhead", 0.01, "{:+.1f}%")],
    ),
}  # fmt: skip
TABLES["planner_adversarial"] = ("As planner_suites, on instances made to be hard.", TABLES["planner_suites"][1])
TABLES["planner_scale"] = ("As planner_suites, from 64 to 1,024 ranks.", TABLES["planner_suites"][1])


def cell(row, field, divisor, shape):
    value = row.get(field)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shape.format(value if divisor is None else value / divisor)


def main():
    out = ["# Benchmarks", "", "Written by `python3 bench/tables.py` from bench/results/, which `bench/run.sh` writes. Each file names its commit and"
           " command.", "The machines are shared and noisy: compare what stands in one table, not across tables."]  # fmt: skip
    for name in sorted(TABLES):
        path = ROOT / f"bench/results/{name}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        text, columns = TABLES[name]
        out += ["", f"## {name}", "", text, "", f"{result['device']}, {result['date'][:10]}, commit {result['commit'][:8]}.", ""]
        out += ["| " + " | ".join(heading for _, heading, _, _ in columns) + " |", "|" + "---|" * len(columns)]
        for row in result["rows"]:
            out.append("| " + " | ".join(cell(row, field, divisor, shape) for field, _, divisor, shape in columns) + " |")
    (ROOT / "docs/benchmarks.md").write_text("\n".join(out) + "\n")
    evaluation_tables.update()


if __name__ == "__main__":
    main()
