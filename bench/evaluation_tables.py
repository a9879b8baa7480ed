# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/evaluation.md, from bench/results/*.json. Run by bench/tables.py.

A block of the document between `<!-- table NAME -->` and `<!-- end -->` is replaced by what TABLES[NAME] makes of the
results; all other text stays. To add one: write a function that takes the rows of a result and returns a table.
"""

import json
import re
from pathlib import Path

import gpu_tables

ROOT = Path(__file__).resolve().parents[1]
SUITES = ["high", "low", "a800x16", "a6000x32"]
SHARES = [35, 40, 45, 50, 55, 60]
METHODS = ["zellige", "two-stage", "joint", "naive", "karmarkar-karp", "adaptiveload", "usp", "knapformer", "megatron", "flexsp", "disjoint"]


def load(name):
    path = ROOT / f"bench/results/{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def markdown(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def mean(values):
    return sum(values) / len(values)


def spread(values, shape="{:.2f}"):
    """'least-most (mean)', or '-' without values."""
    if not values:
        return "-"
    return f"{shape.format(min(values))}-{shape.format(max(values))} ({shape.format(mean(values))})"


def find(rows, **wanted):
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def is_papers_device(row, memory_binds=True):
    return row["profile"] == ("a6000" if row["suite"] == "a6000x32" else "a800") and row.get("memory_binds", True) == memory_binds


def suites(rows, keep):
    """Makespan over the load floor, a suite and method a row, a share a column."""
    out = []
    for suite in SUITES:
        for method in METHODS:
            cells = {row["video_share_percent"]: row for row in find(rows, suite=suite, method=method) if keep(row)}
            if not cells:
                continue
            line = [suite, method]
            for share in SHARES:
                row = cells.get(share)
                line.append("" if row is None else f"{1 + row['over_floor']:.3f}" if "over_floor" in row else row["outcome"])
            out.append(line)
    return markdown(["suite", "method"] + [f"V{share}" for share in SHARES], out)


def speedups(rows):
    """Modelled makespans of baselines over Zellige's, with the ranges that the paper measured."""
    paper = {
        ("high", "knapformer"): "1.10-1.31 (1.22)", ("high", "usp"): "(1.33)", ("high", "adaptiveload"): "(2.28)",
        ("low", "knapformer"): "1.08-1.22 (1.14)", ("low", "adaptiveload"): "5.33-7.19",
        ("a800x16", "knapformer"): "1.12-1.48 (1.25)", ("a800x16", "usp"): "1.63-2.06 (1.76)", ("a800x16", "adaptiveload"): "OOM",
        ("a6000x32", "knapformer"): "1.27-1.54 (1.42)", ("a6000x32", "usp"): "1.72-2.45 (1.95)", ("a6000x32", "adaptiveload"): "OOM",
    }  # fmt: skip
    out = []
    for suite in SUITES:
        for method in ["knapformer", "usp", "adaptiveload", "naive", "megatron", "flexsp", "disjoint"]:
            line = [suite, method, paper.get((suite, method), "")]
            for keep in (is_papers_device, lambda row: is_papers_device(row, False), lambda row: row["profile"] == "h200"):
                ours = {row["video_share_percent"]: row for row in find(rows, suite=suite, method="zellige") if keep(row)}
                theirs = [row for row in find(rows, suite=suite, method=method) if keep(row)]
                ratios = [row["makespan_us"] / ours[row["video_share_percent"]]["makespan_us"]
                          for row in theirs if "makespan_us" in row and "makespan_us" in ours[row["video_share_percent"]]]  # fmt: skip
                missing = len(theirs) - len(ratios)
                note = f", {missing} of {len(theirs)} without a plan" if missing and ratios else ""
                none = sorted({row["outcome"] for row in theirs}) if theirs and not ratios else []
                line.append(", ".join(none) if none else spread(ratios) + note)
            if line[2] or any(cell != "-" for cell in line[3:]):
                out.append(line)
    return markdown(["suite", "baseline", "paper, measured", "paper's device, modelled", "the same without a memory limit", "H200, modelled"], out)


