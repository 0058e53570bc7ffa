"""Adam for many seeds at once: its state, learning rates, clipping, and the average of the weights.

# S seeds · every tensor of weights and moments is stacked (S, ...)

All arithmetic is float32. With products in bfloat16, a matrix is kept as the bfloat16 half that products read and the
16 bits it lacks (fast/split_float.py), so the weight is still float32 to the last bit; its gradient is bfloat16, and
its two moments are kept in 16 bits each between two updates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from taggernet.config.run import OptimiserConfig
from taggernet.fast.split_float import dequantize, merge, quantize, split
from taggernet.nets.roles import ParameterRole

Tensors = dict[str, Tensor]


@dataclass
class TrainState:
    """All that changes during training."""

    weights: Tensors
    first_moment: Tensors
    second_moment: Tensors
    average: Tensors
    step: int = 0

    @staticmethod
    def fresh(weights: Tensors, ema: bool) -> TrainState:
        return TrainState(
            weights,
            {name: torch.zeros_like(w) for name, w in weights.items()},
            {name: torch.zeros_like(w) for name, w in weights.items()},
            {name: w.clone() for name, w in weights.items()} if ema else {},
        )

    def copy(self) -> TrainState:
        """The same in the host's memory, untouched by later updates."""

        def copied(part: Tensors) -> Tensors:
            return {name: tensor.detach().to("cpu", copy=True) for name, tensor in part.items()}

        moments = copied(self.first_moment), copied(self.second_moment)
        return TrainState(copied(self.weights), *moments, copied(self.average), self.step)

    @property
    def evaluated(self) -> Tensors:
        """The weights that evaluation uses."""
        return self.average or self.weights

    @property
    def is_finite(self) -> bool:
        parts = (self.weights, self.first_moment, self.second_moment, self.average)
        return all(bool(torch.isfinite(tensor).all()) for part in parts for tensor in part.values())


class Schedule:
    """The learning rate. Its numbers are tensors, so that runs of other rates and lengths share compiled code."""

    def __init__(self, config: OptimiserConfig, device: torch.device | str = "cpu") -> None:
        self.cosine, self.warms_up = config.schedule == "cosine", config.warmup > 0
        numbers = (config.lr, config.final, config.warmup, max(1, config.updates - config.warmup))
        self.numbers = torch.tensor(numbers, dtype=torch.float32, device=device)

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of the update that follows ``step`` updates, float32."""
        rate, final, warmup, length = self.numbers.unbind()
        progress = step.to(torch.float32)
        if self.cosine:
            share = ((progress - warmup) / length).clamp(0, 1)
            rate = rate * (final + (1 - final) * 0.5 * (1 + torch.cos(math.pi * share)))
        if self.warms_up:
            rate = rate * ((progress + 1) / warmup).clamp(max=1)
        return rate.expand_as(progress)


def relative_rate(config: OptimiserConfig, role: ParameterRole) -> float:
    """The learning rate of a parameter, in units of the run's."""
    if role.is_variance:
        return config.v_rate
    return config.lower_rate if role.layer < config.lower_layers else 1.0


def updates_to_wait(config: OptimiserConfig, role: ParameterRole) -> int:
    """For how many updates a parameter stays as it is."""
    return config.lower_wait if role.is_variance or role.layer < config.lower_layers else 0


