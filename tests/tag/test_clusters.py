"""K-means against a plain loop, and the most compact of its tries against moments counted position by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from square_scenes import RANDOM, normal, squares

from taggernet.tag.clusters import FURTHEST, MOVES, TRIES, clusters, compact_clusters, least_moment, moved_clusters


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


def two_discs(n: int) -> tuple[Any, Any, Any]:
    """Places (2,304, 2) of 48 x 48, where there is something (n, 2,304), and whose it is: a small disc touches a large
    one, in any direction."""
    places = np.stack(np.meshgrid(np.arange(48.0), np.arange(48.0), indexing="ij"), -1).reshape(-1, 2)
    angle = RANDOM.uniform(0, 2 * np.pi, n)
    middles = 23.5 + np.array([[-6], [13]]) * np.stack([np.cos(angle), np.sin(angle)], -1)[:, None]
    large, small = (np.linalg.norm(places - middle[:, None], axis=-1) for middle in middles.swapaxes(0, 1))
    owner = np.where(large < 13, 1, np.where(small < 6.5, 2, 0))
    return torch.from_numpy(places).float(), torch.from_numpy(owner > 0).float(), owner


def test_clusters_of_their_own_size_meet_where_the_small_one_ends() -> None:
    places, loud, owner = two_discs(40)
    random = normal(40, 2, 48 * 48)
    right = []
    for sizes in (True, False):
        found = compact_clusters(places.expand(40, -1, -1), loud, loud, random, 0.0, 1.0, 2, sizes).argmax(-2).numpy()
        same = [[(found[i][owner[i] > 0] == flip ^ (owner[i][owner[i] > 0] == 2)).mean() for flip in (0, 1)]
                for i in range(40)]  # fmt: skip
        right.append(np.max(same, 1).mean())
    assert right[0] > 0.97
    assert right[1] < 0.93


def test_clusters_of_their_own_size_are_gaussians() -> None:
    """Minus the log odds of round Gaussians whose shares, means and variances are those of their positions, by a loop
    over the rounds; one try is the most compact of eight equal ones."""
    features = RANDOM.normal(size=(40, 2)) * np.where(np.arange(40) < 30, 3.0, 0.3)[:, None]
    weight, cell = RANDOM.uniform(0.5, 2, 40), 0.01
    random = normal(1, 2, 5).repeat(1, 1, TRIES)  # rolled on by a fifth, it is the same
    given = [torch.from_numpy(part).float()[None] for part in (features, weight)]
    found = compact_clusters(*given, torch.ones(1, 40), random, 0.0, cell, 2, sizes=True)[0].numpy()
    labels = clusters(*given, random)[0].numpy().argmax(0)
    for _ in range(MOVES):
        odds = []
        for k in range(2):
            own, w = features[labels == k], weight[labels == k]
            mean = np.average(own, axis=0, weights=w)
            variance = (np.average(((own - mean) ** 2).sum(1), weights=w) + cell / (2 * np.pi)) / 2
            density = norm.logpdf(features, mean, np.sqrt(variance)).sum(1)
            odds.append(density + np.log(w.sum()))
        labels = np.argmax(odds, 0)
    np.testing.assert_allclose(found, np.maximum(odds - np.max(odds, 0), -FURTHEST), atol=2e-3)


def test_moved_clusters_are_those_of_k_means_with_other_features() -> None:
    """From the clusters of coarse features to those of fine ones; a cluster without positions stays empty."""
    features, weight = RANDOM.normal(size=(5, 60, 3)), RANDOM.uniform(0.1, 2, (5, 60))
    masks = normal(5, 4, 60)
    masks[:, 3] = -9.0
    given = (torch.from_numpy(part).float() for part in (features, weight))
    found = moved_clusters(*given, masks).numpy()
    for i in range(5):
        labels = masks[i].numpy().argmax(0)
        for _ in range(MOVES):
            centres = [np.average(features[i][labels == k], axis=0, weights=weight[i][labels == k]) for k in range(3)]
            distance = np.stack([((features[i] - centre) ** 2).sum(1) for centre in centres])
            labels = distance.argmin(0)
        spread = np.average(distance.min(0), weights=weight[i])
        np.testing.assert_allclose(
            found[i, :3], np.maximum((distance.min(0) - distance) / spread, -FURTHEST), atol=2e-3
        )
        assert (found[i, 3] == -FURTHEST).all()