def planner(rows):
    """What is proved of our plans and what they took, six shares a row."""
    out = []
    for suite in SUITES:
        for profile in ("a800", "a6000", "h200"):
            ours = [row for row in find(rows, suite=suite, profile=profile, method="zellige") if row.get("memory_binds", True)]
            if not ours:
                continue
            joint = {row["video_share_percent"]: row for row in find(rows, suite=suite, profile=profile, method="joint")}
            planned = [row for row in ours if "over_bound" in row]
            over_joint = [row["makespan_us"] / joint[row["video_share_percent"]]["makespan_us"] - 1
                          for row in planned if "makespan_us" in joint.get(row["video_share_percent"], {})]  # fmt: skip
            out.append([suite, planned[0]["ranks"] if planned else "", profile, f"{len(planned)} of {len(ours)}",
                        spread([100 * row["over_bound"] for row in planned], "{:.3f}"),
                        spread([100 * x for x in over_joint], "{:+.3f}") if over_joint else "not run",
                        sum(1 for row in planned if row["certified"]),
                        spread([row["split_count"] for row in planned], "{:.0f}"),
                        spread([row["plan_cpu_us"] * 1e-3 for row in planned], "{:.1f}")])  # fmt: skip
    return markdown(["suite", "ranks", "profile", "planned", "over the proved bound, %", "over joint, %", "anchors certified", "splits",
                     "planning, ms of processor time"], out)  # fmt: skip


def table3(rows):
    """Processor time, and what the two-stage plan's makespan is over the joint one's."""
    out = []
    for profile in dict.fromkeys(row["profile"] for row in rows):
        cells = {(row["method"], row["video_share_percent"]): row for row in find(rows, profile=profile)}
        for method in dict.fromkeys(row["method"] for row in rows):
            line = [profile, method + ", s"]
            for share in SHARES:
                row = cells[method, share]
                time = f"{row['plan_cpu_us'] * 1e-6:.3f}" if row["plan_cpu_us"] < 1e6 else f"{row['plan_cpu_us'] * 1e-6:.1f}"
                line.append(time + ("" if row.get("certified") else " (open)" if "makespan_us" in row else f" ({row['outcome']})"))
            out.append(line)
        for method in ("two-stage", "zellige"):
            if (method, SHARES[0]) not in cells:
                continue
            line = [profile, f"{method} over joint"]
            for share in SHARES:
                ours, joint = cells[method, share], cells["joint", share]
                both = "makespan_us" in ours and "makespan_us" in joint
                line.append(f"{100 * (ours['makespan_us'] / joint['makespan_us'] - 1):+.3f}%" if both else "")
            out.append(line)
            line = [profile, f"{method} over the proved bound"]
            out.append(line + [f"{100 * cells[method, share]['over_bound']:.3f}%" if "over_bound" in cells[method, share] else "" for share in SHARES])
    return markdown(["profile", "planner"] + [f"V{share}" for share in SHARES], out)