def clip_factors(gradients: list[Tensor], limit: float) -> Tensor:
    """(S,): what each seed's gradient must be multiplied with so that its norm is at most the limit."""
    norms = [torch.linalg.vector_norm(g.flatten(1), dim=1, dtype=torch.float32) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factors: Tensor = (limit / (norm + 1e-12)).clamp(max=1)
    return factors


def by_seed(factor: Tensor, tensor: Tensor) -> Tensor:
    """A factor per seed (S,), shaped to multiply (S, ...)."""
    return factor.reshape(-1, *[1] * (tensor.ndim - 1))


class Adam:
    """The optimiser of a run. It changes its tensors in place, so that an update can be captured."""

    def __init__(
        self, state: TrainState, config: OptimiserConfig, roles: dict[str, ParameterRole], *, half: bool = False
    ) -> None:
        self.state, self.config = state, config
        self.schedule = Schedule(config, next(iter(state.weights.values())).device)
        self.names = list(state.weights)
        self.rates: list[float | Tensor] = [relative_rate(config, roles[name]) for name in self.names]
        """Of each parameter, in units of the learning rate; a tensor (S, 1, ...) gives every seed its own."""
        self.waits: list[int | Tensor] = [updates_to_wait(config, roles[name]) for name in self.names]
        """Updates for which each parameter stays as it is; a tensor (S, 1, ...) gives every seed its own."""
        is_split = [half and roles[name].fan_in is not None for name in self.names]
        halves = [
            split(w.detach()) if cut else (w, None) for w, cut in zip(state.weights.values(), is_split, strict=True)
        ]
        self.weights = [high.requires_grad_() for high, _ in halves]
        """What products read: the bfloat16 half of a matrix that is split, or the float32 weight itself."""
        self.low = [low for _, low in halves]
        """The other half; None where the weight is whole, and so are its moments."""
        firsts = zip(state.first_moment.values(), self.low, strict=True)
        self.first = [m if low is None else m.to(torch.bfloat16) for m, low in firsts]
        seconds = zip(state.second_moment.values(), self.low, strict=True)
        self.second = [v if low is None else quantize(v, torch.zeros_like(low), torch.tensor(0)) for v, low in seconds]
        self.unclipped = torch.ones(len(self.weights[0]), device=self.weights[0].device)
        self.state_is_old = False
        """Whether updates were made that the state does not show yet."""

    def tensors(self) -> list[Tensor]:
        """Everything that ``update`` changes."""
        low = [low for low in self.low if low is not None]
        return [*self.weights, *low, *self.first, *self.second, *self.state.average.values()]

    def clip(self, gradients: list[Tensor]) -> Tensor:
        """The factors (S,) for ``update``; not a part of it, as Inductor (2.11) fails on the two together."""
        return clip_factors(gradients, self.config.clip) if self.config.clip else self.unclipped

    def update(self, gradients: list[Tensor], clip: Tensor, step: Tensor) -> None:
        """One update of weights, moments and average, given how many went before it."""
        c, state = self.config, self.state
        g = [gradient.float() for gradient in gradients]
        if c.clip:
            g = [gradient * by_seed(clip, gradient) for gradient in g]
        m = [moment.float() for moment in self.first]
        v = [v if low is None else dequantize(v) for v, low in zip(self.second, self.low, strict=True)]
        t = (step + 1).to(torch.float32)
        rate = self.schedule(step) / (1 - c.beta1**t)
        correction = torch.rsqrt(1 - c.beta2**t)
        torch._foreach_lerp_(m, g, 1 - c.beta1)
        torch._foreach_mul_(v, c.beta2)
        torch._foreach_addcmul_(v, g, g, 1 - c.beta2)
        size = torch._foreach_sqrt(v)
        torch._foreach_mul_(size, correction)
        torch._foreach_add_(size, c.eps)
        change = torch._foreach_div(m, size)
        torch._foreach_mul_(change, rate)
        for own, relative, wait in zip(change, self.rates, self.waits, strict=True):
            if isinstance(relative, Tensor) or relative != 1:
                own.mul_(relative)
            if isinstance(wait, Tensor) or wait:
                own.mul_((step >= wait).to(torch.float32))
        weights = [high if low is None else merge(high, low) for high, low in zip(self.weights, self.low, strict=True)]
        torch._foreach_sub_(weights, change)
        if state.average:
            torch._foreach_lerp_(list(state.average.values()), weights, 1 - c.ema)
        for i in range(len(self.names)):
            low = self.low[i]
            if low is not None:
                self.first[i].copy_(m[i])
                self.second[i].copy_(quantize(v[i], low, step))
                high, rest = split(weights[i])
                self.weights[i].copy_(high)
                low.copy_(rest)

    def current_state(self) -> TrainState:
        """The state after the last update. What is kept in halves is only written there when someone asks."""
        with torch.no_grad():
            for i, name in enumerate(self.names if self.state_is_old else ()):
                low = self.low[i]
                if low is not None:
                    self.state.weights[name].copy_(merge(self.weights[i], low))
                    self.state.first_moment[name].copy_(self.first[i])
                    self.state.second_moment[name].copy_(dequantize(self.second[i]))
        self.state_is_old = False
        return self.state
