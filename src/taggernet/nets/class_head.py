"""Layers of their own between a group and its classes, for when the Ladder's upper levels hold something else.

# S seeds (optional) · R rows = B x K · N elements · C classes and 'no class'

On textures the Ladder's upper levels describe the texture of a group, which is what denoising needs, and next to
nothing of its outline (docs/LOG.md); classes read from there have to be learned against what was learned before. A
reader looks at the same rows as the mapping, or at a part of them, and leaves the Ladder as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.dropout import Dropout, dropped
from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import NormKind, activated, make_norm

Reads = Literal["features", "evidence", "masks"]
"""All that the mapping sees of a group, [z, m, delta z, L(m)]; or m and L(m) of it; or its mask m alone."""


class ClassHead(nn.Module):
    """h_l = relu(norm(h_{l-1} W_l) + b_l), and at the top softmax(c (norm(h W) + b)): the Ladder's encoder, alone."""

    def __init__(
        self,
        elements: int,
        widths: Sequence[int],
        classes: int,
        reads: Reads = "features",
        norm: NormKind = "batch",
        eps: float = 1e-10,
    ) -> None:
        super().__init__()
        self.elements, self.reads = elements, reads
        sizes = [{"features": 4, "evidence": 2, "masks": 1}[reads] * elements, *widths, classes + 1]
        self.layers = nn.ModuleList(Linear(low, high) for low, high in itertools.pairwise(sizes))
        self.biases = nn.ParameterList(per_feature(width, 0.0) for width in sizes[1:])
        self.scale = per_feature(classes + 1, 1.0)
        self.norm = make_norm(norm, eps)

    def forward(self, features: Float[Tensor, "*S R F"], dropout: Dropout | None = None) -> Float[Tensor, "*S R C"]:
        h = self._seen(features)
        for level, (project, bias) in enumerate(zip(self.layers, self.biases, strict=True), start=1):
            scale = self.scale if level == len(self.layers) else None
            _, h = activated(self.norm, project(dropped(dropout, h, level - 1)), bias, scale, lateral=False)
        return h

    def _seen(self, features: Tensor) -> Tensor:
        if self.reads == "features":
            return features
        m, likelihood_ratio = features[..., self.elements : 2 * self.elements], features[..., 3 * self.elements :]
        return m if self.reads == "masks" else torch.cat([m, likelihood_ratio], dim=-1)
