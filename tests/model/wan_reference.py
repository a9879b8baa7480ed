# SPDX-License-Identifier: Apache-2.0
"""Wan2.1's transformer once more, in plain PyTorch: one dense sample at a time, convolutions for the patches, a table of
rotary angles, attention written out. Shares nothing with the library; the tests compare numbers.

    python wan_reference.py FOLDER

FOLDER/spec.json says sizes, parameters and samples; FOLDER/input.bin holds their values (fp64, in that order).
Writes FOLDER/output.bin: every sample's prediction, the loss, every parameter's gradient.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F


class Reader:
    def __init__(self, path):
        self.values = np.fromfile(path, dtype=np.float64)
        self.at = 0

    def take(self, shape):
        count = math.prod(shape)
        part = self.values[self.at : self.at + count]
        assert part.size == count, "input.bin ends early"
        self.at += count
        return torch.from_numpy(part.copy()).reshape(shape)


def rotary_table(channels, positions=1024):
    """Angles of one axis, [positions, channels / 2]."""
    rates = torch.tensor([1.0 / 10000 ** (i / channels) for i in range(0, channels, 2)], dtype=torch.float64)
    return torch.arange(positions, dtype=torch.float64)[:, None] * rates[None, :]


def rotary_angles(head_dim, grid):
    """Angles of every token of a sample, frames first, [tokens, head_dim / 2]."""
    side = 2 * (head_dim // 6)
    tables = [rotary_table(head_dim - 2 * side), rotary_table(side), rotary_table(side)]
    frames, height, width = grid
    rows = []
    for f in range(frames):
        for y in range(height):
            for x in range(width):
                rows.append(torch.cat([tables[0][f], tables[1][y], tables[2][x]]))
    return torch.stack(rows)


def rotate(x, angles):
    """x [tokens, heads, head_dim]: pairs (2i, 2i + 1) turned by angle i."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    result = torch.empty_like(x)
    result[..., 0::2] = even * cos - odd * sin
    result[..., 1::2] = even * sin + odd * cos
    return result


def rms_norm(x, gain, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * gain


def attend(q, k, v):
    """[tokens, heads, head_dim] each; every query sees every key."""
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1), v)


def embed_time(t, channels):
    half = channels // 2
    angles = [t / 10000 ** (i / half) for i in range(half)]
    return torch.tensor([math.cos(a) for a in angles] + [math.sin(a) for a in angles], dtype=torch.float64)


def attention_layer(p, name, x, source, spec, angles=None):
    heads = spec["heads"]
    linear = lambda part, value: F.linear(value, p[f"{name}.{part}.weight"], p[f"{name}.{part}.bias"])
    split = lambda value: value.reshape(value.shape[0], heads, -1)
    q = split(rms_norm(linear("q", x), p[f"{name}.norm_q.weight"], spec["eps"]))
    k = split(rms_norm(linear("k", source), p[f"{name}.norm_k.weight"], spec["eps"]))
    v = split(linear("v", source))
    if angles is not None:
        q, k = rotate(q, angles), rotate(k, angles)
    return linear("o", attend(q, k, v).reshape(x.shape))


def predict(p, latent, t, text, spec):
    """latent [channels, frames, height, width] -> the same shape."""
    patch = tuple(spec["patch"])
    eps = spec["eps"]
    embedded = F.conv3d(latent[None], p["patch_embedding.weight"], p["patch_embedding.bias"], stride=patch)[0]
    dim, *grid = embedded.shape
    x = embedded.reshape(dim, -1).T
    angles = rotary_angles(dim // spec["heads"], grid)

    linear = lambda name, value: F.linear(value, p[name + ".weight"], p[name + ".bias"])
    plain_norm = lambda value: F.layer_norm(value, (dim,), eps=eps)
    context = linear("text_embedding.2", F.gelu(linear("text_embedding.0", text), approximate="tanh"))
    e = linear("time_embedding.2", F.silu(linear("time_embedding.0", embed_time(t, spec["freq_dim"]))))
    e0 = linear("time_projection.1", F.silu(e)).reshape(6, dim)

    for i in range(spec["layers"]):
        b = f"blocks.{i}"
        shift1, scale1, gate1, shift2, scale2, gate2 = p[f"{b}.modulation"][0] + e0
        x = x + gate1 * attention_layer(
            p, f"{b}.self_attn", *[plain_norm(x) * (1 + scale1) + shift1] * 2, spec, angles
        )
        normed = F.layer_norm(x, (dim,), p[f"{b}.norm3.weight"], p[f"{b}.norm3.bias"], eps)
        x = x + attention_layer(p, f"{b}.cross_attn", normed, context, spec)
        inner = F.gelu(linear(f"{b}.ffn.0", plain_norm(x) * (1 + scale2) + shift2), approximate="tanh")
        x = x + gate2 * linear(f"{b}.ffn.2", inner)

    shift, scale = p["head.modulation"][0] + e
    out = linear("head.head", plain_norm(x) * (1 + scale) + shift)
    channels = spec["out_channels"]
    latent_out = torch.empty(channels, *latent.shape[1:], dtype=torch.float64)
    for index, row in enumerate(out):
        f, rest = divmod(index, grid[1] * grid[2])
        y, w = divmod(rest, grid[2])
        cube = row.reshape(*patch, channels).permute(3, 0, 1, 2)
        latent_out[
            :, f * patch[0] : (f + 1) * patch[0], y * patch[1] : (y + 1) * patch[1], w * patch[2] : (w + 1) * patch[2]
        ] = cube
    return latent_out


def main():
    folder = Path(sys.argv[1])
    spec = json.loads((folder / "spec.json").read_text())
    reader = Reader(folder / "input.bin")
    parameters = {}
    for entry in spec["parameters"]:
        parameters[entry["name"]] = reader.take(entry["shape"]).requires_grad_()

    outputs, loss = [], 0
    for sample in spec["samples"]:
        latent = reader.take(sample["latent"])
        target = reader.take(sample["latent"])
        text = reader.take([spec["text_tokens"], spec["text_dim"]])
        prediction = predict(parameters, latent, sample["timestep"], text, spec)
        outputs.append(prediction.detach())
        loss = loss + sample["weight"] * ((prediction - target) ** 2).mean() / len(spec["samples"])
    assert reader.at == reader.values.size, "input.bin is longer than the spec says"
    loss.backward()
    outputs.append(loss.detach())
    outputs += [value.grad for value in parameters.values()]
    np.concatenate([value.numpy().ravel() for value in outputs]).tofile(folder / "output.bin")


if __name__ == "__main__":
    main()
