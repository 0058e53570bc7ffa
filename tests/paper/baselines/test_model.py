"""Networks of the baselines: their start, and their errors by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from paper.baselines import BaselineConfig, baseline, quick
from paper.baselines.classifiers import population_moments
from paper.baselines.model import errors, initial_weights, network
from paper.baselines.sources import load_split

CPU = torch.device("cpu")


def toy(name: str) -> BaselineConfig:
    """On the fixture's digits, at a size that learns within seconds."""
    return replace(quick(baseline(name)), device="cpu")


def test_errors_are_the_share_of_wrong_digits() -> None:
    """Untrained weights, the same computation by hand."""
    config = toy("mlp-texture-mnist-2-50k")
    model, scenes = network(config), load_split(config, "valid")
    weights = initial_weights(model, [0, 1], CPU)
    x = torch.from_numpy(scenes.x).reshape(len(scenes), -1)
    population = population_moments(model, weights, x)
    found = errors(model, weights, population, scenes, batch=30)
    assert found.shape == (2, 100)
    alone = network(config)
    alone.load_state_dict({name: w[1] for name, w in weights.items()})
    log_p = alone(x, population_moments(alone, dict(alone.named_parameters()), x))
    assert scenes.classes is not None
    for row in range(100):
        first, second = scenes.classes[row]
        best = log_p[row].argsort(descending=True)[:2].tolist()
        by_hand = float(best[0] != first) if first == second else ((first not in best) + (second not in best)) / 2
        assert found[1, row].item() == by_hand


def test_initial_weights_are_a_function_of_the_seed() -> None:
    model = network(toy("convnet-texture-mnist-1-50k"))
    both, alone = initial_weights(model, [5, 6], CPU), initial_weights(model, [6], CPU)
    for name, w in alone.items():
        assert torch.equal(both[name][1], w[0])
    wide = initial_weights(network(baseline("convnet-texture-mnist-1-50k")), [0], CPU)
    assert wide["convolutions.3.weight"].std().item() == pytest.approx((192 * 9) ** -0.5, rel=0.01)
    assert wide["out.weight"].std().item() == pytest.approx(250**-0.5, rel=0.05)
