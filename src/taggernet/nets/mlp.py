"""A plain multilayer perceptron as TAG's mapping: the shortest network the loop can drive.

# S seeds (optional) · R rows = B x K · N elements, P positions
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import Iteration, NormKind, at_iteration, make_norm, rectified
from taggernet.tag.likelihood import wide
from taggernet.tag.mapping import Mapped


class MLPMapping(nn.Module):
    """Hidden layers of norm + bias + ReLU, then one product for z and m."""

    def __init__(self, elements: int, widths: Sequence[int], norm: NormKind = "layer", channels: int = 1) -> None:
        super().__init__()
        self.elements, self.positions = elements, elements // channels
        both = self.elements + self.positions
        sizes = [2 * both, *widths]
        self.norms = nn.ModuleList(make_norm(norm, features=width) for width in widths)
        self.hidden = nn.ModuleList(Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.bias = nn.ParameterList(per_feature(width, 0.0) for width in widths)
        self.out = Linear(sizes[-1], both)
        self.out_bias = per_feature(both, 0.0)

    def forward(self, features: Float[Tensor, "*S R F"], iteration: Iteration | None = None) -> Mapped:
        h: Tensor = features
        for project, bias, norm in zip(self.hidden, self.bias, self.norms, strict=True):
            _, h = rectified(at_iteration(norm, iteration), project(h), bias, lateral=False)
        z_pre, m_pre = torch.split(wide(self.out(h)) + self.out_bias, [self.elements, self.positions], dim=-1)
        return Mapped(z_pre, m_pre, top=h)
