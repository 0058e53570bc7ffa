"""First masks that know something of the scene: clusters of its values, of its parts, or of values at their places.

# S seeds (optional) · B batch · K groups · P positions · C channels · N = P C elements · R parts · M = 2 N · F features

The paper's masks start at random. These start from a simple method applied to the corrupted scene, and remain a prior
that every iteration's mask is multiplied with (``Variant.tie``): the mapping learns what the groups look like,
and then corrects them. Chance still has a part: it picks the elements around which clusters begin.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from taggernet.rng import Key
from taggernet.tag.grouping import scene_median

Silence = Literal["zero", "mean", "common"]
PARTS = 24
"""R: parts that are learned from the training data."""
QUIET_SHARE = 0.1
"""The value of silence is the middle of the shortest interval with this share of the values."""
LOUD = 0.5
"""Silence reaches this far around it, as a share of the root mean square of the distances from it."""
FURTHEST, QUIET = 8.0, 4.0
"""Nats by which an element can be further from a cluster than from its own; those of perfect silence."""
FAR = 1e6
"""The squared distance of a centre that is left out."""
MOVES, UPDATES = 5, 30
"""Rounds of k-means; multiplicative updates by which the weights of the parts in a scene are found."""
TRIES = 8
"""Times that k-means begins for a start from places, of which the most compact clusters are kept."""
SMALL = 1e-6


class Parts(NamedTuple):
    """What the training data are made of; kept with a model's weights."""

    quiet: Float[Tensor, "*S 2 N"]
    """As ``find_silence`` has it."""
    shapes: Float[Tensor, "*S R M"]
    """Each part above silence, then below it; of length one, or zero where there are fewer than R."""
    together: Float[Tensor, "*S R R"]
    """A root of the correlations of the parts' weights: which of them appear together."""


