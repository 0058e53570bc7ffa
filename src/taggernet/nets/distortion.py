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
"""Most by which a picture is turned, stretched (log of the factor) and slanted, at strength 1."""
BEND = 3.0
"""Standard deviation of a bump's height, in elements; where bumps overlap, their weighted mean counts."""
KNOTS = 5
_TURN, _STRETCH, _SLANT, _BEND = range(4)  # sub-streams


def distort(key: Key, pictures: Tensor, strength: float = 1.0, first: int = 0) -> Tensor:
    """Pictures (*key, n, h, w), numbers first .. first+n-1 of the key's stream; beyond an edge is what lies at it."""
    *_, n, height, width = pictures.shape
    down, across = (_middles(size, pictures.device) for size in (height, width))
    places = torch.stack(torch.meshgrid(across, down, indexing="xy"), dim=-1)
    moved = torch.einsum("...ij,hwj->...hwi", _matrices(key, n, strength, first), places)
    heights = strength * BEND * key.fold(_BEND).normal(n, KNOTS, KNOTS, 2, start=first * KNOTS**2 * 2)
    heights = torch.stack([heights[..., 0] * (2 / width), heights[..., 1] * (2 / height)], dim=-1)
    bent = torch.einsum("ha,...abi,wb->...hwi", _bumps(down), heights, _bumps(across))
    flat, found = pictures.reshape(-1, 1, height, width), (moved + bent).reshape(-1, height, width, 2)
    return grid_sample(flat, found, padding_mode="border", align_corners=False).reshape(pictures.shape)


def _matrices(key: Key, n: int, strength: float, first: int) -> Tensor:
    """(*key, n, 2, 2), of places (across, down)."""

    def between(most: float, stream: int, numbers: int) -> Tensor:
        uniform = key.fold(stream).uniform(n, numbers, start=first * numbers)
        return strength * most * (2 * uniform - 1)

    turn, slant = between(TURN, _TURN, 1), between(SLANT, _SLANT, 1)
    cos, sin = torch.cos(turn), torch.sin(turn)
    turned = torch.stack([torch.cat([cos, slant - sin], -1), torch.cat([sin, cos], -1)], dim=-2)
    return turned * torch.exp(between(STRETCH, _STRETCH, 2))[..., None, :]


def _middles(size: int, device: torch.device) -> Tensor:
    """The places of the elements along an axis from -1 to 1."""
    return (torch.arange(size, device=device) + 0.5) * (2 / size) - 1


def _bumps(places: Tensor) -> Tensor:
    """(places, knots): the weight of each knot at each place; they sum to one."""
    knots = torch.linspace(-1, 1, KNOTS, device=places.device)
    width = 1.2 / (KNOTS - 1)
    return torch.softmax(-0.5 * ((places[:, None] - knots) / width) ** 2, dim=-1)
