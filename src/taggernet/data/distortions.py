"""Pictures turned, stretched, slanted and bent a little, each in its own way (Simard et al. 2003).

The value at a place p is that of the original at A p + b(p), where the picture goes from -1 to 1: A is a rotation
with a stretch along each axis and a slant, and b a smooth field, bumps of random height around a grid of knots.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from taggernet.rng import Key

TURN, STRETCH, SLANT = math.radians(15), 0.15, 0.2
"""Most by which a picture is turned, stretched (log of the factor) and slanted."""
BEND = 3.0
"""Standard deviation of a bump's height, in elements; where bumps overlap, their weighted mean counts."""
KNOTS = 5
_TURN, _STRETCH, _SLANT, _BEND = range(4)  # sub-streams


def distort(key: Key, pictures: Tensor, strength: float = 1.0, start: int | Tensor = 0) -> Tensor:
    """Square pictures (*key, n, D, h, h) of scenes start .. start+n-1 of the key's stream; outside they are 0.

    ``strength`` is relative to the constants of this module.
    """
    *_, n, count, side, _ = pictures.shape
    along = (torch.arange(side, device=pictures.device) + 0.5) * (2 / side) - 1  # the middles of the elements
    places = torch.stack(torch.meshgrid(along, along, indexing="xy"), dim=-1)
    moved = torch.einsum("...ij,hwj->...hwi", _matrices(key, n, count, strength, start), places)
    knots = (count, KNOTS, KNOTS, 2)
    heights = 2 * strength * BEND / side * key.fold(_BEND).normal(n, *knots, start=start * math.prod(knots))
    bent = torch.einsum("ha,...abi,wb->...hwi", _bumps(along), heights, _bumps(along))
    flat, found = pictures.reshape(-1, 1, side, side), (moved + bent).reshape(-1, side, side, 2)
    return grid_sample(flat, found, align_corners=False).reshape(pictures.shape)


def _matrices(key: Key, n: int, count: int, strength: float, start: int | Tensor) -> Tensor:
    """(*key, n, D, 2, 2), of places (x, y)."""

    def between(most: float, stream: int, numbers: int) -> Tensor:
        uniform = key.fold(stream).uniform(n, count, numbers, start=start * (count * numbers))
        return strength * most * (2 * uniform - 1)

    turn, slant = between(TURN, _TURN, 1), between(SLANT, _SLANT, 1)
    cos, sin = torch.cos(turn), torch.sin(turn)
    turned = torch.stack([torch.cat([cos, slant - sin], -1), torch.cat([sin, cos], -1)], dim=-2)
    return turned * torch.exp(between(STRETCH, _STRETCH, 2))[..., None, :]


def _bumps(places: Tensor) -> Tensor:
    """(places, knots): the weight of each knot at each place; they sum to one."""
    knots = torch.linspace(-1, 1, KNOTS, device=places.device)
    width = 1.2 / (KNOTS - 1)
    return torch.softmax(-0.5 * ((places[:, None] - knots) / width) ** 2, dim=-1)
