"""Convolutions around a Ladder, as TAG's parametric mapping for images.

# S seeds (optional) · R rows = B x K · P = H x W positions · C channels · N = P C elements
# Q = 2N + 2P numbers of a row · F features of a level

    up     z_l = norm(conv(h_{l-1})),  h_l = relu(z_l + b_l)           each level at half the height and width
    top    the coarsest level, flattened, is the input of a Ladder      which sees the whole image
    down   u = norm(conv(z^_{l+1})) at twice the size,  z^_l = g(z_l, u)

Images are (*S, R, H, W, F), channels last. The convolutions take the place of the projections W_h and W_u; norms, the
combinator g (one for all positions) and the Ladder are those of nets/norm.py and nets/ladder.py. Without lateral
connections this is an autoencoder whose code is the Ladder's topmost level; the broadcast decoder (nets/broadcast.py)
lays this code out over the coarsest level. Departures from the Ladder: all lateral connections are taken before the
ReLU, and a size that does not divide is padded with zeros. LayerNorm is over all features of a row, positions included;
BatchNorm is over rows and positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.broadcast import BroadcastLadder
from taggernet.nets.class_head import ClassHead
from taggernet.nets.convolution import Conv, EnlargingConv, Images, fold_patches, normed_images, unfold_patches
from taggernet.nets.disturbance import Disturbance
from taggernet.nets.ladder import Combinator, Gate, Heads, Ladder, Rectifier, Top
from taggernet.nets.linear import per_feature
from taggernet.nets.norm import Iteration, NormKind, make_norm
from taggernet.nets.roles import TOP, Roles, in_layer, inner_roles
from taggernet.tag.likelihood import wide
from taggernet.tag.mapping import Mapped

Decoder = Literal["mirror", "broadcast"]


class ConvMapping(nn.Module):
    """``shape`` is (H, W); ``levels`` are the features of the convolutional levels, ``widths`` those of the Ladder's.

    The first level looks at patches of ``patch`` x ``patch`` positions. Other arguments are those of ``LadderMapping``.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        channels: int,
        levels: Sequence[int],
        widths: Sequence[int],
        norm: NormKind = "layer",
        gate: Gate = "stable",
        top: Top = "softmax",
        heads: Heads = "plain",
        eps: float = 1e-10,
        reader: ClassHead | None = None,
        patch: int = 1,
        attention: int = 0,
        lateral: bool = True,
        decoder: Decoder = "mirror",
    ) -> None:
        super().__init__()
        self.shape, self.channels, self.patch = shape, channels, patch
        self.positions = math.prod(shape)
        self.elements = self.positions * channels
        height, width = (-(-side // patch) for side in shape)
        self.sizes = [(-(-height // 2**level), -(-width // 2**level)) for level in range(len(levels))]
        """Height and width of each level."""
        upward = list(itertools.pairwise(levels))
        inputs = patch**2 * (2 * channels + 2)
        self.up = nn.ModuleList([Conv(inputs, levels[0]), *(Conv(low, high, stride=2) for low, high in upward)])
        self.bias = nn.ParameterList(per_feature(features, 0.0) for features in levels)
        self.norms_up = nn.ModuleList(make_norm(norm, eps, features) for features in levels)
        coarsest = math.prod(self.sizes[-1]) * levels[-1]
        self.ladder = (
            BroadcastLadder(self.sizes[-1], levels[-1], widths, norm, gate, top, eps, attention)
            if decoder == "broadcast"
            else Ladder((coarsest, *widths), norm, gate, top, eps, attention=attention, lateral=lateral)
        )

        def finer(high: int, low: int, times: int) -> Conv:
            return EnlargingConv(high, low, times) if decoder == "broadcast" else Conv(high, times**2 * low)

        self.down = nn.ModuleList(finer(high, low, 2) for low, high in upward)
        self.norms_down = nn.ModuleList(make_norm(norm, eps, features) for features in levels[:-1])
        self.combine = nn.ModuleList(
            Combinator(features, gate) if lateral else Rectifier(features) for features in levels[:-1]
        )
        self.out = finer(levels[0], channels + 1, patch)
        self.norm_z, self.norm_m = (
            make_norm(norm, eps, features) if heads == "normalised" else None for features in (channels, 1)
        )
        self.z_scale, self.z_bias = per_feature(channels, 1.0), per_feature(channels, 0.0)
        self.m_scale = per_feature(1, 1.0)
        self.reader = reader
        """Reads the classes, instead of the Ladder's topmost level."""

    def forward(
        self,
        features: Float[Tensor, "*S R Q"],
        disturbance: Disturbance | None = None,
        reader_alone: bool = False,
        iteration: Iteration | None = None,
        groups: int = 1,
    ) -> Mapped:
        """As ``LadderMapping.forward``; a disturbance touches the Ladder at the top alone."""
        h = fold_patches(self._images(features), self.patch)
        lateral: list[Tensor] = []
        for conv, bias, norm in zip(self.up, self.bias, self.norms_up, strict=True):
            z = normed_images(norm, conv(h), iteration)
            lateral.append(z)
            h = torch.relu(z + bias.unsqueeze(-2).unsqueeze(-2))
        if self.reader is None:
            estimate, top = self.ladder(h.flatten(-3), disturbance, iteration, groups)
        else:
            estimate, _ = self.ladder(h.flatten(-3), iteration=iteration, groups=groups)
            top = self.reader(features.detach() if reader_alone else features, disturbance, iteration)
        estimate = estimate.reshape(h.shape)
        for level in reversed(range(len(self.down))):
            u = unfold_patches(self.down[level](estimate), 2, *self.sizes[level])
            u = normed_images(self.norms_down[level], u, iteration)
            z = lateral[level]
            estimate = self.combine[level](z.flatten(-4, -2), u.flatten(-4, -2)).reshape(z.shape)
        images = wide(unfold_patches(self.out(estimate), self.patch, *self.shape))
        z_u, m_u = torch.split(images, [self.channels, 1], dim=-1)
        if self.norm_z is not None and self.norm_m is not None:
            z_u, m_u = normed_images(self.norm_z, z_u, iteration), normed_images(self.norm_m, m_u, iteration)
        z_pre = z_u.flatten(-4, -2) * self.z_scale + self.z_bias
        m_pre = m_u.flatten(-4, -2) * self.m_scale
        rows = features.shape[:-1]
        return Mapped(z_pre.reshape(*rows, self.elements), m_pre.reshape(*rows, self.positions), top)

    def _images(self, features: Float[Tensor, "*S R Q"]) -> Images:
        """[z, m, delta z, L(m)] as the features of an image's positions."""
        n, p = self.elements, self.positions
        parts = torch.split(features, [n, p, n, p], dim=-1)
        return torch.cat([torch.unflatten(part, -1, (*self.shape, -1)) for part in parts], dim=-1)

    def parameter_roles(self) -> Roles:
        """A convolution belongs to the level it leads to, or for the way down comes to; the Ladder lies above them."""
        found, areas = inner_roles(self), [math.prod(size) for size in self.sizes]
        for level, (up, bias) in enumerate(zip(self.up, self.bias, strict=True)):
            found |= in_layer(level, up, bias, uses=areas[level])
        for level, (down, combinator) in enumerate(zip(self.down, self.combine, strict=True)):
            found |= in_layer(level + 1, down, uses=areas[level + 1]) | in_layer(level, combinator)
        found |= in_layer(0, self.out, uses=areas[0])
        for parameter, role in self.ladder.parameter_roles().items():
            found |= {parameter: replace(role, layer=min(TOP, role.layer + len(self.up) - 1))}
        return found if self.reader is None else found | in_layer(TOP, self.reader)
