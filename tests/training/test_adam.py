"""The learning rate, Adam, clipping and the average of the weights, against plain Python and torch's own optimiser."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from taggernet.config.run import OptimiserConfig
from taggernet.nets.linear import Linear
from taggernet.nets.roles import ParameterRole, Roles, named_roles
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training.adam import Schedule, TrainState, by_seed, clip_factors, relative_rate
from taggernet.training.objective import Batch, Costs, Objective
from taggernet.training.sources import FreshSource, Part
from taggernet.training.step import Update


def rate_oracle(c: OptimiserConfig, step: int) -> float:
    """The rate of the update that follows ``step`` others."""
    rate = c.lr
    if c.schedule == "cosine":
        share = min(max((step - c.warmup) / max(1, c.updates - c.warmup), 0), 1)
        rate *= c.final + (1 - c.final) * (1 + math.cos(math.pi * share)) / 2
    if step < c.warmup:
        rate *= (step + 1) / c.warmup
    return rate


SCHEDULES: list[dict[str, Any]] = [
    {},
    {"warmup": 4},
    {"schedule": "cosine"},
    {"schedule": "cosine", "warmup": 5, "final": 0.2},
    {"schedule": "cosine", "warmup": 30},
]


@pytest.mark.parametrize("options", SCHEDULES)
def test_learning_rate(options: dict[str, Any]) -> None:
    config = OptimiserConfig(lr=3e-3, updates=20, **options)
    found = Schedule(config)(torch.arange(25)).tolist()
    assert found == pytest.approx([rate_oracle(config, step) for step in range(25)], rel=1e-5, abs=1e-9)


def test_landmarks_of_the_rate() -> None:
    config = OptimiserConfig(lr=1.0, updates=110, schedule="cosine", warmup=10, final=0.5)
    at = {step: float(Schedule(config)(torch.tensor(step))) for step in (0, 4, 10, 60, 110, 500)}
    assert at == pytest.approx({0: 0.1, 4: 0.5, 10: 1.0, 60: 0.75, 110: 0.5, 500: 0.5})
    assert float(Schedule(OptimiserConfig(lr=0.25))(torch.tensor(10**9))) == 0.25


def test_clipping_is_clip_grad_norm_per_seed() -> None:
    torch.manual_seed(0)
    size = torch.tensor([0.01, 1.0, 100.0])
    gradients = [torch.randn(3, *shape) * size.reshape(3, *[1] * len(shape)) for shape in [(4, 5), (1, 7), (2, 3, 2)]]
    factors = clip_factors(gradients, 0.7)
    clipped = [g * by_seed(factors, g) for g in gradients]
    for seed in range(3):
        parameters = [nn.Parameter(torch.zeros_like(g[seed])) for g in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient[seed].clone()
        before = nn.utils.clip_grad_norm_(parameters, 0.7)
        for parameter, mine in zip(parameters, clipped, strict=True):
            torch.testing.assert_close(mine[seed], parameter.grad, rtol=1e-5, atol=1e-8)
        assert (before > 0.7) == (seed > 0), "one seed must pass untouched"
    assert all(torch.equal(mine[0], g[0]) for mine, g in zip(clipped, gradients, strict=True))


def test_clipping_a_zero_gradient_keeps_it() -> None:
    assert torch.equal(clip_factors([torch.zeros(2, 3)], 1.0), torch.ones(2))


class Weights(nn.Module):
    """Parameters of these names; ``declared`` says which roles some of them have."""

    def __init__(self, targets: dict[str, Tensor], declared: dict[str, ParameterRole]) -> None:
        super().__init__()
        self.declared = declared
        for name, target in targets.items():
            self.register_parameter(name, nn.Parameter(torch.zeros_like(target[0])))

    def parameter_roles(self) -> Roles:
        return {p: self.declared.get(name, ParameterRole()) for name, p in self.named_parameters()}


class Bowl(Objective):
    """A cost with a known gradient: sum over elements of c (w - target)^2 / 2, c and target per seed."""

    def __init__(self, targets: dict[str, Tensor], declared: dict[str, ParameterRole] | None = None) -> None:
        nn.Module.__init__(self)
        self.model = Weights(targets, declared or {})  # type: ignore[assignment]
        self.targets = targets

    def forward(self, batch: Batch, noise: Key, masks: Key, first: int = 0) -> Costs:
        total = sum(bowl(attrgetter(name)(self.model), t, batch.x) for name, t in self.targets.items())
        assert isinstance(total, Tensor)
        return Costs(total, total, torch.zeros_like(total))


def bowl(weight: Tensor, target: Tensor, x: Tensor) -> Tensor:
    """(S,); the data x (S, 1, 1) steepens it from update to update."""
    return (x.flatten(1).sum(1)[:, None] * (weight - target).flatten(1).square() / 2).sum(1)


def source(key: Key) -> FreshSource:
    return FreshSource(lambda k, count, first: (k.uniform(1, 1) + 0.5, None), key, Part.of(1))


@pytest.mark.parametrize(
    "options",
    [{}, {"clip": 0.5}, {"v_rate": 3.0}, {"lower_layers": 1, "lower_rate": 0.2},
     {"lower_layers": 2, "lower_rate": 0.0}, {"lower_layers": 1, "lower_rate": 0.3, "v_rate": 2.0},
     {"lower_layers": 1, "lower_wait": 9, "v_rate": 2.0},
     {"clip": 0.5, "ema": 0.9, "schedule": "cosine", "warmup": 5}],
)  # fmt: skip
def test_updates_are_those_of_torch_adam(options: dict[str, Any]) -> None:
    """25 updates of two seeds, each against torch.optim.Adam on the same cost."""
    config = OptimiserConfig(lr=0.05, batch=1, updates=25, beta1=0.8, beta2=0.95, eps=1e-6, **options)
    torch.manual_seed(1)
    targets = {"low": torch.randn(2, 4, 3), "variance": torch.randn(2, 1, 5), "high": torch.randn(2, 1, 3)}
    declared = {"variance": ParameterRole(is_variance=True), "high": ParameterRole(layer=1)}
    keys = Key.of([3, 4])
    state = TrainState.fresh({name: torch.zeros_like(t) for name, t in targets.items()}, ema=config.ema > 0)
    update = Update(Bowl(targets, declared), source(keys), state, config, keys, Part.of(1), buffer=25)
    costs = torch.cat([update.advance(count) for count in (1, 7, 17)])
    assert state.step == 25
    assert costs.shape == (25, 3, 2)
    for seed in range(2):
        parameters = [nn.Parameter(torch.zeros_like(t[seed])) for t in targets.values()]
        average = [torch.zeros_like(p) for p in parameters]
        relative = [config.lower_rate if config.lower_layers > layer else 1.0 for layer in (0, 1)]
        adam = torch.optim.Adam([{"params": [p]} for p in parameters], lr=1.0, betas=(0.8, 0.95), eps=1e-6)
        for step in range(25):
            late = step >= config.lower_wait
            for group, factor in zip(
                adam.param_groups, (late * relative[0], late * config.v_rate, relative[1]), strict=True
            ):
                group["lr"] = factor * rate_oracle(config, step)
            adam.zero_grad()
            x = source(keys).batch(torch.tensor(step)).x[seed : seed + 1]
            cost = sum(bowl(p[None], t[seed : seed + 1], x) for p, t in zip(parameters, targets.values(), strict=True))
            assert isinstance(cost, Tensor)
            cost.sum().backward()
            assert costs[step, 0, seed].item() == pytest.approx(cost.item(), rel=1e-4)
            if config.clip:
                nn.utils.clip_grad_norm_(parameters, config.clip)
            adam.step()
            average = [config.ema * a + (1 - config.ema) * p.detach() for a, p in zip(average, parameters, strict=True)]
        for index, name in enumerate(targets):
            torch.testing.assert_close(state.weights[name][seed], parameters[index].detach(), rtol=1e-4, atol=1e-6)
            if config.ema:
                torch.testing.assert_close(state.evaluated[name][seed], average[index], rtol=1e-4, atol=1e-6)
            else:
                assert state.evaluated[name] is state.weights[name]


def test_lower_layers_are_those_of_the_first_phase() -> None:
    """What a first phase has trained is what a second one of two more layers calls its three lower layers."""
    first, second = (
        Tagger(replace(recipe(name).model, shape=(4, 4))) for name in ("texture-mnist-2", "texture-mnist-2-labels-1k")
    )
    config = OptimiserConfig(lower_layers=3, lower_rate=0.5)
    before = {name: w.shape for name, w in first.named_parameters()}
    shared = {name for name, w in second.named_parameters() if before.get(name) == w.shape}
    slower = {name for name, role in named_roles(second).items() if relative_rate(config, role) == 0.5}
    assert slower == shared - {"w"}


class HalfBowl(Objective):
    """The same with a matrix that products would read."""

    def __init__(self, target: Tensor) -> None:
        nn.Module.__init__(self)
        self.model = nn.ModuleDict({"product": Linear(*target.shape[1:])})  # type: ignore[assignment]
        self.target = target

    def forward(self, batch: Batch, noise: Key, masks: Key, first: int = 0) -> Costs:
        weight: Tensor = attrgetter("product.weight")(self.model)
        assert weight.dtype == torch.bfloat16
        total = bowl(weight.float(), self.target, batch.x)
        return Costs(total, total, torch.zeros_like(total))


def test_in_bfloat16_no_small_step_is_lost() -> None:
    """The weight that Adam sees is float32 to the last bit; its averages are kept in 16 bits."""
    config = OptimiserConfig(lr=1e-4, batch=1, updates=40)
    torch.manual_seed(1)
    target = 1 + torch.rand(2, 4, 3)
    keys = Key.of([3, 4])
    state = TrainState.fresh({"product.weight": torch.ones(2, 4, 3)}, ema=False)
    update = Update(HalfBowl(target), source(keys), state, config, keys, Part.of(1), half=True, buffer=40)
    weight, m, v = torch.ones(2, 4, 3), torch.zeros(2, 4, 3), torch.zeros(2, 4, 3)
    for step in range(40):
        update.advance(1)
        assert update.current_state() is state
        x = source(keys).batch(torch.tensor(step)).x
        seen = weight.bfloat16().float().requires_grad_()
        (gradient,) = torch.autograd.grad(bowl(seen, target, x).sum(), seen)
        gradient = gradient.bfloat16().float()
        m = (m + 0.1 * (gradient - m)).bfloat16().float()
        v = 0.999 * v + 0.001 * gradient.square()
        hat_m, hat_v = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
        weight = weight - 1e-4 * hat_m / (hat_v.sqrt() + 1e-8)
        torch.testing.assert_close(state.first_moment["product.weight"], m, rtol=1e-2, atol=1e-4)
        torch.testing.assert_close(state.second_moment["product.weight"], v, rtol=5e-2, atol=0)
        torch.testing.assert_close(state.weights["product.weight"], weight, rtol=0, atol=2e-6 * (step + 1))
    moved = state.weights["product.weight"] - 1
    assert (moved > 3e-3).all(), "a step of 1e-4 is lost when 1 is rounded to bfloat16"
