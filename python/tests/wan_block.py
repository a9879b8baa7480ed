# SPDX-License-Identifier: Apache-2.0
"""A transformer block of Wan2.1's shape in plain torch, with the attention among its own tokens left to a function: so that the same
weights run once with every sequence in one piece and once with its tokens over ranks."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
import zellige

# name, (heads, head_dim, ffn, text tokens, blocks), tokens of the sequences
CASES = [
    ("tiny", (8, 16, 256, 12, 2), [120, 61, 40, 40, 17]),
    ("wan2.1-1.3b", (12, 128, 8960, 64, 1), [2048, 777, 256, 256, 256]),
]
FLOOR = 6e-3  # of a gradient's norm: what bf16's rounding of the result alone may cost


def rotate(x, positions):
    """Rotary embedding of [tokens, heads, head_dim] by the tokens' places in their sequence."""
    half = x.shape[-1] // 2
    angles = positions.double()[:, None] * 10000 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    cos, sin = angles.cos()[:, None].to(x.dtype), angles.sin()[:, None].to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Block(torch.nn.Module):
    def __init__(self, heads, head_dim, ffn):
        super().__init__()
        width = heads * head_dim
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.text_q, self.text_kv = torch.nn.Linear(width, width), torch.nn.Linear(width, 2 * width)
        self.text_out = torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, ffn), torch.nn.Linear(ffn, width)
        self.norm_q, self.norm_k = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.ones(width))
        self.shift = torch.nn.Parameter(torch.randn(6, width) / width**0.5)

    def forward(self, x, condition, text, segments, attention):
        """x [tokens, width]; condition [sequences, 6, width]; text [sequences, text tokens, width]; segments: runs of tokens
        (sequence, first token, tokens, first row); attention(q, k, v) of [tokens, heads, head_dim]."""
        width = x.shape[1]

        def by_head(y):
            return y.unflatten(-1, (self.heads, -1))

        def normed(y, weight):
            return F.rms_norm(y, (width,)) * weight

        owner = torch.cat([x.new_full((n,), s, dtype=torch.long) for s, _, n, _ in segments]) if segments else x.new_empty(0, dtype=torch.long)  # fmt: skip
        place = torch.cat([torch.arange(b, b + n, device=x.device) for _, b, n, _ in segments]) if segments else owner
        mod = (condition + self.shift)[owner].unbind(1)
        y = F.layer_norm(x, (width,)) * (1 + mod[0]) + mod[1]
        q, k, v = self.qkv(y).chunk(3, -1)
        q, k = rotate(by_head(normed(q, self.norm_q)), place), rotate(by_head(normed(k, self.norm_k)), place)
        x = x + mod[2] * self.out(attention(q, k, by_head(v)).flatten(1))
        parts = [x[:0]]
        for s, _, n, row in segments:  # every token reads its own sequence's text
            q = by_head(self.text_q(F.layer_norm(x[row : row + n], (width,)))).transpose(0, 1)
            k, v = (by_head(t).transpose(0, 1) for t in self.text_kv(text[s]).chunk(2, -1))
            parts.append(F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1))
        x = x + self.text_out(torch.cat(parts))
        y = F.layer_norm(x, (width,)) * (1 + mod[3]) + mod[4]
        return x + mod[5] * self.down(F.gelu(self.up(y), approximate="tanh"))


def in_one_piece(segments):
    def attention(q, k, v):
        parts = []
        for _, _, n, row in segments:
            one = [t[row : row + n].transpose(0, 1) for t in (q, k, v)]
            scores = torch.einsum("hqd,hkd->hqk", one[0], one[1]) / q.shape[-1] ** 0.5
            parts.append(torch.einsum("hqk,hkd->hqd", scores.softmax(-1), one[2]).transpose(0, 1))
        return torch.cat(parts)

    return attention


