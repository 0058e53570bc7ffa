"""The cost of a batch, put together by hand from the states of the iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from taggernet.nets import LadderMapping, MLPMapping
from taggernet.nets.disturbance import Disturbance
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tag.grouping import features
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.objective import Batch, Costs, Objective

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


def test_scenes_are_in_the_users_units(model: Tagger) -> None:
    """The labelled ones too."""
    x, others, classes = torch.rand(5, 16), torch.rand(5, 16), torch.tensor([[0], [1], [2], [0], [1]])
    expected = Objective(model, 2, 3, class_cost=1.0)(Batch(x, others, classes), NOISE, MASKS)
    scaled = Tagger(replace(model.config, offset=-3.0, scale=4.0)).requires_grad_(False)
    scaled.load_state_dict(model.state_dict())
    batch = Batch(4 * x - 3, 4 * others - 3, classes)
    found = Objective(scaled, 2, 3, class_cost=1.0)(batch, NOISE, MASKS)
    for one, other in zip(found, expected, strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-4)


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


@pytest.mark.parametrize("apart", [True, False])
def test_dropout_touches_the_last_iteration_that_classes_are_learned_from(model: Tagger, apart: bool) -> None:
    x, others = torch.rand(5, 16), torch.rand(5, 16)
    classes = torch.tensor([[0], [2], [1], [0], [1]])
    batch = Batch(x, others, classes) if apart else Batch(x, classes=classes)
    plain = Objective(model, 2, 3, class_cost=0.25)(batch, NOISE, MASKS)
    thinned = Objective(model, 2, 3, class_cost=0.25, class_dropout=0.5)(batch, NOISE, MASKS)
    assert float(plain.classification) != float(thinned.classification)
    noise, masks, seen = (NOISE.fold(1), MASKS.fold(1), others) if apart else (NOISE, MASKS, x)
    dropout = Disturbance(0.5, noise.fold(2))
    *_, before, _ = states(model, seen, noise, masks)
    features_of_last = features(model.likelihood, model.corruption.apply(seen, noise), before, model.v)
    assert isinstance(model.mapping, LadderMapping)
    top = model.mapping(features_of_last.flatten(0, 1), dropout).top
    assert top is not None
    p = model.class_probabilities(before._replace(top=top.reshape(5, 2, -1)))
    expected = -p.gather(-1, classes).log().mean()
    assert float(thinned.classification) == pytest.approx(float(expected), rel=1e-5)
    if apart:
        assert float(thinned.denoising) == float(plain.denoising)
    without = Objective(model, 2, 3, class_cost=0.25, class_dropout=0.5)(Batch(x), NOISE, MASKS)
    assert float(without.total) == pytest.approx(float(plain.denoising), rel=1e-6), "no labels: nothing is left out"


def with_reader() -> Tagger:
    """All parameters away from their start, all of them to be trained."""
    torch.manual_seed(0)
    config = TaggerConfig(
        shape=(4, 4), kind="real", widths=(12, 8), classes=3, class_widths=(7,), class_input="masks", v_start=0.3
    )
    model = Tagger(config)
    with torch.no_grad():
        for weights in model.mapping.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    return model


def gradients(model: Tagger, objective: Objective, batch: Batch) -> tuple[Costs, dict[str, Tensor | None]]:
    model.zero_grad()
    costs = objective(batch, NOISE, MASKS)
    costs.total.backward()
    return costs, {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize(
    ("iterations", "twins", "strength"), [(1, False, 0.0), (3, False, 0.0), (3, True, 0.0), (3, True, 0.7)]
)
def test_agreement_is_that_of_two_readings_of_scenes_without_labels(
    iterations: int, twins: bool, strength: float
) -> None:
    """The one with all units and masks as they are, of twins the mean of both, squared and normalised, and taken for
    the truth; nothing but the reader learns from it."""
    model = with_reader()
    x, others, classes = torch.rand(6, 16), torch.rand(6, 16), torch.tensor([[0], [2], [1], [0], [1], [2]])
    settings = {"class_cost": 0.25, "class_dropout": 0.4, "class_distortion": strength}
    plain, before = gradients(model, Objective(model, 2, iterations, **settings), Batch(x, others, classes))
    objective = Objective(model, 2, iterations, **settings, class_agreement=3.0, twins=twins)
    agreeing, after = gradients(model, objective, Batch(x, others, classes))
    assert (plain.denoising, plain.classification) == (agreeing.denoising, agreeing.classification)

    with torch.no_grad():
        x_tilde = model.corruption.apply(x, NOISE)
        found = [model.start(6, 2, MASKS)]
        found += model.iterate(x_tilde, found[0], iterations)
        seen = features(model.likelihood, x_tilde, found[-2], model.v).flatten(0, 1)
        assert isinstance(model.mapping, LadderMapping)
        assert model.mapping.reader is not None
        disturbance = Disturbance(0.4, NOISE.fold(2), 0, strength, (4, 4))
        thinned = model.mapping.reader(seen, disturbance).reshape(6, 2, 4)[..., :3].sum(1).double()
        whole = found[-1].top.reshape(6, 2, 4)[..., :3].sum(1).double()  # type: ignore[union-attr]
    whole = whole / whole.sum(1, keepdim=True)
    if twins:
        whole = torch.stack([(whole[i - i % 2] + whole[i - i % 2 + 1]) / 2 for i in range(6)])
    entropy = 0.0
    for row, sure in zip(thinned.numpy(), whole.numpy(), strict=True):
        truth = sure**2 / (sure**2).sum()
        entropy -= float((truth * np.log(row / row.sum())).sum()) / 6
    assert (agreeing.total - plain.total).item() == pytest.approx(0.25 * 3 * entropy, rel=1e-4)
    for name, gradient in after.items():
        assert gradient is not None, name
        assert torch.equal(gradient, cast(Tensor, before[name])) == ("reader" not in name), name

    both = Batch(x, classes=classes)
    assert objective(both, NOISE, MASKS).total == Objective(model, 2, iterations, **settings)(both, NOISE, MASKS).total


@pytest.mark.parametrize("apart", [True, False])
def test_a_class_cost_for_the_reader_alone_leaves_the_groups_to_the_denoising_cost(apart: bool) -> None:
    """The values are the same, the reader's gradient too; everything else learns as if there were no labels."""
    model = with_reader()
    x, others = torch.rand(5, 16), torch.rand(5, 16)
    classes = torch.tensor([[0], [2], [1], [0], [1]])
    batch = Batch(x, others, classes) if apart else Batch(x, classes=classes)

    everywhere, wide = gradients(model, Objective(model, 2, 3, 0.25, class_dropout=0.2), batch)
    kept, narrow = gradients(model, Objective(model, 2, 3, 0.25, class_dropout=0.2, class_reach="reader"), batch)
    _, unlabelled = gradients(model, Objective(model, 2, 3), Batch(x))
    assert everywhere == kept
    reached = 0
    for name, gradient in narrow.items():
        expected = (wide if "reader" in name else unlabelled)[name]
        assert gradient is not None, name
        assert expected is not None, name
        torch.testing.assert_close(gradient, expected, msg=name)
        reached += "reader" not in name and not torch.allclose(gradient, cast(Tensor, wide[name]))
    assert reached > 5, "with class_reach='all' the classes bend the groups"


def test_a_mapping_of_ones_own_cannot_leave_units_out() -> None:
    model = Tagger(TaggerConfig(shape=(4, 4)), MLPMapping(16, (8,)))
    with pytest.raises(ValueError, match="set class_dropout to 0"):
        list(model.iterate(torch.rand(2, 16), model.start(2, 2, MASKS), 2, Disturbance(0.5, NOISE)))


def test_a_discount_beyond_its_range_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match=r"discount=1.5 is out of range: give a number from 0 to 1"):
        replace(recipe("small"), discount=1.5)
