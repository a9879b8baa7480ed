# SPDX-License-Identifier: Apache-2.0
"""Zellige's attention engine for Python programs: exact attention of a step's sequences, whole ones in dense batches and split
ones over the ranks of a torch.distributed process group.

    engine = zellige.Engine(torch.distributed.group.WORLD)
    engine.begin_step(placement, rank)      # collective
    out = engine.attention(q, k, v)         # collective, once a layer, backward too
"""

import torch  # noqa: F401  its libraries must be there before the extension's

from ._zellige import Engine, Error, Placement, __version__

__all__ = ["Engine", "Error", "Placement", "__version__"]
