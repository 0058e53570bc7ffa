"""The cost of a batch, put together by hand from the states of the iterations."""

from __future__ import annotations

import pytest
import torch

from taggernet.randomness import Key
from taggernet.recipes import recipe
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.objective import Batch, Objective

NOISE, MASKS = Key.of(0).fold("noise"), Key.of(0).fold("masks")


@pytest.fixture
def model() -> Tagger:
    torch.manual_seed(0)
    model = Tagger(TaggerConfig(shape=(4, 4), kind="real", widths=(12, 8), classes=3, norm="layer", v_start=0.3))
    with torch.no_grad():
        for weights in model.mapping.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    return model.requires_grad_(False)


def states(model: Tagger, x: torch.Tensor, noise: Key, masks: Key) -> list:  # type: ignore[type-arg]
    start = model.start(len(x), 2, masks)
    return list(model.iterate(model.corruption.apply(x, noise), start, 3))


@pytest.mark.parametrize(
    ("discount", "shares"), [(1.0, (1 / 3, 1 / 3, 1 / 3)), (0.5, (1 / 7, 2 / 7, 4 / 7)), (0.0, (0, 0, 1))]
)
def test_every_iteration_has_its_share(model: Tagger, discount: float, shares: tuple[float, ...]) -> None:
    x = torch.rand(5, 16)
    costs = [float(model.cost(x, state).mean()) for state in states(model, x, NOISE, MASKS)]
    assert max(costs) - min(costs) > 1e-3, "iterations must differ for this to say anything"
    found = Objective(model, 2, 3, discount=discount)(Batch(x), NOISE, MASKS)
    assert float(found.total) == pytest.approx(sum(s * c for s, c in zip(shares, costs, strict=True)), rel=1e-5)
    assert float(found.classification) == 0


def test_labels_of_other_scenes_and_of_the_scenes_themselves(model: Tagger) -> None:
    """Cross-entropy of the last iteration; two digits share the target."""
    x, others = torch.rand(5, 16), torch.rand(5, 16)
    classes = torch.tensor([[0, 1], [2, 2], [1, 0], [0, 2], [1, 1]])
    objective = Objective(model, 2, 3, class_cost=0.25)

    def entropy(last: object) -> float:
        p = model.class_probabilities(last)  # type: ignore[arg-type]
        rows = zip(p, classes, strict=True)
        return float(-torch.stack([0.5 * (row[a].log() + row[b].log()) for row, (a, b) in rows]).mean())

    apart = objective(Batch(x, others, classes), NOISE, MASKS)
    own = objective(Batch(x, classes=classes), NOISE, MASKS)
    assert float(apart.classification) == pytest.approx(
        entropy(states(model, others, NOISE.fold(1), MASKS.fold(1))[-1]), rel=1e-5
    )
    assert float(own.classification) == pytest.approx(entropy(states(model, x, NOISE, MASKS)[-1]), rel=1e-5)
    assert float(own.denoising) == pytest.approx(float(apart.denoising), rel=1e-6)
    for found in (apart, own):
        assert float(found.total) == pytest.approx(float(found.denoising + 0.25 * found.classification), rel=1e-6)


def test_a_discount_beyond_its_range_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match=r"discount=1.5 must be from 0"):
        replace(recipe("small"), discount=1.5)