def scale(rows):
    out = []
    for suite in SUITES:
        for ranks in sorted({row["ranks"] for row in rows}):
            ours = [row for row in find(rows, suite=suite, ranks=ranks, method="zellige") if "over_bound" in row]
            if not ours:
                cells = find(rows, suite=suite, ranks=ranks, method="zellige")
                out.append([suite, ranks, ", ".join(sorted({row["outcome"] for row in cells}))] + [""] * 6)
                continue
            line = [suite, ranks, spread([100 * row["over_bound"] for row in ours], "{:.3f}"),
                    spread([1 + row["over_floor"] for row in ours], "{:.3f}"), spread([row["split_count"] for row in ours], "{:.0f}"),
                    spread([row["plan_cpu_us"] * 1e-3 for row in ours], "{:.1f}")]  # fmt: skip
            by_share = {row["video_share_percent"]: row["makespan_us"] for row in ours}
            for method in ("knapformer" if ranks <= 32 else "knapformer-g4", "usp", "adaptiveload"):
                cells = find(rows, suite=suite, ranks=ranks, method=method)
                ratios = [row["makespan_us"] / by_share[row["video_share_percent"]] for row in cells
                          if "makespan_us" in row and row["video_share_percent"] in by_share]  # fmt: skip
                line.append(spread(ratios) if ratios else ", ".join(sorted({row["outcome"] for row in cells})))
            out.append(line)
    return markdown(["suite", "ranks", "over the bound, %", "over the floor", "splits", "planning, ms of processor time", "KnapFormer / ours",
                     "USP / ours", "AdaptiveLoad / ours"], out)  # fmt: skip


def fig1(rows):
    out = [[row["bucket"], f"{row['tokens']:,}", f"{row['memory_bytes'] / 2**30:.2f}", f"{row['memory_over_256p']:,.1f}",
            f"{row['layer_forward_flop'] * 1e-12:,.2f}", f"{row['flop_over_256p']:,.1f}", f"{row['attention_share']:.0%}"]
           for row in find(rows, panel="a")]  # fmt: skip
    lines = markdown(["bucket", "tokens", "memory, GiB", "x 256p", "operations a layer, TFLOP", "x 256p", "self-attention"], out)
    out = [[row["rank_holds"], f"{row['tokens']:,}", row["prices"].removeprefix("modelled: "), f"{row['load_us'] * 1e-6:.1f}"]
           for row in find(rows, panel="b")]  # fmt: skip
    return lines + [""] + markdown(["a rank holds", "tokens", "device", "load, s"], out)


def fig3a(rows):
    out = []
    for mix in dict.fromkeys(row["mix"] for row in rows):
        for method in METHODS:
            cells = {row["video_share_percent"]: row for row in find(rows, mix=mix, method=method)}
            if cells:
                out.append([mix, method] + [f"{cells[share]['step_imbalance']:.3f}" if "step_imbalance" in cells[share]
                                            else cells[share]["outcome"] for share in SHARES])  # fmt: skip
    return markdown(["batch", "method"] + [f"V{share}" for share in SHARES], out)


def fig6(rows):
    out = []
    for row in rows:
        device = row["prices"].removeprefix("modelled: ")
        if "moved_bytes" not in row:
            out.append([device, row["method"], "", row["outcome"]] + [""] * 7)
            continue
        over = lambda key: f"{row[key]:.1%}" if key in row else ""  # noqa: E731
        out.append([device, row["method"], row["solver"], f"{row['makespan_us'] * 1e-6:.2f}", row["split_count"],
                    f"{row['moved_bytes'] / 2**30:,.1f}", f"{row['moved_all_gather_bytes'] / 2**30:,.1f}",
                    f"{row['moved_ulysses_bytes'] / 2**30:,.1f}", f"{row['moved_ring_bytes'] / 2**30:,.1f}",
                    over("moved_over_usp") + " / " + over("moved_over_knapformer"), f"{row['imbalance']:.2f}"])  # fmt: skip
    return markdown(["device", "method", "layout", "makespan, s", "splits", "moved, GiB", "all-gather", "Ulysses", "ring", "of USP's / of KnapFormer's",
                     "largest / mean load"], out)  # fmt: skip


