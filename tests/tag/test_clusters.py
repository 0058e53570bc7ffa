"""K-means against a plain loop, and the most compact of its tries against moments counted position by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from square_scenes import RANDOM, normal, squares

from taggernet.tag.clusters import FURTHEST, MOVES, TRIES, clusters, compact_clusters, least_moment


def plain_clusters(features: Any, weight: Any, random: Any) -> Any:
    """One scene, as a loop: k-means++ by Gumbel's trick, then Lloyd's rounds."""
    chance = -np.log(-np.log(norm.cdf(random)))
    centres = [features[np.argmax(np.log(weight) + chance[0])]]
    for k in range(1, len(random)):
        nearest = np.min([((features - c) ** 2).sum(1) for c in centres], 0)
        centres.append(features[np.argmax(np.log(weight) + np.log(np.maximum(nearest, 1e-12)) + chance[k])])
    for _ in range(MOVES):
        labels = np.argmin([((features - c) ** 2).sum(1) for c in centres], 0)
        for k in range(len(random)):
            if (labels == k).any():
                centres[k] = np.average(features[labels == k], axis=0, weights=weight[labels == k])
    distance = np.stack([((features - c) ** 2).sum(1) for c in centres])
    spread = np.average(distance.min(0), weights=weight)
    return np.maximum((distance.min(0) - distance) / spread, -FURTHEST)


def test_clusters_are_those_of_a_plain_loop() -> None:
    features, weight = RANDOM.normal(size=(6, 30, 3)), RANDOM.uniform(0.1, 2, (6, 30))
    random = normal(6, 4, 30)
    found = clusters(torch.from_numpy(features).float(), torch.from_numpy(weight).float(), random)
    for i in range(6):
        wanted = plain_clusters(features[i], weight[i], random[i].double().numpy())
        np.testing.assert_allclose(found[i].numpy(), wanted, atol=2e-3)


@pytest.mark.parametrize("shape", [(4001,), (201, 201), (61, 61, 61)])
def test_no_shape_has_a_smaller_moment_than_a_ball(shape: tuple[int, ...]) -> None:
    """Of positions in a ball, counted one by one; a cube has more."""
    places = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij"), -1).reshape(-1, len(shape))
    cell = float(np.prod([2 / (n - 1) for n in shape]))
    ball, cube = places[(places**2).sum(1) < 0.64], places[np.abs(places).max(1) < 0.5]
    for body, slack in ((ball, 0.0), (cube, 0.0 if len(shape) == 1 else 0.03)):
        least = float(least_moment(torch.tensor(float(len(body))), cell, len(shape)))
        measured = ((body - body.mean(0)) ** 2).sum()
        assert measured == pytest.approx(least, rel=0.01) if not slack else measured > least * (1 + slack)


def test_the_most_compact_try_is_kept() -> None:
    """Each try is plain k-means with the random numbers rolled on."""
    x, _ = squares(30, 3)
    loud = torch.from_numpy(x != np.median(x, 1, keepdims=True)).float()
    ends = torch.linspace(-1, 1, 24)
    places = torch.stack(torch.meshgrid(ends, ends, indexing="ij"), -1).flatten(0, 1).expand(30, -1, -1)
    random, cell = normal(30, 3, 576), (2 / 23) ** 2
    kept = compact_clusters(places, loud, loud, random, 0.0, cell, 2)
    tries = torch.stack([clusters(places, loud, random.roll(-one * (576 // TRIES), -1)) for one in range(TRIES)])
    same = (kept[None] - tries).flatten(2).abs().amax(2) < 1e-4
    assert same.any(0).all()
    labels = tries.argmax(-2).numpy()
    excess = np.zeros(same.shape)
    for one, i, k in np.ndindex(*same.shape, 3):
        inside = places[i].numpy()[(labels[one, i] == k) & (loud[i].numpy() > 0)]
        if len(inside):
            excess[one, i] += ((inside - inside.mean(0)) ** 2).sum() - len(inside) ** 2 * cell / (2 * np.pi)
    chosen = np.where(same.numpy(), excess, np.inf).min(0)
    assert np.median(chosen - excess.min(0)) < 1e-3
    assert chosen.mean() < excess.mean()


def test_rounding_does_not_choose_between_equal_tries() -> None:
    """On few positions most tries end with the same clusters, in another order."""
    features, random = normal(200, 54, 4, seed=1), normal(200, 3, 54)
    weight = (normal(200, 54, seed=2) < 0.5).float()
    single, double = (
        compact_clusters(features.to(of), weight.to(of), weight.to(of), random.to(of), 0.3, 0.2, 2)
        for of in (torch.float32, torch.float64)
    )
    assert ((single - double).flatten(1).abs().amax(1) < 0.01).float().mean() > 0.98
