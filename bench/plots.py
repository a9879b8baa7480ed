# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/*.svg from bench/results/*.json: the pictures show what the files hold and nothing else.

bench/plots.sh      makes a virtual environment with matplotlib in build/plots and runs this file in it
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
# Same numbers, same bytes: text stays text, ids do not depend on the run.
plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "zellige", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3,
                     "axes.spines.top": False, "axes.spines.right": False})  # fmt: skip

STYLE = {
    "zellige": ("#1b6f8a", "o", "-"), "two-stage": ("#5fb0c9", "o", "--"), "joint": ("#000000", "x", ":"), "naive": ("#c9503c", "s", "-"),
    "karmarkar-karp": ("#e08a4b", "v", "--"), "adaptiveload": ("#a8323e", "^", "-"), "usp": ("#7b5ea7", "D", "-"),
    "knapformer": ("#4f8f4a", "P", "-"), "megatron": ("#8a7a3d", "*", "--"), "flexsp": ("#3b6fc4", "<", "--"),
    "disjoint": ("#777777", ">", ":"), "knapformer-g4": ("#4f8f4a", "p", "--"),
}  # fmt: skip


def rows_of(name):
    path = ROOT / f"bench/results/{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else None


def save(figure, name, legend_below=None):
    """@param legend_below  axes whose legends become one, under the panels"""
    handles = {}
    for axes in [] if legend_below is None else legend_below:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.tight_layout(rect=(0, 0.4 / figure.get_figheight() if handles else 0, 1, 1))  # 0.4 inches for two rows
    if handles:
        figure.legend(handles.values(), handles.keys(), ncols=6, loc="lower center", fontsize=8, frameon=False)
    path = ROOT / f"docs/images/{name}.svg"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(path.relative_to(ROOT))


def line(axes, method, xs, ys, label=None):
    color, marker, dash = STYLE[method]
    axes.plot(xs, ys, color=color, marker=marker, linestyle=dash, markersize=4, linewidth=1.3, label=label or method)


def methods_in(rows):
    return [method for method in STYLE if any(row["method"] == method for row in rows)]


def fig1(rows):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.3))
    panel = [row for row in rows if row["panel"] == "a"]
    lengths = [row["tokens"] for row in panel]
    left.loglog(lengths, [row["memory_over_256p"] for row in panel], "o-", color="#1b6f8a", label="memory")
    left.loglog(lengths, [row["flop_over_256p"] for row in panel], "s-", color="#c9503c", label="operations")
    for row in panel:
        if row["bucket"] in ("256p", "1080p", "1080p10s"):
            left.annotate(row["bucket"], (row["tokens"], row["flop_over_256p"]), textcoords="offset points", xytext=(-8, 5), ha="right")
    left.set_xlabel("tokens of the sequence")
    left.set_ylabel("times that of a 256p image")
    left.set_title("(a) modelled, whole sequences")
    left.legend()
    panel = [row for row in rows if row["panel"] == "b" and "A800" in row["prices"]]
    right.bar([row["rank_holds"] for row in panel], [row["load_us"] * 1e-6 for row in panel], color="#1b6f8a", width=0.5)
    right.set_ylabel("load, s (modelled, A800)")
    right.set_title(f"(b) {panel[0]['tokens']:,} tokens on each rank")
    save(figure, "fig1")


def fig3a(rows):
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 3.1))
    for axes, mix in zip(panels, ["three 720p videos", "high"]):
        of_mix = [row for row in rows if row["mix"] == mix]
        for method in methods_in(of_mix):
            cells = [row for row in of_mix if row["method"] == method and "step_imbalance" in row]
            line(axes, method, [row["video_share_percent"] for row in cells], [row["step_imbalance"] for row in cells])
        axes.axhspan(1.25, 1.31, color="#c9503c", alpha=0.12)
        axes.set_xlabel("videos' share of the tokens, %")
        axes.set_title("three videos and images of 720p" if mix == "three 720p videos" else "mix of the suite `high`")
    panels[0].set_ylim(0.98, 1.4)
    panels[0].text(35, 1.33, "band: 1.25-1.31, measured in the paper", fontsize=8, color="#c9503c")
    panels[0].set_ylabel("largest / mean step time of 4 ranks")
    panels[1].legend(fontsize=8)
    save(figure, "fig3a")


