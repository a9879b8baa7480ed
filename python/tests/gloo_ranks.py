# SPDX-License-Identifier: Apache-2.0
"""One process of tests over Gloo: python gloo_ranks.py CASE RANK WORLD STORE [cpu|cuda]. Prints what it found, last line "done".
On "cuda" all processes share the first GPU."""

import datetime
import os
import resource
import sys

import torch
import torch.distributed as dist
import zellige

HEADS, HEAD_DIM = 8, 16
DEVICE = torch.device(sys.argv[5] if len(sys.argv) > 5 else "cpu")
FLASH_ATTENTION_3 = os.environ.get("ZELLIGE_FLASH_ATTENTION_3", "") if DEVICE.type == "cuda" else ""
torch.set_num_threads(1)


def tensors(length, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(length, HEADS, HEAD_DIM, generator=generator, dtype=torch.float64) for _ in range(4)]


def reference(q, k, v, grad):
    q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / HEAD_DIM**0.5
    out = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
    out.backward(grad)
    return out.detach(), q.grad, k.grad, v.grad


def configurations(world):
    return [(q, h, world // q // h) for q in (1, 2, 4, 8) for h in (1, 2, 4, 8) if world % (q * h) == 0]


def parity(rank, world):
    """In fp64, by the plain kernel on a GPU: whatever the exchanges or the sums lose shows."""
    worst = 0.0
    kernel = "plain" if DEVICE.type == "cuda" else ""
    engine = zellige.Engine(dist.group.WORLD, kernel=kernel)
    collectives = {"coalesced": 0, "paper": 0}
    for number, (config, order) in enumerate((c, e) for c in configurations(world) for e in collectives):
        ranks = list(range(world))
        sequences = [(61 + 7 * number, config, ranks), (20, (1, 1, 1), [0]), (20, (1, 1, 1), [0])]
        if world > 2:
            sequences.append((33, (1, 2, 1), [world - 1, 1]))  # its rank set overlaps; in between some ranks hold little
        placement = zellige.Placement(ranks=world, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM, sequences=sequences,
                                      waves=1 + number // 2 % 2, overlap=number // 2 % 2 == 0, keep_kv=number % 3 != 0,
                                      engine=order)  # fmt: skip
        data = [tensors(length, 100 * number + i) for i, (length, _, _) in enumerate(sequences)]
        rows = placement.rows(rank)

        def pack(which):
            parts = [data[s][which][begin : begin + count] for s, begin, count, _ in rows]
            return torch.cat(parts) if parts else torch.empty(0, HEADS, HEAD_DIM, dtype=torch.float64)

        q, k, v = (pack(i).to(DEVICE).requires_grad_() for i in range(3))
        engine.begin_step(placement, rank)
        out = engine.attention(q, k, v)
        out.backward(pack(3).to(DEVICE))
        report = engine.report()
        assert (report["forward_layers"], report["backward_layers"]) == (1, 1)
        assert 0 <= report["exposed_s"] < 60
        collectives[order] += report["collectives"]
        for s, begin, count, at in rows:
            for ours, wanted in zip((out.detach(), q.grad, k.grad, v.grad), reference(*data[s])):
                wanted = wanted[begin : begin + count]
                worst = max(worst, ((ours[at : at + count].cpu() - wanted).norm() / wanted.norm()).item())
    print(f"worst {worst:.3e} over {len(configurations(world))} configurations")
    assert worst < 1e-12
    # Two rank sets a placement where there are more than two ranks, each with exchanges of its own.
    assert (collectives["paper"] > collectives["coalesced"]) == (world > 2), collectives


def placement_of(tokens, world):
    return zellige.Placement(ranks=world, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM, sequences=[(tokens, (world, 1, 1), list(range(world)))])  # fmt: skip


def other_plan(rank, world):
    try:
        zellige.Engine(dist.group.WORLD).begin_step(placement_of(40 if rank else 41, world), rank)
    except zellige.Error as error:
        print(f"code {error.code}: {error}")


def dies(rank, world):
    engine = zellige.Engine(dist.group.WORLD)
    placement = placement_of(64, world)
    engine.begin_step(placement, rank)
    if rank == world - 1:
        os._exit(9)
    q, k, v, _ = tensors(placement.rows(rank)[0][2], 1)
    try:
        for _ in range(3):
            engine.attention(q, k, v)
    except zellige.Error as error:
        print(f"code {error.code}: {str(error).splitlines()[0]}")
        try:
            engine.attention(q, k, v)
        except zellige.Error as again:
            print(f"again code {again.code}")


def out_of_memory(rank, world):
    """One rank runs out of memory in a layer, for real; the others must not wait for ever."""
    tokens = 40000 * world
    engine = zellige.Engine(dist.group.WORLD, kernel="" if DEVICE.type == "cpu" else "memory-efficient")
    placement = placement_of(tokens, world)  # all-gather: the rank's keys and values become `world` times its own
    engine.begin_step(placement, rank)
    shape = (placement.rows(rank)[0][2], HEADS, HEAD_DIM)
    q, k, v = (torch.zeros(shape, device=DEVICE) for _ in range(3))
    if rank == 0:
        if DEVICE.type == "cuda":
            free = torch.cuda.memory_reserved() + 2**20
            torch.cuda.set_per_process_memory_fraction(free / torch.cuda.get_device_properties(0).total_memory)
        else:
            with open("/proc/self/statm") as statm:
                used = int(statm.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, resource.RLIM_INFINITY))
    try:
        engine.attention(q, k, v)
    except zellige.Error as error:
        print(f"code {error.code}: {str(error).splitlines()[0]}", flush=True)
        os._exit(1)  # as a program does that has nothing left to do; Gloo tells the others


def blocks(rank, world):
    """Gradients of whole transformer blocks: tokens of the batch over all ranks against every sequence in one piece."""
    import wan_block

    for name, sizes, lengths in wan_block.CASES:
        if DEVICE.type == "cpu" and name != "tiny":
            continue
        found = wan_block.compare(name, sizes, lengths, rank, world, DEVICE, FLASH_ATTENTION_3)
        print(f"{name}: {found}")


if __name__ == "__main__":
    case, rank, world, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=20),
                            store=dist.FileStore(store, world))  # fmt: skip
    globals()[case](rank, world)
    print("done", flush=True)
    os._exit(0)  # Gloo's destructor may wait for a rank that is gone
