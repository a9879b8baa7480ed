#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the batch of the paper's Fig. 2: three 720p 10-second videos and 228 720p images on four ranks.

    python3 examples/fig2/make_batch.py > examples/fig2/batch.json
"""
import json

WAN_1_3B = {
    "name": "wan2.1-t2v-1.3b",
    "heads": 12,
    "kv_heads": 12,
    "head_dim": 128,
    "layers": 30,
    "ffn": 8960,
    "vae_stride": [4, 8, 8],
    "patch": [1, 2, 2],
    "text_tokens": 512,
    "text": "cross",
}
VIDEOS, IMAGES, RANKS = 3, 228, 4


def bucket(name, kind, frames, height, width):
    strides = [stride * patch for stride, patch in zip(WAN_1_3B["vae_stride"], WAN_1_3B["patch"])]
    tokens = ((frames - 1) // strides[0] + 1) * (height // strides[1]) * (width // strides[2])
    return {"name": name, "kind": kind, "frames": frames, "height": height, "width": width, "tokens": tokens}


def main():
    catalog = {
        "format": "zellige.catalog",
        "version": 1,
        "model": WAN_1_3B,
        # 10 s at Wan's 16 frames a second, and the first frame.
        "buckets": [bucket("720p", "image", 1, 720, 1280), bucket("720p10s", "video", 161, 720, 1280)],
    }
    videos = [{"id": f"v{i}", "bucket": "720p10s"} for i in range(VIDEOS)]
    images = [{"id": f"i{i}", "bucket": "720p"} for i in range(IMAGES)]
    batch = {"format": "zellige.batch", "version": 1, "ranks": RANKS, "catalog": catalog, "sequences": videos + images}
    print(json.dumps(batch, indent=2))


if __name__ == "__main__":
    main()
