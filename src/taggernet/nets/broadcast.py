"""A Ladder whose code is laid out over an image: the spatial broadcast decoder (Watters et al. 2019).

# S seeds (optional) · R rows = B x K · P = h x w positions of the coarsest level, F features each

    up     h_0 = relu(norm(W_h image) + b_h),  then the Ladder's levels up to the code
    down   the Ladder's levels back to u,  then at each position p  relu(W_u u + W_c c_p + b)

One function of the code and of the coordinates c_p draws every position, and convolutions of enlarged images draw
every neighbourhood: one thing at one place is what a group draws most easily. A dense decoder has weights of its own
for every position and draws any scene as easily as a single object. A convolution that makes four positions out of one
has weights of its own for each of the four, and groups come to share an image like the squares of a chessboard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.disturbance import Disturbance
from taggernet.nets.ladder import Gate, Ladder, Top
from taggernet.nets.linear import Linear, per_feature
from taggernet.nets.norm import Iteration, NormKind, at_iteration, make_norm, rectified
from taggernet.nets.roles import TOP, Roles, in_layer

WAVES = 4
"""Half periods of the fastest cosine along each side."""


def coordinates(height: int, width: int) -> Float[Tensor, "P c"]:
    """Of every position, row by row: cosines of 1 .. WAVES half periods down and across, of unit variance."""
    down, across = ((torch.arange(side, device="cpu") + 0.5) / side for side in (height, width))
    waves = math.pi * torch.arange(1, WAVES + 1, device="cpu")
    rows = torch.cos(down[:, None] * waves)[:, None].expand(height, width, WAVES)
    columns = torch.cos(across[:, None] * waves)[None].expand(height, width, WAVES)
    return math.sqrt(2) * torch.cat([rows, columns], dim=-1).flatten(0, 1)


class BroadcastLadder(nn.Module):
    """In the place of a Ladder below which lies an image of ``size`` (h, w) with ``features``, as a flat row.

    The other arguments are those of ``Ladder``, which has no lateral connections here.
    """

    where: Float[Tensor, "P c"]

    def __init__(
        self,
        size: tuple[int, int],
        features: int,
        widths: Sequence[int],
        norm: NormKind,
        gate: Gate,
        top: Top,
        eps: float = 1e-10,
        attention: int = 0,
    ) -> None:
        super().__init__()
        self.W_h = Linear(math.prod(size) * features, widths[0])
        self.norm_h, self.bias_h = make_norm(norm, eps, widths[0]), per_feature(widths[0], 0.0)
        self.ladder = Ladder(widths, norm, gate, top, eps, attention=attention, lateral=False)
        self.W_u, self.W_c = Linear(widths[0], features), Linear(2 * WAVES, features)
        self.bias = per_feature(features, 0.0)
        self.register_buffer("where", coordinates(*size), persistent=False)

    def forward(
        self,
        h: Float[Tensor, "*S R W"],
        disturbance: Disturbance | None = None,
        iteration: Iteration | None = None,
        groups: int = 1,
    ) -> tuple[Float[Tensor, "*S R W"], Float[Tensor, "*S R C"]]:
        """As ``Ladder.forward``."""
        _, h = rectified(at_iteration(self.norm_h, iteration), self.W_h(h), self.bias_h, lateral=False)
        u, top = self.ladder(h, disturbance, iteration, groups)
        where = self.where.expand(*u.shape[:-2], *self.where.shape)
        drawn = self.W_u(u).unsqueeze(-2) + (self.W_c(where) + self.bias).unsqueeze(-3)
        return torch.relu(drawn).flatten(-2), top

    def parameter_roles(self) -> Roles:
        """Layer 0 is the image, layer 1 the Ladder's lowest level."""
        found = in_layer(0, self.bias) | in_layer(1, self.W_h, self.bias_h, self.W_u, self.W_c)
        for parameter, role in self.ladder.parameter_roles().items():
            found |= {parameter: replace(role, layer=min(TOP, role.layer + 1))}
        return found
