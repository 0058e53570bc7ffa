"""K-means of the positions of a scene, as masks before their softmax.

# S seeds (optional) · B batch · K groups · P positions · F features

All of it is made of products, so that it runs inside a compiled update and in ONNX.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

FURTHEST = 8.0
"""Nats by which a position can be further from a cluster than from its own."""
FAR = 1e6
"""The squared distance of a centre that is left out."""
MOVES = 5
"""Rounds of k-means, and as many again where clusters get sizes of their own or other features."""
TRIES = 8
"""Times that k-means begins, of which the most compact clusters are kept."""
EQUAL = 1e-4
"""Tries that differ by this share of their squared distances count as equal, of which the first is kept: often they are
the same clusters in another order, between which rounding would choose."""
SMALL = 1e-6


def clusters(
    features: Float[Tensor, "*S B P F"], weight: Float[Tensor, "*S B P"], random: Float[Tensor, "*S B K P"]
) -> Float[Tensor, "*S B K P"]:
    """Weighted k-means of the positions of every scene: minus the squared distance from each centre, 0 for the nearest,
    in units of the mean squared distance from the nearest."""
    return _in_units(squared_distances(features, weight, random), weight)


def compact_clusters(
    features: Float[Tensor, "*S B P F"], weight: Float[Tensor, "*S B P"], counted: Float[Tensor, "*S B P"],
    random: Float[Tensor, "*S B K P"], apart: float, cell: float, axes: int, sizes: bool = False,
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """The same, the most compact of several tries; centres begin ``apart``, so that their number may differ.

    Distances are the shorter the more clusters there are. What counts is how much longer they are, over the ``counted``
    positions, than in balls of the same volume: two halves of a disc are as little a disc as two discs are one. A
    position fills ``cell`` in the space of its features, the last of which are places along the ``axes``. Tries read
    the random numbers from different positions on. With ``sizes`` the border of a large and a small cluster is nearer
    to the small one, and not half-way.
    """
    step = random.shape[-1] // TRIES
    several = torch.stack([random.roll(-step * one, dims=-1) for one in range(TRIES)], dim=-3)
    each, weights = features.unsqueeze(-3), weight.unsqueeze(-2)
    distances = squared_distances(each, weights, several, apart)
    found = distances
    if sizes:
        found, distances = _of_own_size(each, weights, distances, cell, axes)
    own = (found == found.amin(-2, keepdim=True)) * counted[..., None, None, :]
    moment = (distances * own).sum((-2, -1))
    excess = moment - least_moment(own.sum(-1), cell, axes).sum(-1)
    as_good = excess <= (excess + EQUAL * moment).amin(-1, keepdim=True)
    order = torch.arange(TRIES, device=random.device)
    best = (as_good * (TRIES - order)).argmax(-1, keepdim=True) == order
    chosen = torch.where(best[..., None, None], found, 0.0).sum(-3)
    return (chosen.amin(-2, keepdim=True) - chosen).clamp_min(-FURTHEST) if sizes else _in_units(chosen, weight)


def _of_own_size(
    features: Float[Tensor, "*S #B P F"], weight: Float[Tensor, "*S #B P"], found: Float[Tensor, "*S B K P"],
    cell: float, axes: int,
) -> tuple[Float[Tensor, "*S B K P"], Float[Tensor, "*S B K P"]]:  # fmt: skip
    """From the clusters of these distances to Gaussians, each with a share and a spread of its own: minus the logarithm
    of a position's probability under each of them, and its squared distance from their middles."""
    distances = found
    for _ in range(MOVES):
        own, total, centres = _members(features, weight, found)
        distances = _from_centres(centres, features)
        spread = (own * distances).sum(-1, keepdim=True) / total.clamp_min(SMALL)
        spread = spread + least_moment(torch.ones_like(total), cell, axes)  # no cluster is smaller than a position
        found = axes / 2 * (distances / spread + spread.log()) - total.clamp_min(SMALL).log() + FAR * (total <= SMALL)
    return found, distances