def gradients(model, data, segments, attention, dtype):
    """Of the loss sum(weights * output): every parameter's, and the inputs' rows."""
    x, condition, text, weights = (t.detach().clone().to(dtype) for t in data)
    x.requires_grad_()
    y = x
    for block in model:
        y = block(y, condition, text, segments, attention)
    (y * weights).sum().backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    return found, x.grad


def make_model(sizes, dtype, device):
    heads, head_dim, ffn, _, blocks = sizes
    torch.manual_seed(5)
    return torch.nn.ModuleList(Block(heads, head_dim, ffn) for _ in range(blocks)).double().to(device).to(dtype)


def placement_of(sizes, lengths, world, engine):
    everyone, half = list(range(world)), world // 2
    degrees = [(1, half, 2) if sizes[0] % half == 0 else (half, 1, 2), (2, 2, 1)]
    sets = [everyone, everyone[-3:] + [0]]  # their rank sets overlap
    sequences = [(lengths[i], degrees[i], sets[i]) for i in range(2)]
    sequences += [(n, (1, 1, 1), [i % (world - 1)]) for i, n in enumerate(lengths[2:])]
    return zellige.Placement(ranks=world, heads=sizes[0], kv_heads=sizes[0], head_dim=sizes[1], sequences=sequences,
                             engine=engine, waves=1 if engine == "paper" else 2)  # fmt: skip


def compare(name, sizes, lengths, rank, world, device, flash_attention_3):
    heads, head_dim, _, text_tokens, _ = sizes
    width, total = heads * head_dim, sum(lengths)
    generator = torch.Generator().manual_seed(6)

    def draw(*shape):
        return torch.randn(*shape, generator=generator).to(torch.bfloat16).double().to(device)

    x, weights = draw(total, width), draw(total, width) / total
    condition, text = draw(len(lengths), 6, width) / 4, draw(len(lengths), text_tokens, width)
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    whole = [(i, 0, n, begins[i]) for i, n in enumerate(lengths)]
    dtypes = [torch.bfloat16] if device.type == "cuda" else [torch.float64, torch.bfloat16]
    worst = {}
    exact, exact_x = gradients(make_model(sizes, torch.float64, device), (x, condition, text, weights), whole, in_one_piece(whole), torch.float64)  # fmt: skip
    for dtype in dtypes:
        plain, plain_x = gradients(make_model(sizes, dtype, device), (x, condition, text, weights), whole, in_one_piece(whole), dtype)  # fmt: skip
        for engine_kind in ("coalesced", "paper"):
            placement = placement_of(sizes, lengths, world, engine_kind)
            rows = placement.rows(rank)
            mine = torch.cat([torch.arange(begins[s] + b, begins[s] + b + n) for s, b, n, _ in rows] or [torch.empty(0, dtype=torch.long)]).to(device)  # fmt: skip
            engine = zellige.Engine(dist.group.WORLD, flash_attention_3=flash_attention_3)
            engine.begin_step(placement, rank)
            ours, ours_x = gradients(make_model(sizes, dtype, device), (x[mine], condition, text, weights[mine]), rows, engine.attention, dtype)  # fmt: skip
            pairs = [(ours_x.double(), plain_x[mine].double(), exact_x[mine], "input")]
            for key, grad in ours.items():
                grad = grad.double().cpu()
                dist.all_reduce(grad)
                pairs.append((grad.to(device), plain[key].double(), exact[key], key))
            for found, simple, wanted, key in pairs:
                size = wanted.norm().item()
                error = (found - wanted).norm().item()
                allowed = 1e-12 * size if dtype == torch.float64 else max(FLOOR * size, 2 * (simple - wanted).norm().item())
                assert error <= allowed, f"{name} {dtype} {engine_kind} {key}: {error / size:.2e}, allowed {allowed / size:.2e}"  # fmt: skip
                worst[dtype] = max(worst.get(dtype, 0), error / max(size, 1e-300))
    return ", ".join(f"{dtype} at most {value:.1e} off" for dtype, value in worst.items())