def find_parts(x: Float[Tensor, "n P C"], silence: Silence) -> Parts:
    """Non-negative matrix factorisation of how far scenes, in the model's units, are above and below silence."""
    from sklearn.decomposition import NMF

    quiet = find_silence(x, silence)
    apart = _apart(x.flatten(1), quiet[0])
    count = min(PARTS, *apart.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: a rough split is enough
        found = NMF(count, init="nndsvda", max_iter=200, random_state=0).fit(apart.double().numpy()).components_
    shapes = torch.zeros(PARTS, apart.shape[1])
    shapes[:count] = torch.from_numpy(found).float() * apart.any(0)
    shapes = shapes / shapes.norm(dim=1, keepdim=True).clamp_min(SMALL)
    weights = _weights(apart, shapes)
    weights = weights - weights.mean(0)
    weights = weights / weights.norm(dim=0).clamp_min(SMALL)
    values, vectors = torch.linalg.eigh(weights.T @ weights)
    return Parts(quiet, shapes, vectors * values.clamp_min(0).sqrt())


def find_silence(x: Float[Tensor, "n P C"], silence: Silence) -> Float[Tensor, "2 N"]:
    """The value of silence, and the square of the distance up to which a value is silence.

    Silence is 0, the mean of each element, or the most common value of each channel, wherever it is.
    """
    of_each = {"zero": torch.zeros_like(x[0]), "mean": x.mean(0)}
    quiet = (of_each[silence] if silence in of_each else _most_common(x.flatten(0, 1)).expand_as(x[0])).flatten()
    reach = LOUD**2 * (x.flatten(1) - quiet).square().mean()
    return torch.stack([quiet, reach.expand_as(quiet)])


def _most_common(x: Float[Tensor, "n F"]) -> Float[Tensor, " F"]:
    """The middle of the shortest interval that holds ``QUIET_SHARE`` of a column."""
    ordered = x.sort(0).values
    inside = max(1, int(QUIET_SHARE * len(x)))
    first = (ordered[inside:] - ordered[:-inside]).argmin(0, keepdim=True)
    return (ordered.gather(0, first) + ordered.gather(0, first + inside))[0] / 2


def _apart(x: Float[Tensor, "*B N"], quiet: Float[Tensor, "*1 N"]) -> Float[Tensor, "*B M"]:
    """How far x is above silence, and how far below."""
    difference = x - quiet
    return torch.cat([difference.clamp_min(0), (-difference).clamp_min(0)], dim=-1)


def _weights(apart: Float[Tensor, "*S B M"], shapes: Float[Tensor, "*S R M"]) -> Float[Tensor, "*S B R"]:
    """How much of each part is in a scene: non-negative least squares (Lee and Seung's updates)."""
    alike, overlap = apart @ shapes.mT, shapes @ shapes.mT
    weights = alike + SMALL
    for _ in range(UPDATES):
        weights = weights * alike / (weights @ overlap + SMALL**2)
    return weights


def by_value(x: Float[Tensor, "*S B N"], random: Float[Tensor, "*S B K P"], channels: int) -> Float[Tensor, "*S B K P"]:
    """Masks before their softmax: positions with like values, of all channels, start in one group."""
    values = torch.unflatten(x, -1, (-1, channels))
    return clusters(values, torch.ones_like(values[..., 0]), random)


def between_clusters(x: Float[Tensor, "n N"], groups: int, channels: int) -> float:
    """The share of positions whose values lie between two clusters: small where values alone tell groups apart."""
    random = Key.of(0, x.device).normal(len(x), groups, x.shape[-1] // channels)
    nearest = by_value(x, random, channels).topk(2, dim=-2).values
    return (nearest[:, 0] - nearest[:, 1] < FURTHEST / 2).float().mean().item()


def by_parts(
    x: Float[Tensor, "*S B N"], random: Float[Tensor, "*S B K P"], channels: int, parts: Parts
) -> Float[Tensor, "*S B K P"]:
    """Masks before their softmax: positions that are explained by parts which appear together start in one group."""
    apart = _apart(x, parts.quiet[..., :1, :])
    difference = torch.unflatten(x - parts.quiet[..., :1, :], -1, (-1, channels))
    above, below = (torch.unflatten(half, -1, (-1, channels)) for half in parts.shapes.chunk(2, dim=-1))
    is_above = (difference > 0).to(x.dtype)
    share = torch.einsum("...bpc,...rpc->...bpr", is_above, above)
    share = share + torch.einsum("...bpc,...rpc->...bpr", 1 - is_above, below)
    share = share * _weights(apart, parts.shapes).unsqueeze(-2)
    share = share / share.sum(-1, keepdim=True).clamp_min(SMALL)
    features, reach = share @ parts.together.unsqueeze(-3), parts.quiet[..., 1:, :1].clamp_min(SMALL**2)
    loudness = difference.square().mean(-1)
    return _beside_silence(lambda some: clusters(features, loudness, some), loudness, reach, random)


def by_places(
    x: Float[Tensor, "*S B N"], random: Float[Tensor, "*S B K P"], channels: int, shape: Sequence[int],
    weight: float = 2.0, apart: float = 0.0, smooth: int = 1,
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """Masks before their softmax: positions with like values that are near each other start in one group.

    Silence is the median of the scene's own values, and their unit the root mean square of their distances from it; in
    this unit two ends of an image are twice ``weight`` from each other. No two clusters of like values begin less than
    ``apart`` of an image's side from each other; a scene with little to tell apart leaves groups empty. Loudness is
    averaged over squares of a side of ``smooth`` positions, for textures with silent spots; more than one, and all that
    is loud weighs the same.
    """
    difference = torch.unflatten(x - scene_median(x, channels).squeeze(-2), -1, (-1, channels))
    loudness = difference.square().mean(-1)
    size = loudness.mean(-1, keepdim=True).clamp_min(SMALL**2)
    ends = [torch.linspace(-weight, weight, length, device=x.device) for length in shape]
    places = torch.stack(torch.meshgrid(*ends, indexing="ij"), dim=-1).flatten(0, -2)
    scaled = difference / size.sqrt().unsqueeze(-1)
    features = torch.cat([scaled, places.expand(*scaled.shape[:-1], -1)], dim=-1)
    if smooth > 1:
        loudness = averaged(loudness, shape, smooth)
    reach = LOUD**2 * size
    loud = (loudness > reach).to(x.dtype)
    heard = loud if smooth > 1 else loudness
    if apart:  # what is silent must not begin a cluster
        heard = heard * loud
    cell = math.prod([2 * weight / max(length - 1, 1) for length in shape])

    def grouped(some: Float[Tensor, "*S B Q P"]) -> Float[Tensor, "*S B Q P"]:
        return compact_clusters(features, heard, loud, some, 2 * weight * apart, cell, len(shape))

    return _beside_silence(grouped, loudness, reach, random)


def averaged(x: Float[Tensor, "*B P"], shape: Sequence[int], side: int) -> Float[Tensor, "*B P"]:
    """The mean over a square around each position, as much of it as lies inside the image; an odd ``side``."""
    images = torch.unflatten(x, -1, tuple(shape))
    for axis, length in enumerate(shape, start=-len(shape)):
        at = torch.arange(length, device=x.device)
        near = ((at[:, None] - at).abs() <= side // 2).to(x.dtype)
        images = (images.movedim(axis, -1) @ (near / near.sum(0))).movedim(-1, axis)
    return images.flatten(-len(shape))


def _beside_silence(
    grouped: Callable[[Float[Tensor, "*S B Q P"]], Float[Tensor, "*S B Q P"]], loudness: Float[Tensor, "*S B P"],
    reach: Float[Tensor, "*S #B 1"], random: Float[Tensor, "*S B K P"],
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """What is loud, ``grouped``; with more than two groups the last one starts with what is silent, up to ``reach``."""
    if random.shape[-2] <= 2:
        return grouped(random)
    silent = (QUIET * (1 - loudness / reach)).clamp_min(-FURTHEST)
    return torch.cat([grouped(random[..., :-1, :]), silent.unsqueeze(-2)], dim=-2)


def clusters(
    features: Float[Tensor, "*S B P F"], weight: Float[Tensor, "*S B P"], random: Float[Tensor, "*S B K P"]
) -> Float[Tensor, "*S B K P"]:
    """Weighted k-means of the positions of every scene: minus the squared distance from each centre, 0 for the nearest,
    in units of the mean squared distance from the nearest."""
    return _in_units(squared_distances(features, weight, random), weight)


def compact_clusters(
    features: Float[Tensor, "*S B P F"], weight: Float[Tensor, "*S B P"], counted: Float[Tensor, "*S B P"],
    random: Float[Tensor, "*S B K P"], apart: float, cell: float, axes: int,
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """The same, the most compact of several tries; centres begin ``apart``, so that their number may differ.

    Distances are the shorter the more clusters there are. What counts is how much longer they are, over the ``counted``
    positions, than in balls of the same volume: two halves of a disc are as little a disc as two discs are one. A
    position fills ``cell`` in the space of its features, the last of which are places along the ``axes``. Tries read
    the random numbers from different positions on.
    """
    step = random.shape[-1] // TRIES
    several = torch.stack([random.roll(-step * one, dims=-1) for one in range(TRIES)], dim=-3)
    found = squared_distances(features.unsqueeze(-3), weight.unsqueeze(-2), several, apart)
    own = (found == found.amin(-2, keepdim=True)) * counted[..., None, None, :]
    excess = (found * own).sum(-1) - least_moment(own.sum(-1), cell, axes)
    best = excess.sum(-1).argmin(-1, keepdim=True) == torch.arange(TRIES, device=random.device)
    return _in_units(torch.where(best[..., None, None], found, 0.0).sum(-3), weight)


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
    lengths = features.square().sum(-1).unsqueeze(-2)

    def distances(centres: Float[Tensor, "*S B Q F"], left_out: Float[Tensor, "*S B Q 1"]) -> Tensor:
        along = centres @ features.mT
        return (lengths - 2 * along + centres.square().sum(-1, keepdim=True)).clamp_min(0) + left_out

    def drawn(score: Float[Tensor, "*S B P"]) -> Float[Tensor, "*S B 1 F"]:
        chosen = score.argmax(-1)[..., None, None] == torch.arange(score.shape[-1], device=score.device)
        return chosen.to(features.dtype) @ features  # ONNX keeps the batch free in this form of a look-up

    centres = drawn(torch.log(weight.clamp_min(SMALL**2)) + chance[..., 0, :])
    left_out = torch.zeros_like(centres[..., :1])
    """FAR for each centre that is left out."""
    for k in range(1, random.shape[-2]):
        nearest = distances(centres, left_out).amin(-2)
        free = weight * (nearest >= apart**2)
        further = drawn(
            torch.log(free.clamp_min(SMALL**2)) + torch.log(nearest.clamp_min(SMALL**2)) + chance[..., k, :]
        )
        centres = torch.cat([centres, further], dim=-2)
        none_free = (free.amax(-1) <= SMALL**2).to(features.dtype)[..., None, None]
        left_out = torch.cat([left_out, FAR * none_free], dim=-2)
    for _ in range(MOVES):
        found = distances(centres, left_out)
        own = (found == found.amin(-2, keepdim=True)) * weight.unsqueeze(-2)  # argmin is slow on a CPU
        total = own.sum(-1, keepdim=True)
        centres = torch.where(total > SMALL, own @ features / total.clamp_min(SMALL), centres)
    return distances(centres, left_out)