def fig6(rows):
    rows = [row for row in rows if "H200" in row["prices"] and "moved_bytes" in row]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.8))
    usp = next(row["moved_bytes"] for row in rows if row["method"] == "usp")
    for i, row in enumerate(rows):
        bottom = 0
        for part, color in (("all_gather", "#e0a84b"), ("ulysses", "#1b6f8a"), ("ring", "#7b5ea7")):
            share = row[f"moved_{part}_bytes"] / usp
            left.bar(i, share, bottom=bottom, color=color, width=0.6, label=part.replace("_", "-") if i == 0 else None)
            bottom += share
        left.text(i, bottom + 0.01, f"{bottom:.0%}", ha="center", fontsize=8)
    left.set_xticks(range(len(rows)), [row["method"] for row in rows], rotation=35, ha="right")
    left.set_ylabel("attention bytes moved, over USP's")
    left.set_title("(a) high:V50, a step, modelled, H200")
    left.legend(fontsize=8)
    width = 0.8 / len(rows)
    for i, row in enumerate(rows):
        loads = [load * 1e-6 for load in row["rank_load_us"]]
        right.bar([rank + (i - len(rows) / 2 + 0.5) * width for rank in range(len(loads))], loads, width=width,
                  color=STYLE[row["method"]][0], label=f"{row['method']} {row['imbalance']:.2f}x")  # fmt: skip
    right.set_xlabel("rank")
    right.set_ylabel("load, s")
    right.set_title("(b) loads, and largest over mean")
    save(figure, "fig6", [right])


def methods_suites(rows):
    suites = list(dict.fromkeys(row["suite"] for row in rows))
    figure, panels = plt.subplots(2, 2, figsize=(9.4, 6.4))
    for axes, suite in zip(panels.flat, suites):
        of_suite = [row for row in rows if row["suite"] == suite and row["profile"] == "h200"]
        for method in methods_in(of_suite):
            cells = [row for row in of_suite if row["method"] == method and "over_floor" in row]
            if cells:
                line(axes, method, [row["video_share_percent"] for row in cells], [1 + row["over_floor"] for row in cells])
        out = [m for m in methods_in(of_suite) if not any(row["method"] == m and "over_floor" in row for row in of_suite)]
        axes.set_title(f"{suite}, {of_suite[0]['ranks']} ranks, H200 (modelled)" + (f"; OOM or no plan: {', '.join(out)}" if out else ""),
                       fontsize=8)  # fmt: skip
        axes.set_yscale("log")
        axes.set_xlabel("videos' share of the tokens, %")
        axes.set_ylabel("makespan / load floor F")
        axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%.2f"))
        axes.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%.1f"))
    save(figure, "methods_suites", panels.flat)


def methods_scale(rows):
    figure, panels = plt.subplots(2, 2, figsize=(9.4, 6.4))
    for column, suite in enumerate(["high", "low"]):
        of_suite = [row for row in rows if row["suite"] == suite and row["video_share_percent"] == 50]
        for method in methods_in(of_suite):
            cells = [row for row in of_suite if row["method"] == method and "over_floor" in row]
            if not cells:
                continue
            line(panels[0][column], method, [row["ranks"] for row in cells], [1 + row["over_floor"] for row in cells])
            line(panels[1][column], method, [row["ranks"] for row in cells], [row["plan_cpu_us"] * 1e-3 for row in cells])
        panels[0][column].set_title(f"{suite}, 50% videos, H200 (modelled)")
        panels[0][column].set_ylabel("makespan / load floor F")
        panels[1][column].set_ylabel("planning, ms of processor time")
        for row in (0, 1):
            panels[row][column].set_xscale("log", base=2)
            panels[row][column].set_yscale("log")
            panels[row][column].set_xlabel("ranks")
            panels[row][column].xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%d"))
    save(figure, "methods_scale", panels.flat)


def price_error(rows):
    kinds = list(dict.fromkeys(row["error_kind"] for row in rows))
    figure, panels = plt.subplots(1, len(kinds), figsize=(9.4, 3.2), sharey=True)
    for axes, kind in zip(panels, kinds):
        of_kind = [row for row in rows if row["error_kind"] == kind and row["plans"] > 0]
        errors = sorted({row["error"] for row in of_kind})
        for method in ("zellige", "knapformer", "usp"):  # whole sequences are several times the floor whatever the prices
            means = []
            for error in errors:
                cells = [row for row in of_kind if row["method"] == method and row["error"] == error]
                means.append(1 + sum(row["over_floor_mean"] * row["plans"] for row in cells) / sum(row["plans"] for row in cells))
            line(axes, method, [100 * error for error in errors], means)
        axes.set_title(kind)
        axes.set_xlabel("prices off by up to, %")
    panels[0].set_ylabel("true makespan / true floor, mean")
    save(figure, "price_error", panels)


def profile_accuracy(rows):
    rows = [row for row in rows if row["composition"] != "all"]
    figure, axes = plt.subplots(figsize=(3.8, 3.4))
    measured = [row["measured_us"] / 1e6 for row in rows]
    most = 1.1 * max(measured)
    axes.plot([0, most], [0, most], color="#999999", linewidth=1)
    axes.plot(measured, [row["predicted_us"] / 1e6 for row in rows], "o", color="#1b6f8a", markersize=4)
    axes.set_xlabel("measured step, s")
    axes.set_ylabel("predicted step, s")
    save(figure, "profile_accuracy", [axes])


def main():
    wanted = sys.argv[1:]
    for draw in (fig1, fig3a, fig6, methods_suites, methods_scale, price_error, profile_accuracy):
        rows = rows_of(draw.__name__)
        if rows is not None and (not wanted or draw.__name__ in wanted):
            draw(rows)


if __name__ == "__main__":
    main()
