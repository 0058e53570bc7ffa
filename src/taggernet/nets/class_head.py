"""A classifier of groups beside the Ladder, for when the Ladder's upper levels hold something else than the class.

# S seeds (optional) · R rows = B x K · N elements, P = H x W positions · C classes and 'no class'

On textures the Ladder's upper levels describe the texture of a group, which denoising needs, and next to nothing of its
outline (docs/LOG.md). A head of its own reads the same rows as the mapping, or the masks among them, and leaves the
Ladder as it was. Masks of images can pass convolutions first, as what a class looks like is the same at every place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.convolution import Conv, normed_images
from taggernet.nets.disturbance import Disturbance, bent, dropped
from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import Iteration, NormKind, activated, at_iteration, make_norm
from taggernet.nets.roles import Roles, in_layer, inner_roles

Reads = Literal["features", "masks"]
"""All that the mapping sees of a group, [z, m, delta z, L(m)], or its mask m alone."""


class MaskConvolutions(nn.Module):
    """h = relu(norm(conv(h)) + b), twice for each of ``levels``; the second convolution halves height and width."""

    def __init__(
        self, shape: tuple[int, int], levels: Sequence[int], norm: NormKind = "batch", eps: float = 1e-10
    ) -> None:
        super().__init__()
        self.shape = shape
        features = [1, *(width for width in levels for _ in range(2))]
        self.convolutions = nn.ModuleList(
            Conv(low, high, stride=1 + number % 2) for number, (low, high) in enumerate(itertools.pairwise(features))
        )
        self.biases = nn.ParameterList(per_feature(width, 0.0) for width in features[1:])
        self.norms = nn.ModuleList(make_norm(norm, eps, width) for width in features[1:])
        sides = [[-(-side // 2 ** ((number + 1) // 2)) for side in shape] for number in range(len(features) - 1)]
        self.areas = [math.prod(side) for side in sides]
        """Height x width of what each convolution makes."""
        self.features = self.areas[-1] * features[-1]

    def forward(self, masks: Float[Tensor, "*S R P"], iteration: Iteration | None = None) -> Float[Tensor, "*S R F"]:
        h = torch.unflatten(masks, -1, (*self.shape, 1))
        for convolve, bias, norm in zip(self.convolutions, self.biases, self.norms, strict=True):
            h = torch.relu(normed_images(norm, convolve(h), iteration) + bias.unsqueeze(-2).unsqueeze(-2))
        return h.flatten(-3)

    def parameter_roles(self) -> Roles:
        found = inner_roles(self)
        for convolve, area in zip(self.convolutions, self.areas, strict=True):
            found |= in_layer(0, convolve, uses=area)
        return found


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
        convolutions: MaskConvolutions | None = None,
    ) -> None:
        super().__init__()
        self.elements, self.positions, self.reads = elements, elements // channels, reads
        size = self.positions if reads == "masks" else 2 * elements + 2 * self.positions
        self.convolutions = convolutions
        if convolutions is not None:
            size = convolutions.features
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
        if self.convolutions is not None:
            h = self.convolutions(h, iteration)
        for level, (project, bias) in enumerate(zip(self.layers, self.biases, strict=True), start=1):
            scale = self.scale if level == len(self.layers) else None
            norm = at_iteration(self.norms[level - 1], iteration)
            _, h = activated(norm, project(dropped(disturbance, h, level - 1)), bias, scale, lateral=False)
        return h
