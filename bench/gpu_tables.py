# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/evaluation.md that show what bench/gpu measured; used by evaluation_tables.py."""


def markdown(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def kernel_table(rows):
    out = []
    for row in rows:
        goal = f"{row['goal']:.2f}" if "goal" in row else ""
        out.append([row["mix"], row["kernels"], row["calls"], f"{row['forward_us'] / 1e3:.2f}", f"{row['backward_us'] / 1e3:.2f}",
                    f"{row['ratio']:.2f}", goal])  # fmt: skip
    return markdown(["whole sequences", "kernels", "calls", "forward, ms", "backward, ms", "times FlashAttention-2", "goal"], out)


def kernel_rates(rows):
    kernels = ["flash-attention-3", "cudnn", "flash-attention-2"]
    rates = {(r["length"], r["count"], r["heads"], r["kernel"], r["direction"]): r["flops_per_us"] / 1e6 for r in rows}
    shapes = sorted({(r["length"], r["count"], r["heads"]) for r in rows})
    out = []
    for length, count, heads in shapes:
        cells = [f"{rates[length, count, heads, k, 'forward']:.0f} / {rates[length, count, heads, k, 'backward']:.0f}" for k in kernels]
        out.append([f"{count} x {length:,}", heads] + cells)
    return markdown(["sequences", "heads"] + [f"{k}, TFLOP/s" for k in kernels], out)


def split_sequence(rows):
    out = []
    for row in rows:
        goal = f"{row['goal']:.2f}" if "goal" in row else ""
        way = f"overlap, {row['waves']} waves" if row["overlap"] and row["waves"] > 1 else "overlap" if row["overlap"] else "serial"
        one = row["one_gpu_forward_us"] + row["one_gpu_backward_us"]
        both = row["forward_us"] + row["backward_us"]
        out.append([f"{row['tokens']:,}", row["config"], way, f"{one / 1e3:.1f}", f"{both / 1e3:.1f}", f"{row['forward_efficiency']:.3f}",
                    f"{row['efficiency']:.3f}", goal])  # fmt: skip
    return markdown(["tokens", "configuration", "exchange", "one GPU, ms", "two GPUs, ms", "forward alone", "both", "goal"], out)


def layer_suites(rows):
    out = []
    for row in rows:
        hidden = f"{100 * row['hidden_share']:.0f}%" if "hidden_share" in row else ""
        over = f"{row['over_compute']:.4f}" if "over_compute" in row else ""
        peak = f"{row['peak_extra_bytes'] / 2**30:.2f}" if "peak_extra_bytes" in row else ""
        out.append([row["workload"], row["link"], row["variant"], f"{row['forward_us'] / 1e3:.1f}", f"{row['backward_us'] / 1e3:.1f}", over,
                    hidden, peak])  # fmt: skip
    return markdown(["workload", "link", "executor", "forward, ms", "backward, ms", "over compute alone", "exchange hidden", "peak, GiB"], out)


def exchange_share(rows):
    links = list(dict.fromkeys(row["link"] for row in rows))
    out = []
    for tokens, count, config in dict.fromkeys((row["tokens"], row["count"], row["config"]) for row in rows):
        of = {row["link"]: row for row in rows if (row["tokens"], row["count"], row["config"]) == (tokens, count, config)}
        out.append([f"{count} x {tokens:,}", config] + [f"{100 * of[link]['exchange_share']:.0f}%" if link in of else "-" for link in links])
    return markdown(["images", "configuration"] + links, out)


def launch_overhead(rows):
    out = [[row["sequences"], f"{row['begin_step_us']:.0f}", f"{row['forward_cpu_us']:.0f}", f"{row['backward_cpu_us']:.0f}",
            f"{row['layer_cpu_us']:.0f}", f"{row['goal_us']:.0f}"] for row in rows]  # fmt: skip
    return markdown(["sequences a rank", "begin_step, us", "forward, us", "backward, us", "a layer, us", "goal, us"], out)


def launch_overhead_alone(rows):
    out = [[row["engine"], f"{row['begin_step_us']:.0f}", f"{row['forward_cpu_us']:.0f}", f"{row['backward_cpu_us']:.0f}",
            f"{row['layer_cpu_us']:.0f}", f"{row['kernels_forward_cpu_us'] + row['kernels_backward_cpu_us']:.0f}"] for row in rows]  # fmt: skip
    return markdown(["engine", "begin_step, us", "forward, us", "backward, us", "a layer, us", "its kernel calls alone, us"], out)


def packing_share(rows):
    out = [[f"{row['tokens']:,}", row["config"], f"{row['kernels_forward_us'] / 1e3:.2f}", f"{row['forward_us'] / 1e3:.2f}",
            f"{row['kernels_backward_us'] / 1e3:.2f}", f"{row['backward_us'] / 1e3:.2f}"] for row in rows]  # fmt: skip
    return markdown(["tokens", "configuration", "kernels forward, ms", "with packing, ms", "kernels backward, ms", "with packing, ms"], out)


def deterministic(rows):
    out = [[row["mix"], row["kernel"], f"{row['backward_us'] / 1e3:.2f}", f"{row['deterministic_backward_us'] / 1e3:.2f}",
            f"{100 * (row['over'] - 1):+.0f}%"] for row in rows]  # fmt: skip
    return markdown(["whole sequences", "kernel", "backward, ms", "deterministic, ms", "more"], out)


def warm_up(rows):
    out = [[row["kernels"], row["shapes"], "yes" if row["warmed_up"] else "no", f"{row['warm_up_ms']:.1f}", f"{row['first_layer_ms']:.1f}",
            f"{row['second_layer_ms']:.1f}"] for row in rows]  # fmt: skip
    return markdown(["kernels", "new shapes", "warmed up", "warm-up, ms", "first layer, ms", "second layer, ms"], out)


TABLES = {
    "gpu-kernels": ("kernel_table", kernel_table),
    "gpu-rates": ("kernel_rates", kernel_rates),
    "gpu-split": ("split_sequence", split_sequence),
    "gpu-layers": ("layer_suites", layer_suites),
    "gpu-exchange-share": ("exchange_share", exchange_share),
    "gpu-launches": ("launch_overhead", launch_overhead),
    "gpu-launches-alone": ("launch_overhead_alone", launch_overhead_alone),
    "gpu-packing": ("packing_share", packing_share),
    "gpu-deterministic": ("deterministic", deterministic),
    "gpu-warm-up": ("warm_up", warm_up),
}
