"""A classifier of groups beside the Ladder, for when the Ladder's upper levels hold something else than the class.

# S seeds (optional) · R rows = B x K · N elements, P positions · C classes and 'no class'

On textures the Ladder's upper levels describe the texture of a group, which denoising needs, and next to nothing of its
outline (docs/LOG.md). A head of its own reads the same rows as the mapping, or the masks among them, and leaves the
Ladder as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.disturbance import Disturbance, bent, dropped
from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import Iteration, NormKind, activated, at_iteration, make_norm

Reads = Literal["features", "masks"]
"""All that the mapping sees of a group, [z, m, delta z, L(m)], or its mask m alone."""


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
        channels: int = 1,
    ) -> None:
        super().__init__()
        self.elements, self.positions, self.reads = elements, elements // channels, reads
        size = self.positions if reads == "masks" else 2 * elements + 2 * self.positions
        sizes = [size, *widths, classes + 1]
        self.layers = nn.ModuleList(Linear(low, high) for low, high in itertools.pairwise(sizes))
        self.biases = nn.ParameterList(per_feature(width, 0.0) for width in sizes[1:])
        self.scale = per_feature(classes + 1, 1.0)
        self.norms = nn.ModuleList(make_norm(norm, eps, width) for width in sizes[1:])

    def forward(
        self,
        features: Float[Tensor, "*S R F"],
        disturbance: Disturbance | None = None,
        iteration: Iteration | None = None,
    ) -> Float[Tensor, "*S R C"]:
        h = features
        if self.reads == "masks":
            h = bent(disturbance, features.narrow(-1, self.elements, self.positions))
        for level, (project, bias) in enumerate(zip(self.layers, self.biases, strict=True), start=1):
            scale = self.scale if level == len(self.layers) else None
            norm = at_iteration(self.norms[level - 1], iteration)
            _, h = activated(norm, project(dropped(disturbance, h, level - 1)), bias, scale, lateral=False)
        return h
