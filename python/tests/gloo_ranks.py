# SPDX-License-Identifier: Apache-2.0
"""One process of tests over Gloo: python gloo_ranks.py CASE RANK WORLD STORE. Prints what it found, last line "done"."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
import zellige

HEADS, HEAD_DIM = 8, 16
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
    worst = 0.0
    engine = zellige.Engine(dist.group.WORLD)
    for number, config in enumerate(configurations(world)):
        ranks = list(range(world))
        sequences = [(61 + 7 * number, config, ranks), (20, (1, 1, 1), [0]), (20, (1, 1, 1), [0])]
        if world > 2:
            sequences.append((33, (1, 2, 1), [world - 1, 1]))  # its rank set overlaps; in between some ranks hold little
        placement = zellige.Placement(ranks=world, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM, sequences=sequences,
                                      waves=1 + number % 2, overlap=number % 2 == 0, keep_kv=number % 3 != 0)  # fmt: skip
        data = [tensors(length, 100 * number + i) for i, (length, _, _) in enumerate(sequences)]
        rows = placement.rows(rank)

        def pack(which):
            parts = [data[s][which][begin : begin + count] for s, begin, count, _ in rows]
            return torch.cat(parts) if parts else torch.empty(0, HEADS, HEAD_DIM, dtype=torch.float64)

        q, k, v = (pack(i).requires_grad_() for i in range(3))
        engine.begin_step(placement, rank)
        out = engine.attention(q, k, v)
        out.backward(pack(3))
        for s, begin, count, at in rows:
            for ours, wanted in zip((out.detach(), q.grad, k.grad, v.grad), reference(*data[s])):
                wanted = wanted[begin : begin + count]
                worst = max(worst, ((ours[at : at + count] - wanted).norm() / wanted.norm()).item())
    print(f"worst {worst:.3e} over {len(configurations(world))} configurations")
    assert worst < 1e-12


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
    """One rank fails in a layer, as it does without memory; the others must not wait for ever."""
    engine = zellige.Engine(dist.group.WORLD)
    placement = placement_of(64, world)
    engine.begin_step(placement, rank)
    q, k, v, _ = tensors(placement.rows(rank)[0][2], 1)
    try:
        if rank == 0:
            engine.attention(torch.empty(10**15), k, v)
        engine.attention(q, k, v)
    except (zellige.Error, RuntimeError) as error:
        print(f"code {getattr(error, 'code', 'none')}: {str(error).splitlines()[0]}")
        raise SystemExit(1) from None


if __name__ == "__main__":
    case, rank, world, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=20),
                            store=dist.FileStore(store, world))  # fmt: skip
    globals()[case](rank, world)
    print("done", flush=True)
    os._exit(0)  # Gloo's destructor may wait for a rank that is gone
