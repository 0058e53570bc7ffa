"""The exact posterior against a loop over every configuration of a tiny canvas."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.bayes_limit import Limit, cost, entropy, groups_of, limits, main, with_control
from taggernet import data

SIZE = 7
NOISE = 0.2
TABLE = data.placements(SIZE, "small")


def by_hand(x_tilde: np.ndarray, objects: int) -> tuple[np.ndarray, float, float]:
    """P(x = 1) of every element, p(x~), and the probability of the likeliest set of placements."""
    masks = TABLE.masks.numpy()
    kinds = np.repeat(np.arange(3), (TABLE.rows * TABLE.cols).numpy())
    prior = 1 / 3 / np.bincount(kinds)[kinds]
    every = np.array(list(product(range(len(masks)), repeat=objects)))
    x = masks[every].any(1)
    likelihood = np.where(x == x_tilde, 1 - NOISE, NOISE).prod(1) * prior[every].prod(1)
    sets: dict[tuple[int, ...], float] = {}
    for configuration, weight in zip(np.sort(every, axis=1).tolist(), likelihood, strict=True):
        sets[tuple(configuration)] = sets.get(tuple(configuration), 0.0) + weight
    total = likelihood.sum()
    return (likelihood[:, None] * x).sum(0) / total, float(total), max(sets.values()) / float(total)


@pytest.mark.parametrize("objects", [1, 2, 3])
def test_the_posterior_equals_brute_force(objects: int) -> None:
    scenes = data.shapes(3, 1, objects, SIZE, style="small")
    flips = np.random.default_rng(objects).random((3, SIZE**2)) < NOISE
    x_tilde = scenes.x.reshape(3, -1) ^ flips
    limit = Limit(TABLE, objects, NOISE)
    found = limit.posterior(torch.from_numpy(x_tilde))
    assert found.best.shape == (3, objects)
    masks = TABLE.masks.numpy()
    for i in range(3):
        covered, evidence, highest = by_hand(x_tilde[i], objects)
        np.testing.assert_allclose(found.covered[i].numpy(), covered, atol=1e-12)
        assert found.log_evidence[i].item() == pytest.approx(math.log(evidence), abs=1e-10)
        best = found.best[i].numpy()
        x = masks[best].any(0)
        orders = len(set(permutations_of(best.tolist())))
        prior = np.exp(limit.prior[found.best[i]].sum().item())
        probability = orders * prior * np.where(x == x_tilde[i], 1 - NOISE, NOISE).prod() / evidence
        assert probability == pytest.approx(highest, rel=1e-9)


def permutations_of(values: list[int]) -> list[tuple[int, ...]]:
    return [order for order in product(values, repeat=len(values)) if sorted(order) == sorted(values)]


def test_clean_scenes_are_explained_exactly() -> None:
    scenes = data.shapes(4, objects=3, size=SIZE, style="small")
    x = torch.from_numpy(scenes.x).reshape(4, -1)
    limit = Limit(TABLE, 3, NOISE)
    best = limit.explanation(x)
    assert torch.equal(groups_of(best, TABLE.masks) > 0, x > 0)
    assert torch.equal(best.sort().values, limit.posterior(x).best.sort().values)  # of all placements none is better


def test_the_limit_is_the_same_by_entropy_and_by_cost() -> None:
    """Both have the same mean over x~; and a scene at a time gives the same as many."""
    found = limits(2, 150, size=SIZE, style="small", batch=50)
    apart = found["entropy"]["mean"] - found["cost"]["mean"]
    assert abs(apart) < 3 * found["cost"]["standard_error"]
    assert 0 < found["cost"]["mean"] < 0.5  # nats; 0.69 says nothing
    assert found["ami"]["mean"] > found["ami_noisy"]["mean"] > 0.2
    alone = limits(2, 150, size=SIZE, style="small", batch=1)
    assert alone["entropy"]["mean"] == pytest.approx(found["entropy"]["mean"], rel=1e-9)


def test_entropy_and_cost_are_in_nats_per_element() -> None:
    q = torch.tensor([[0.5, 1.0, 0.25, 0.0]], dtype=torch.float64)
    expected = (math.log(2) - 0.25 * math.log(0.25) - 0.75 * math.log(0.75)) / 4
    assert entropy(q).item() == pytest.approx(expected)
    assert cost(q, torch.tensor([[1, 1, 0, 0]])).item() == pytest.approx((math.log(2) - math.log(0.75)) / 4)


def test_a_control_variate_keeps_the_mean_and_lowers_the_error() -> None:
    rng = np.random.default_rng(0)
    control = rng.normal(size=4000)
    values = 3 + 2 * control[:400] + 0.1 * rng.normal(size=400)
    found = with_control(values, control[:400], control)
    assert found["slope"] == pytest.approx(2, abs=0.05)
    assert found["mean"] == pytest.approx(3 + 2 * control.mean(), abs=0.02)
    assert found["standard_error"] < 0.5 * values.std() / 20


@pytest.mark.parametrize(("objects", "noise", "words"), [(4, 0.2, "cannot be enumerated"), (2, 0.5, "noise=0.5")])
def test_what_cannot_be_enumerated_is_refused(objects: int, noise: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Limit(TABLE, objects, noise)


def test_the_command_writes_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--objects", "1", "2", "--scenes", "2", "--json", str(tmp_path / "new" / "limit.json")])
    record = json.loads((tmp_path / "new" / "limit.json").read_text())
    found = [(one["objects"], one["scenes"], one["placements"]) for one in record["limits"]]
    assert found == [(1, 2, 448), (2, 2, 448)]
    assert "2 object(s), 2 scenes" in capsys.readouterr().out
