"""The Ladder network (Rasmus et al. 2015), as TAG's parametric mapping.

# S seeds (optional) · R rows = B x K · N elements, P positions · level l has widths[l] features, level 0 is the input

    encoder   z_l = norm(h_{l-1} W_l),  h_l = relu(z_l + b_l),  top: softmax(c (z + b))
    decoder   u = norm(h_top) at the top, norm(z^_{l+1} V_l) below,  z^_l = g(z_l, u)

Departures from Rasmus et al., as in Tagger's public code:
- no noise and no layer costs: TAG corrupts the input and the mixture is the only cost;
- the gate v of the combinator goes through a sigmoid when inputs are real ("stable" gate);
- the level-0 lateral connection is the projected input after its ReLU, not the raw data.
Options of ours: the groups of a scene talk on the topmost level (nets/group_attention.py); without lateral connections,
z^_l = relu(u + c_l), all that a group knows passes through the topmost level.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet import fast
from taggernet.nets.class_head import ClassHead
from taggernet.nets.disturbance import Disturbance, dropped
from taggernet.nets.group_attention import GroupAttention
from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import (
    Iteration,
    Norm,
    NormKind,
    activated,
    at_iteration,
    is_batch,
    make_norm,
    may_fuse,
    rectified,
    scaled,
)
from taggernet.nets.roles import TOP, Roles, in_layer, inner_roles
from taggernet.tag.likelihood import wide
from taggernet.tag.mapping import Mapped

Gate = Literal["plain", "stable"]
Top = Literal["softmax", "relu"]
Heads = Literal["normalised", "plain"]


class Combinator(nn.Module):
    """g(z, u) = (z - mu(u)) v(u) + mu(u): the Gaussian denoiser with ten learned numbers per feature.

    mu(u) = a1 sigmoid(a2 u + a3) + a4 u + a5 and v(u) alike with a6 .. a10. At the start a2 = a7 = 1 and
    the rest are 0.
    """

    def __init__(self, width: int, gate: Gate) -> None:
        super().__init__()
        self.gate = gate
        a = torch.zeros(10, 1, width)
        a[1] = a[6] = 1.0
        self.a = nn.Parameter(a)
        self.fusable = type(self).forward is _FUSED_FORWARD

    def forward(self, z: Float[Tensor, "*S R F"], u: Float[Tensor, "*S R F"]) -> Float[Tensor, "*S R F"]:
        # mu and v at once, as they are the same function with five numbers each.
        a1, a2, a3, a4, a5 = torch.unflatten(self.a, -3, (2, 5)).unbind(-3)
        u = u.unsqueeze(-3)
        mu, v = torch.addcmul(torch.addcmul(a5, a4, u), a1, torch.sigmoid(torch.addcmul(a3, a2, u))).unbind(-3)
        if self.gate == "stable":
            v = torch.sigmoid(v)
        return torch.lerp(mu, z.to(mu.dtype), v)  # (z - mu) v + mu

    def denoise(self, norm: Norm, z: Tensor, x: Tensor, half: bool) -> Float[Tensor, "*S R F"]:
        """g(z, norm(x)); a fused kernel writes it in bfloat16 (``half``) or float32, ready for the next product."""
        if self.fusable and may_fuse(norm, x):
            stable = self.gate == "stable"
            return fast.norm_combine(z, x, self.a, batch=is_batch(norm), stable=stable, eps=norm.eps, half=half)
        estimate: Tensor = self(z, norm(x))
        return estimate


_FUSED_FORWARD = Combinator.forward
"""The equation that ``fast.norm_combine`` computes; a subclass with another one is never fused."""


class Rectifier(nn.Module):
    """relu(u + c), in the place of a combinator where there is no lateral connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = per_feature(width, 0.0)

    def forward(self, z: Float[Tensor, "*S R F"], u: Float[Tensor, "*S R F"]) -> Float[Tensor, "*S R F"]:
        return torch.relu(u + self.bias)

    def denoise(self, norm: Norm, z: Tensor, x: Tensor, half: bool) -> Float[Tensor, "*S R F"]:
        return rectified(norm, x, self.bias, lateral=False)[1]


