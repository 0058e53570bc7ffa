"""First masks that know something of the scene: clusters of its values, of its parts, or of values or textures at their
places.

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
from taggernet.tag.clusters import FURTHEST, SMALL, clusters, compact_clusters, moved_clusters
from taggernet.tag.grouping import scene_median

Silence = Literal["zero", "mean", "common"]
PARTS = 24
"""R: parts that are learned from the training data."""
QUIET_SHARE = 0.1
"""The value of silence is the middle of the shortest interval with this share of the values."""
LOUD = 0.5
"""Silence reaches this far around it, as a share of the root mean square of the distances from it."""
QUIET = 4.0
"""Nats of perfect silence."""
UPDATES = 30
"""Multiplicative updates by which the weights of the parts in a scene are found."""
INSIDE = 0.98
"""The share of a square that is loud around a position inside a texture."""
EDGE = 0.01
"""What the slope at a position near the edge of a texture counts, of one inside it."""


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
    for init in ("nndsvda", "random"):  # from the first, parts can become NaN or huge where the scenes have fewer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: a rough split is enough
            found = NMF(count, init=init, max_iter=200, random_state=0).fit(apart.double().numpy()).components_
        shapes = torch.zeros(PARTS, apart.shape[1])
        shapes[:count] = torch.from_numpy(found).float() * apart.any(0)
        if shapes.norm().isfinite():
            break
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
    weight: float = 2.0, apart: float = 0.0, smooth: int = 1, sizes: bool = False,
) -> Float[Tensor, "*S B K P"]:  # fmt: skip
    """Masks before their softmax: positions with like values that are near each other start in one group.

    Silence is the median of the scene's own values, and their unit the root mean square of their distances from it; in
    this unit two ends of an image are twice ``weight`` from each other. No two clusters of like values begin less than
    ``apart`` of an image's side from each other; a scene with little to tell apart leaves groups empty. With ``sizes``
    clusters differ in size. With ``smooth`` above one, positions of like texture take the place of like values:
    loudness is averaged over squares of this side, as a texture may have silent spots, and all that is loud weighs the
    same. Textures are found in squares twice as large; where they end is then seen in squares of this side. Slopes near
    the edge of a texture are those of the edge, so that they count only where there are no others.
    """
    difference = torch.unflatten(x - scene_median(x, channels).squeeze(-2), -1, (-1, channels))
    loudness = difference.square().mean(-1)
    size = loudness.mean(-1, keepdim=True).clamp_min(SMALL**2)
    described = difference / size.sqrt().unsqueeze(-1)
    if smooth > 1:
        loudness = averaged(loudness, shape, smooth)
    reach = LOUD**2 * size
    loud = (loudness > reach).to(x.dtype)
    if smooth > 1:
        inside = (averaged(loud, shape, smooth) > INSIDE) + EDGE * loud
        heard, fine = loud, textures(described, inside, shape, smooth)
        described = textures(described, inside, shape, 2 * smooth + 1)
    else:
        heard = loudness * loud if apart else loudness  # what is silent must not begin a cluster that is apart
    ends = [torch.linspace(-weight, weight, length, device=x.device) for length in shape]
    places = torch.stack(torch.meshgrid(*ends, indexing="ij"), dim=-1).flatten(0, -2)
    cell = math.prod([2 * weight / max(length - 1, 1) for length in shape])

    def with_places(described: Float[Tensor, "*S B P F"]) -> Float[Tensor, "*S B P G"]:
        return torch.cat([described, places.expand(*described.shape[:-1], -1)], dim=-1)

    def grouped(some: Float[Tensor, "*S B Q P"]) -> Float[Tensor, "*S B Q P"]:
        how = 2 * weight * apart, cell, len(shape), sizes
        found = compact_clusters(with_places(described), heard, loud, some, *how)
        return moved_clusters(with_places(fine), heard, found) if smooth > 1 else found

    return _beside_silence(grouped, loudness, reach, random)


def textures(
    x: Float[Tensor, "*B P C"], weight: Float[Tensor, "*B P"], shape: Sequence[int], side: int
) -> Float[Tensor, "*B P F"]:
    """The direction and the fineness of the texture around each position, in a square of this odd ``side``.

    These are the products of the slopes along two axes each, averaged with these weights (the structure tensor):
    divided by their trace they tell the direction, and the logarithm of the trace is, of a wave, twice that of its wave
    number. In an image, stripes of two directions are at most two apart, and as far as waves of which one is e times as
    fine.
    """
    axes, share = range(len(shape)), averaged(weight, shape, side).clamp_min(SMALL)
    along = [slopes(x, shape, axis) for axis in axes]
    pairs = [(i, j) for i in axes for j in axes if i <= j]
    products = [averaged((along[i] * along[j]).mean(-1) * weight, shape, side) / share for i, j in pairs]
    trace = torch.stack([of for (i, j), of in zip(pairs, products, strict=True) if i == j]).sum(0).clamp_min(SMALL)
    direction = [(math.sqrt(2) if i == j else 2) * of / trace for (i, j), of in zip(pairs, products, strict=True)]
    return torch.stack([*direction, trace.log()], dim=-1)


def slopes(x: Float[Tensor, "*B P C"], shape: Sequence[int], axis: int) -> Float[Tensor, "*B P C"]:
    """Half the difference of the two neighbours along an axis; at an end, the difference from the one."""
    at = torch.arange(shape[axis], device=x.device)
    after, before = (at + 1).clamp_max(shape[axis] - 1), (at - 1).clamp_min(0)
    weights = (at[:, None] == after).to(x.dtype) - (at[:, None] == before).to(x.dtype)
    weights = weights / (after - before).clamp_min(1)
    along = axis - len(shape) - 1
    images = torch.unflatten(x, -2, tuple(shape)).movedim(along, -1) @ weights
    return images.movedim(-1, along).flatten(-len(shape) - 1, -2)


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