def price_error(rows):
    out = []
    for kind in dict.fromkeys(row["error_kind"] for row in rows):
        for error in sorted({row["error"] for row in rows}):
            line = [kind, f"{error:.0%}"]
            for method in ("zellige", "knapformer", "usp", "adaptiveload", "megatron", "naive"):
                cells = [row for row in find(rows, error_kind=kind, error=error, method=method) if row["plans"] > 0]
                plans = sum(row["plans"] for row in cells)
                if not plans:
                    line.append("OOM")
                    continue
                regret = sum(row["regret_mean"] * row["plans"] for row in cells) / plans
                worst = max(row["regret_max"] for row in cells)
                floor = sum(row["over_floor_mean"] * row["plans"] for row in cells) / plans
                line.append(f"{100 * regret:.2f} / {100 * worst:.2f} / {1 + floor:.3f}")
            out.append(line)
    return markdown(["error", "up to", "Zellige", "KnapFormer", "USP", "AdaptiveLoad", "Megatron", "naive"], out)


def overlap_loads(rows):
    """What planning by overlapped loads gains, a suite and link a row, six shares together."""
    out = []
    for suite in SUITES:
        for link in sorted({row["link_gb_per_s"] for row in rows}, reverse=True):
            cells = {(row["method"], row["planned_by"], row["video_share_percent"]): row
                     for row in find(rows, suite=suite, link_gb_per_s=link) if "overlapped_makespan_us" in row}  # fmt: skip
            shares = [share for share in SHARES if ("zellige", "overlapped", share) in cells and ("zellige", "additive", share) in cells]
            ours = [cells["zellige", "overlapped", share] for share in shares]
            additive = [cells["zellige", "additive", share] for share in shares]
            gains = [100 * (theirs["overlapped_makespan_us"] / row["overlapped_makespan_us"] - 1) for theirs, row in zip(additive, ours)]
            others = [cells["knapformer", "overlapped", share]["overlapped_makespan_us"] / cells["zellige", "overlapped", share]["overlapped_makespan_us"]
                      for share in shares if ("knapformer", "overlapped", share) in cells]  # fmt: skip
            out.append([suite, ours[0]["ranks"], link, spread(gains),
                        spread([100 * (row["overlapped_makespan_us"] / row["overlapped_bound_us"] - 1) for row in ours]),
                        spread([row["overlapped_makespan_us"] / row["floor_us"] for row in ours], "{:.3f}"), spread(others),
                        spread([100 * row["largest_exchange_us"] / row["overlapped_makespan_us"] for row in ours], "{:.0f}"),
                        f"{mean([row['plan_cpu_us'] for row in additive]) * 1e-3:.1f} / {mean([row['plan_cpu_us'] for row in ours]) * 1e-3:.1f}"])  # fmt: skip
    return markdown(["suite", "ranks", "link, GB/s", "gain over planning by additive loads, %", "over the proved bound, %", "over the floor",
                     "KnapFormer's over ours", "largest exchange, % of the makespan", "planning additive / overlapped, ms of processor time"], out)  # fmt: skip


def checked_batches(rows):
    out = []
    outcomes = ["optimal", "feasible", "OOM", "timeout", "unknown"]
    for which in dict.fromkeys(row["class"] for row in rows):
        of_class = find(rows, **{"class": which})
        batches = sum(row["batches"] for row in find(of_class, method="zellige"))
        out.append([which, f"{batches:,}", f"{sum(row['batches'] for row in of_class):,}", max(row["most_ranks"] for row in of_class)]
                   + [f"{sum(row[outcome] for row in of_class):,}" for outcome in outcomes] + [sum(row["refused"] for row in of_class)])  # fmt: skip
    total = ["all", f"{sum(row['batches'] for row in find(rows, method='zellige')):,}", f"{sum(row['batches'] for row in rows):,}",
             max(row["most_ranks"] for row in rows)]  # fmt: skip
    out.append(total + [f"{sum(row[outcome] for row in rows):,}" for outcome in outcomes] + [sum(row["refused"] for row in rows)])
    return markdown(["class", "batches", "plans asked for", "most ranks"] + outcomes + ["refused"], out)