class Ladder(nn.Module):
    """Encoder up, decoder down, a lateral connection at each level unless told otherwise."""

    def __init__(
        self,
        widths: Sequence[int],
        norm: NormKind,
        gate: Gate,
        top: Top,
        eps: float = 1e-10,
        combinator: type[Combinator] = Combinator,
        attention: int = 0,
        lateral: bool = True,
    ) -> None:
        super().__init__()
        self.widths, self.top = tuple(widths), top
        upward = list(itertools.pairwise(widths))
        self.norms_up = nn.ModuleList(make_norm(norm, eps, high) for _, high in upward)
        self.norms_down = nn.ModuleList(make_norm(norm, eps, width) for width in widths)
        self.encoder = nn.ModuleList(Linear(low, high) for low, high in upward)
        self.bias = nn.ParameterList(per_feature(high, 0.0) for _, high in upward)
        self.top_scale = per_feature(widths[-1], 1.0) if top == "softmax" else None
        self.decoder = nn.ModuleList(Linear(high, low) for low, high in upward)
        self.combine = nn.ModuleList(combinator(width, gate) if lateral else Rectifier(width) for width in widths)
        self.attention = GroupAttention(widths[-1], attention) if attention else None

    def forward(
        self,
        h: Float[Tensor, "*S R W"],
        disturbance: Disturbance | None = None,
        iteration: Iteration | None = None,
        groups: int = 1,
    ) -> tuple[Float[Tensor, "*S R W"], Float[Tensor, "*S R C"]]:
        """The reconstruction of level 0 and the topmost representation; a disturbance only touches the way up.

        ``groups`` is K, of which only group attention takes note.
        """
        half = self.decoder[0].weight.dtype == torch.bfloat16
        lateral = [h]
        for level, (project, bias) in enumerate(zip(self.encoder, self.bias, strict=True), start=1):
            scale = self.top_scale if level == len(self.encoder) else None
            norm = at_iteration(self.norms_up[level - 1], iteration)
            z, h = activated(norm, project(dropped(disturbance, h, level - 1)), bias, scale)
            lateral.append(z)
        estimate = self._denoised(-1, lateral[-1], h, half, iteration)
        if self.attention is not None:
            estimate = estimate + self.attention(lateral[-1], groups).to(estimate.dtype)
        for level in reversed(range(len(self.decoder))):
            u = self.decoder[level](estimate)
            estimate = self._denoised(level, lateral[level], u, half, iteration)
        return estimate, h

    def parameter_roles(self) -> Roles:
        """Layer l is what leads from level l - 1 to level l and back, and the combinator of level l."""
        found: Roles = {}
        for layer, (up, bias, down) in enumerate(zip(self.encoder, self.bias, self.decoder, strict=True), start=1):
            found |= in_layer(layer, up, bias, down)
        for level, combinator in enumerate(self.combine):
            found |= in_layer(level, combinator)
        if self.attention is not None:
            found |= in_layer(len(self.encoder), self.attention)
        return found if self.top_scale is None else found | in_layer(TOP, self.top_scale)

    def _denoised(self, level: int, z: Tensor, x: Tensor, half: bool, iteration: Iteration | None) -> Tensor:
        combinator = self.combine[level]
        assert isinstance(combinator, Combinator | Rectifier)
        return combinator.denoise(at_iteration(self.norms_down[level], iteration), z, x, half)


class LadderMapping(nn.Module):
    """Tagger's mapping: project 2N + 2P features to the Ladder's input, its output to z and m.

    h = relu(norm(W_h features) + b);  [z, m] = norm(W_u Ladder(h)), z with a scale and bias per element,
    m with one scale for all. ``heads="plain"`` leaves this last norm out: LayerNorm would give every group's mask
    the same mean and variance over the elements, so that no group could be small or empty.
    """

    def __init__(
        self,
        elements: int,
        widths: Sequence[int],
        norm: NormKind = "batch",
        gate: Gate = "plain",
        top: Top = "softmax",
        heads: Heads = "normalised",
        eps: float = 1e-10,
        reader: ClassHead | None = None,
        combinator: type[Combinator] = Combinator,
        channels: int = 1,
        attention: int = 0,
        lateral: bool = True,
    ) -> None:
        super().__init__()
        self.elements, self.positions = elements, elements // channels
        self.W_h = Linear(2 * elements + 2 * self.positions, widths[0])
        self.bias_h = per_feature(widths[0], 0.0)
        self.ladder = Ladder(widths, norm, gate, top, eps, combinator, attention, lateral)
        self.W_u = Linear(widths[0], elements + self.positions)
        self.norm_h = make_norm(norm, eps, widths[0])
        sizes = (elements, self.positions)
        self.norm_z, self.norm_m = (make_norm(norm, eps, n) if heads == "normalised" else None for n in sizes)
        self.z_scale, self.z_bias = per_feature(elements, 1.0), per_feature(elements, 0.0)
        self.m_scale = per_feature(1, 1.0)
        self.reader = reader
        """Reads the classes, instead of the Ladder's topmost level."""

    def forward(
        self,
        features: Float[Tensor, "*S R F"],
        disturbance: Disturbance | None = None,
        reader_alone: bool = False,
        iteration: Iteration | None = None,
        groups: int = 1,
    ) -> Mapped:
        """``reader_alone``: no gradient of the classes leaves the reader. ``iteration``: see ``BatchNorm.at``."""
        _, h = rectified(at_iteration(self.norm_h, iteration), self.W_h(features), self.bias_h, lateral=False)
        if self.reader is None:
            u, top = self.ladder(h, disturbance, iteration, groups)
        else:
            u, _ = self.ladder(h, iteration=iteration, groups=groups)
            top = self.reader(features.detach() if reader_alone else features, disturbance, iteration)
        z_u, m_u = self.W_u(u).split([self.elements, self.positions], dim=-1)  # one product for both heads
        if self.norm_z is None or self.norm_m is None:
            z_pre = torch.addcmul(self.z_bias, wide(z_u), self.z_scale)
            return Mapped(z_pre, wide(m_u) * self.m_scale, top)
        _, z_pre = scaled(at_iteration(self.norm_z, iteration), z_u, self.z_scale, self.z_bias, lateral=False)
        m_scale = self.m_scale.expand(*self.m_scale.shape[:-1], self.positions).contiguous()
        m_bias = torch.zeros_like(m_scale)
        _, m_pre = scaled(at_iteration(self.norm_m, iteration), m_u, m_scale, m_bias, lateral=False)
        return Mapped(z_pre, m_pre, top)

    def parameter_roles(self) -> Roles:
        """The projections belong to layer 0, a reader to the topmost one."""
        return inner_roles(self) if self.reader is None else inner_roles(self) | in_layer(TOP, self.reader)
