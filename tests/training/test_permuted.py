"""The Ladder knows nothing of neighbours: scenes with permuted elements are the same problem as scenes in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from toys import fixture_digits, shrunk

from taggernet.evaluation import Evaluation, evaluate_weights
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import train
from taggernet.training.datasets import load_split, permutation
from taggernet.training.seeds import carry_over, initial_weights

PHASES = ("texture-mnist-2", "texture-mnist-2-reader-labels-1k")
N = 28 * 28
ORDER = torch.from_numpy(permutation(shrunk(PHASES[0]).data, N))
Weights = dict[str, Tensor]


def moved(weights: Weights) -> Weights:
    """For permuted elements: every axis of N elements, or of several blocks of N, is permuted."""
    found = dict(weights)
    for name, weight in weights.items():
        for axis, size in enumerate(weight.shape):
            if size % N == 0:
                found[name] = weight.unflatten(axis, (-1, N)).index_select(axis + 1, ORDER).flatten(axis, axis + 1)
    return found


@contextmanager
def moved_draws() -> Iterator[None]:
    """Noise, first masks and dropout are drawn by an element's number: let them move with it, as its data do."""

    def following(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def drawn(key: Key, *shape: int, start: int | Tensor = 0) -> Tensor:
            numbers = draw(key, *shape, start=start)
            return numbers[..., ORDER] if shape[-1:] == (N,) else numbers

        return drawn

    with pytest.MonkeyPatch.context() as patch:
        for name in ("normal", "uniform"):
            patch.setattr(Key, name, following(getattr(Key, name)))
        yield


def both_phases(*, permuted: bool, move: Callable[[Weights], Weights] = dict) -> list[tuple[Weights, Evaluation]]:
    """Weights and validation after each phase, from initial weights that ``move`` changes."""
    found: list[tuple[Weights, Evaluation]] = []
    for name in PHASES:
        config = shrunk(name)
        config = replace(config, data=replace(config.data, permuted=permuted))
        start = move(initial_weights(config.model, [0], "cpu"))
        weights = train(config, start=carry_over(start, found[-1][0]) if found else start).weights
        found.append((weights, evaluate_weights(Tagger(config.model), weights, load_split(config.data, "valid"))))
    return found


def test_permuted_elements_are_the_same_problem() -> None:
    """Initial weights that are permuted like the elements stay so through all updates of a first phase and of a second
    one with a mask reader: cost, groups and classes of validation scenes are the same. Without that it is another run.
    """
    with fixture_digits():
        plain = both_phases(permuted=False)
        with moved_draws():
            same, other = both_phases(permuted=True, move=moved), both_phases(permuted=True)
    for (weights, expected), (found_weights, found), (_, differs) in zip(plain, same, other, strict=True):
        for name, weight in moved(weights).items():
            torch.testing.assert_close(found_weights[name], weight, rtol=0, atol=5e-5, msg=name)
        np.testing.assert_allclose(found.cost, expected.cost, rtol=0, atol=1e-4)
        assert np.abs(differs.cost - expected.cost).max() > 1e-2
        # Of almost equal masks either may be the larger one, so that a few labels may differ.
        labels = expected.labels[..., ORDER]
        assert (found.labels == labels).float().mean() > 0.999
        assert (differs.labels == labels).float().mean() < 0.5
        assert found.metrics()["ami"][0] == pytest.approx(expected.metrics()["ami"][0], abs=1e-4)
    torch.testing.assert_close(found.probabilities, expected.probabilities, rtol=0, atol=2e-4)
    assert found.metrics()["error"] == expected.metrics()["error"] != differs.metrics()["error"]