def profile_accuracy(rows):
    out = [[row["composition"], f"{row['measured_us'] / 1e6:.3f}", f"{row['predicted_us'] / 1e6:.3f}", f"{100 * row['error']:+.2f}"]
           for row in rows if row["composition"] != "all"]  # fmt: skip
    total = find(rows, composition="all")[0]
    out.append(["mean absolute error", "", f"{total['mae_us'] / 1e6:.3f}", f"{100 * total['mape']:.2f}"])
    out.append(["the same with exchanges taken as hidden", "", "", f"{100 * total['exchange_hidden_mape']:.2f}"])
    return markdown(["videos' configurations", "measured, s", "predicted, s", "off by, %"], out)


def memory_accuracy(rows):
    gib = 1 << 30
    out = []
    for row in rows:
        if row["composition"] == "all":
            continue
        measured, base = row["measured_need_bytes"], row["base_bytes"]
        peak = row["predicted_from_peaks_bytes"] + row["workspace_bytes"]
        out.append([row["composition"], f"{(base + measured) / gib:.3f}", f"{(base + peak) / gib:.3f}", f"{100 * ((base + peak) / (base + measured) - 1):+.2f}",
                    f"{100 * (row['analytic_need_bytes'] / measured - 1):+.1f}"])  # fmt: skip
    total = find(rows, composition="all")[0]
    out.append(["mean absolute error", "", "", f"{100 * total['from_peaks_peak_mape']:.2f}", f"{100 * total['analytic_need_mape']:.1f}"])
    return markdown(["videos' configurations", "peak measured, GiB", "predicted, GiB", "off by, %", "need by the analytical model alone, %"], out)


def profile_h200(rows):
    out = []
    for row in rows:
        if "error" in row:
            out.append([row["bucket"], f"{row['tokens']:,}", " ".join(map(str, row["config"])), f"{row['measured_us'] / 1e6:.3f}",
                        f"{100 * row['spread']:.1f}" if row["repeats"] > 1 else "-", f"{row['estimated_us'] / 1e6:.3f}", f"{100 * row['error']:+.1f}"])  # fmt: skip
    errors = [abs(row["error"]) for row in rows if "error" in row]
    out.append(["mean absolute error", "", "", "", "", "", f"{100 * mean(errors):.1f}"])
    return markdown(["bucket", "tokens", "q h k", "measured, s", "spread, %", "estimated, s", "off by, %"], out)


# Block of the document -> the result that it shows and how.
TABLES = {
    "suites-papers-device": ("methods_suites", lambda rows: suites(rows, is_papers_device)),
    "suites-h200": ("methods_suites", lambda rows: suites(rows, lambda row: row["profile"] == "h200")),
    "speedups": ("methods_suites", speedups),
    "planner": ("methods_suites", planner),
    "table3": ("table3", table3),
    "scale": ("methods_scale", scale),
    "fig1": ("fig1", fig1),
    "fig3a": ("fig3a", fig3a),
    "fig6": ("fig6", fig6),
    "price-error": ("price_error", price_error),
    "overlap-loads": ("overlap_loads", overlap_loads),
    "checked-batches": ("checked_batches", checked_batches),
    **gpu_tables.TABLES,
    "profile-accuracy": ("profile_accuracy", profile_accuracy),
    "memory-accuracy": ("memory_accuracy", memory_accuracy),
    "profile-h200": ("profile_h200", profile_h200),
}


def update(document=ROOT / "docs/evaluation.md"):
    text = document.read_text()

    def block(match):
        name = match.group(1)
        if name not in TABLES:
            raise SystemExit(f"{document}: no table '{name}'; there are {', '.join(TABLES)}")
        result_name, make = TABLES[name]
        result = load(result_name)
        if result is None:
            return match.group(0)
        source = f"`bench/results/{result_name}.json`: {result['device']}, {result['date'][:10]}, commit {result['commit'][:8]}."
        return "\n".join([f"<!-- table {name} -->", source, "", *make(result["rows"]), "<!-- end -->"])

    document.write_text(re.sub(r"<!-- table (\S+) -->\n.*?<!-- end -->", block, text, flags=re.S))
