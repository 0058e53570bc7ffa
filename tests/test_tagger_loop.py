"""The loop of Tagger against its equations: starts, results, costs, classes, many seeds at once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from small_taggers import BINARY, REAL, scenes, tagger
from torch import Tensor

from taggernet.nets import BatchNorm, LadderMapping, MLPMapping
from taggernet.rng import Key
from taggernet.tag import BernoulliGroups, BitFlip, GaussianGroups, GaussianNoise, State
from taggernet.tagger import Tagger, TaggerConfig


@pytest.mark.parametrize("config", [REAL, replace(REAL, offset=2.0, scale=3.0)], ids=["as it is", "units"])
def test_a_posterior_result_is_bayes_rule_after_the_papers_loop(config: TaggerConfig) -> None:
    """z is that of the loop, which sees its own masks; every state shows the posterior, by hand from densities."""
    plain, model = tagger(config), tagger(replace(config, masks="posterior-result"))
    x = Key.of(1).normal(7, 2, 3) * config.scale + config.offset
    loop, shown = plain.group(x, 3, 4).history, model.group(x, 3, 4).history
    seen = ((x - config.offset) / config.scale).flatten(1).unsqueeze(1)
    spread = (model.v.item() + config.noise**2) ** 0.5
    for before, after in zip(loop, shown, strict=True):
        assert torch.equal(before.z, after.z)
        joint = before.m * torch.distributions.Normal(before.z, spread).log_prob(seen).exp()
        torch.testing.assert_close(after.m, joint / joint.sum(1, keepdim=True), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(loop[-1].m, shown[-1].m, atol=1e-2)


@pytest.mark.parametrize("channels", [1, 2])
def test_z_from_the_scene_is_the_plain_model_on_scenes_less_their_median(channels: int) -> None:
    """A background of any value is grouped alike, and reconstructions have it back."""
    config = replace(REAL, channels=channels, mean=0.1)
    plain, model = tagger(config), tagger(replace(config, origin="scene"))
    x = Key.of(1).normal(7, 2, 3, channels) + 5 * Key.of(2).normal(7, 1, 1, channels)
    x = x if channels > 1 else x[..., 0]
    flat = x.reshape(7, 6, channels)
    median = flat.median(1, keepdim=True).values.expand_as(flat).reshape(x.shape)
    found, centred = model.group(x, 3, 3), plain.group(x - median, 3, 3)
    for one, other in zip(found.history, centred.history, strict=True):
        torch.testing.assert_close(one.m, other.m, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(one.fed, other.fed, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found.reconstructions, centred.reconstructions + median[:, None], rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="give what the model sees of it, seen="):
        model.start(2, 3, Key.of(0))
    with pytest.raises(ValueError, match="origin='scene' is for real values, but kind='binary'"):
        TaggerConfig((2, 3), origin="scene")


def test_of_several_starts_each_input_has_the_one_that_explains_it_best() -> None:
    model, x = tagger(), scenes(40)
    rows, masks = x.flatten(1), Key.of(5).fold("masks")
    with torch.no_grad():
        runs = [list(model.states(rows, 3, 2, key)) for key in (masks, masks.fold(1), masks.fold(2))]
        costs = torch.stack([model.cost(rows, states[-1]).mean(-1) for states in runs])
    best = costs.argmin(0)
    assert len(best.unique()) == 3
    found = model.group(x, 3, 2, seed=5, starts=3)
    for i, state in enumerate(found.history):
        for at, chosen in enumerate(best.tolist()):
            assert torch.equal(state.m[at], runs[chosen][i].m[at])
            assert torch.equal(state.z[at], runs[chosen][i].z[at])


def test_kind_decides_noise_groups_and_gate() -> None:
    binary, real = tagger(BINARY), tagger(REAL)
    assert binary.corruption == BitFlip(0.2)
    assert binary.likelihood == BernoulliGroups(0.2)
    assert real.corruption == GaussianNoise(0.2)
    assert real.likelihood == GaussianGroups(0.2)
    gates = [{c.gate for c in model.mapping.ladder.combine} for model in (binary, real)]  # type: ignore[union-attr]
    assert gates == [{"plain"}, {"stable"}]
    changed = replace(REAL, delta_z="exact", ratio_variance="reference", gate="plain", noise=0.1)
    assert Tagger(changed).likelihood == GaussianGroups(0.1, "exact", "reference")
    assert tagger(replace(BINARY, feedback="probabilities")).likelihood == BernoulliGroups(0.2, "probabilities")


@pytest.mark.parametrize("v_start", [1 + math.sqrt(2), 0.01, 30.0])
def test_v_starts_where_asked_and_stays_positive(v_start: float) -> None:
    model = Tagger(replace(REAL, v_start=v_start))
    assert model.v.item() == pytest.approx(v_start, rel=1e-4)
    if v_start > 2:
        assert Tagger(REAL).w.item() == pytest.approx(1.0)
    for w in (-1e6, -100.0, 0.0, 100.0, 1e6):
        with torch.no_grad():
            model.w.fill_(w)
        assert 0 < model.v.item() < math.inf
        (gradient,) = torch.autograd.grad(model.v.sum(), model.w)
        assert 0 < gradient.item() < math.inf


def test_another_mapping_can_be_given() -> None:
    torch.manual_seed(0)
    mapping = MLPMapping(6, (8,))
    model = Tagger(BINARY, mapping)
    assert model.mapping is mapping
    assert model.group(scenes()).top.shape == (7, 4, 8)
    assert {id(p) for p in mapping.parameters()} < {id(p) for p in model.parameters()}


def test_a_few_steps_of_training_lower_the_cost() -> None:
    for config in (BINARY, REAL, replace(BINARY, norm="batch")):
        torch.manual_seed(0)
        model = Tagger(config)
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
        x = scenes(32).flatten(1)
        costs = []
        for _ in range(40):
            states = list(model.iterate(x, model.start(32, 3, Key.of(0)), 2))
            cost = torch.stack([model.cost(x, state).mean() for state in states]).mean()
            optimiser.zero_grad()
            cost.backward()
            optimiser.step()
            costs.append(cost.item())
        assert all(map(math.isfinite, costs))
        assert costs[-1] < costs[0] - 0.1, config


def test_class_probabilities_drop_no_class_sum_and_renormalise() -> None:
    model = tagger(replace(BINARY, classes=3))
    assert isinstance(model.mapping, LadderMapping)
    assert model.mapping.ladder.widths == (12, 8, 5, 4)
    out = model.group(scenes(), groups=2, iterations=2)
    top = out.history[-1].top
    assert top is not None
    assert top.shape == (7, 2, 4)
    for b in range(7):
        kept = [[float(top[b, k, c]) for c in range(3)] for k in range(2)]
        total = sum(map(sum, kept))
        expected = torch.tensor([(kept[0][c] + kept[1][c]) / total for c in range(3)])
        torch.testing.assert_close(model.class_probabilities(out.history[-1])[b], expected)
        torch.testing.assert_close(model.class_shares(out.history[-1])[b], torch.tensor(kept) / total)


def test_certain_no_class_everywhere_is_finite() -> None:
    model = tagger(replace(BINARY, classes=3))
    nothing = torch.zeros(1, 2, 4)
    nothing[..., -1] = 1
    blank = torch.zeros(1, 2, 6)
    assert torch.isfinite(model.class_probabilities(State(blank, blank, blank, blank, nothing))).all()


def test_classes_of_a_model_without_them() -> None:
    with pytest.raises(ValueError, match="this model was trained without classes: train one with classes first"):
        tagger().predict(scenes())


def test_stacked_seeds_of_a_whole_model() -> None:
    """functional_call on (S, ...) parameters, v included, equals each model alone."""
    models = [tagger(REAL, seed) for seed in range(2)]
    for number, model in enumerate(models):
        with torch.no_grad():
            model.w.fill_(float(number))
    stacked, _ = torch.func.stack_module_state(models)

    class Cost(torch.nn.Module):
        def __init__(self, model: Tagger) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Tensor, key: Key) -> Tensor:
            *_, last = self.model.iterate(x, self.model.start(x.shape[-2], 3, key), 2)
            return self.model.cost(x, last)

    x = Key.of(0).uniform(2, 4, 6)
    parameters = {f"model.{name}": value for name, value in stacked.items()}
    together = torch.func.functional_call(Cost(models[0]), parameters, (x, Key.of([5, 6])))
    for row, model in enumerate(models):
        torch.testing.assert_close(together[row], Cost(model)(x[row], Key.of(5 + row)), rtol=1e-3, atol=1e-4)


def test_share_statistics_reaches_every_batchnorm() -> None:
    model = tagger(replace(BINARY, norm="batch"))
    model.share_statistics()
    found = [m.shared_statistics for m in model.modules() if isinstance(m, BatchNorm)]
    assert len(found) == 8, "two levels up, three down, h, z and m"
    assert all(found)