def moved_clusters(
    features: Float[Tensor, "*S B P F"], weight: Float[Tensor, "*S B P"], masks: Float[Tensor, "*S B K P"]
) -> Float[Tensor, "*S B K P"]:
    """K-means that goes on from the clusters of other features."""
    found = -masks
    for _ in range(MOVES):
        _, total, centres = _members(features, weight, found)
        found = _from_centres(centres, features) + FAR * (total <= SMALL)
    return _in_units(found, weight)


def least_moment(count: Tensor, cell: float, axes: int) -> Tensor:
    """The sum of the squared distances of so many positions from their middle if they fill a ball, the least of all."""
    unit_ball = math.pi ** (axes / 2) / math.gamma(axes / 2 + 1)
    return axes / (axes + 2) * count * torch.pow(count * cell / unit_ball, 2 / axes)


def _in_units(found: Float[Tensor, "*S B K P"], weight: Float[Tensor, "*S B P"]) -> Float[Tensor, "*S B K P"]:
    nearest = found.amin(-2, keepdim=True)
    spread = (nearest * weight.unsqueeze(-2)).sum(-1, keepdim=True) / weight.sum(-1)[..., None, None].clamp_min(SMALL)
    return ((nearest - found) / spread.clamp_min(SMALL)).clamp_min(-FURTHEST)


def squared_distances(
    features: Float[Tensor, "*S #B P F"], weight: Float[Tensor, "*S #B P"], random: Float[Tensor, "*S B K P"],
    apart: float = 0.0,
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """Of all positions from the centres of weighted k-means.

    Standard normal numbers decide where the centres begin: each at a position drawn by its weight, times its squared
    distance from those drawn before (k-means++). A centre is left out that could only begin less than ``apart`` from
    another.
    """
    chance = -torch.log(-torch.log(torch.special.ndtr(random).clamp(SMALL, 1 - SMALL)))  # Gumbel: the largest is a draw

    def drawn(score: Float[Tensor, "*S B P"]) -> Float[Tensor, "*S B 1 F"]:
        chosen = score.argmax(-1)[..., None, None] == torch.arange(score.shape[-1], device=score.device)
        return chosen.to(features.dtype) @ features  # ONNX keeps the batch free in this form of a look-up

    centres = drawn(torch.log(weight.clamp_min(SMALL**2)) + chance[..., 0, :])
    left_out = torch.zeros_like(centres[..., :1])
    """FAR for each centre that is left out."""
    for k in range(1, random.shape[-2]):
        nearest = (_from_centres(centres, features) + left_out).amin(-2)
        free = weight * (nearest >= apart**2)
        further = drawn(
            torch.log(free.clamp_min(SMALL**2)) + torch.log(nearest.clamp_min(SMALL**2)) + chance[..., k, :]
        )
        centres = torch.cat([centres, further], dim=-2)
        none_free = (free.amax(-1) <= SMALL**2).to(features.dtype)[..., None, None]
        left_out = torch.cat([left_out, FAR * none_free], dim=-2)
    for _ in range(MOVES):
        _, total, moved = _members(features, weight, _from_centres(centres, features) + left_out)
        centres = torch.where(total > SMALL, moved, centres)
    return _from_centres(centres, features) + left_out


def _members(
    features: Float[Tensor, "*S #B P F"], weight: Float[Tensor, "*S #B P"], found: Float[Tensor, "*S B K P"]
) -> tuple[Float[Tensor, "*S B K P"], Float[Tensor, "*S B K 1"], Float[Tensor, "*S B K F"]]:
    """The weights of the positions that are nearest to each cluster, their sum, and the mean of their features."""
    own = (found == found.amin(-2, keepdim=True)) * weight.unsqueeze(-2)  # argmin is slow on a CPU
    total = own.sum(-1, keepdim=True)
    return own, total, own @ features / total.clamp_min(SMALL)


def _from_centres(
    centres: Float[Tensor, "*S B Q F"], features: Float[Tensor, "*S #B P F"]
) -> Float[Tensor, "*S B Q P"]:
    """Squared distances of all positions."""
    lengths = features.square().sum(-1).unsqueeze(-2)
    along = centres @ features.mT
    return (lengths - 2 * along + centres.square().sum(-1, keepdim=True)).clamp_min(0)
