"""What the classifiers that Tagger is compared with share, and the plainest of them, the FC MLP.

# S seeds (optional) · B rows of a batch · N elements · level l = 1 .. L, level 0 is the input · C classes · D digits

    z_l = norm(project_l(h_{l-1})) + noise,  h_l = relu(z_l + b_l),  top: softmax(c (z_L + b_L))

The top is that of Rasmus et al. 2015, normalised and with a learned scale c, for all methods alike. Where a paper
leaves it open, noise is off.

Statistics. In training every part of a batch (labelled, unlabelled) is normalised by its own mean and variance.
At test time the population's take their place, and they are exact, not running averages: level by level, the
moments over all training scenes, given that the levels below already use theirs. ``forward`` follows the clean path
as far as moments are known, so one function serves both ``population_moments`` and prediction.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import pad

from paper.baselines.whitening import Whitening
from taggernet.nets.linear import Linear, per_feature
from taggernet.rng import Key

EPS = 1e-10


class Moments(NamedTuple):
    """Mean and variance of every feature, with the dimensions they broadcast over."""

    mean: Tensor
    variance: Tensor

    @staticmethod
    def of(x: Tensor, axes: tuple[int, ...]) -> Moments:
        mean = x.mean(axes, keepdim=True)
        return Moments(mean, (x - mean).square().mean(axes, keepdim=True))

    def normalise(self, x: Tensor) -> Tensor:
        return (x - self.mean) * torch.rsqrt(self.variance + EPS)

    def part(self, dimension: int, index: int) -> Moments:
        return Moments(self.mean.select(dimension, index), self.variance.select(dimension, index))


class Path(NamedTuple):
    """One part of a batch on its way up: z of the levels 0 .. L, moments of the levels 1 .. L, log p(class)."""

    z: list[Tensor]
    moments: list[Moments]
    log_p: Tensor


class Classifier(nn.Module):
    """Levels of product, normalisation, noise and ReLU under a softmax; a method says what its products are."""

    def __init__(self, biases: Sequence[nn.Parameter], classes: int, input_noise: float, layer_noise: float) -> None:
        super().__init__()
        for name, value in (("input_noise", input_noise), ("layer_noise", layer_noise)):
            if not value >= 0:
                raise ValueError(f"{name}={value} is not a standard deviation: choose 0 (none) or more, e.g. 0.3")
        self.levels = len(biases)
        self.noise: tuple[float | Tensor, ...] = (input_noise, *[layer_noise] * self.levels)
        """Standard deviations from the input to the top; a tensor (S,) where seeds differ (baselines/sweep.py)."""
        self.bias = nn.ParameterList(biases)
        self.top_scale = per_feature(classes, 1.0)
        self.whitening: Whitening | None = None
        """What the input undergoes before anything else, noise included."""

    # --- what a method defines ---------------------------------------------------------------------------

    def enter(self, x: Float[Tensor, "*S B N"]) -> Tensor:
        """The input, whitened where that is wanted, in the shape that the first level reads."""
        return x if self.whitening is None else self.whitening(x)

    def project(self, level: int, h: Tensor) -> Tensor:
        """Level l's values before normalisation, float32."""
        raise NotImplementedError

    def axes(self, level: int) -> tuple[int, ...]:
        """The dimensions that a feature's statistics pool, that of the rows first."""
        return (-2,)

    # --- clean, at test time -----------------------------------------------------------------------------

    def forward(self, x: Float[Tensor, "*S B N"], population: Sequence[Moments]) -> Tensor:
        """Log-probabilities of the classes (*S, B, C); or, where moments are still missing, the values that the
        first level without them would normalise."""
        h = self.enter(x)
        for level in range(1, self.levels + 1):
            values = self.project(level, h)
            if level > len(population):
                return values
            h = self.activate(level, population[level - 1].normalise(values))
        return h

    def activate(self, level: int, z: Tensor) -> Tensor:
        """h of a level; of the topmost one the logarithm of it."""
        biased = z + self.bias[level - 1]
        return torch.relu(biased) if level < self.levels else torch.log_softmax(self.top_scale * biased, dim=-1)

    # --- in training -------------------------------------------------------------------------------------

    def encode(self, inputs: Sequence[Tensor], keys: Sequence[Key]) -> list[Path]:
        """Parts of a batch, all of one size, through the same products, each normalised by itself; the first of them
        have a key each, and noise. What all undergo is done in one go: the parts are a dimension before the rows."""
        if len({x.shape for x in inputs}) > 1:
            sizes = ", ".join(str(x.shape[-2]) for x in inputs)
            raise ValueError(f"the parts of a batch have {sizes} rows: give as many labelled rows as unlabelled ones")
        noise = Key(torch.stack([key.word for key in keys], -1)) if keys else None
        z = self._noisy(torch.stack([self.enter(x) for x in inputs], self.axes(0)[0] - 1), noise, 0)
        levels, moments = [z], []
        h = self._together(0, z)
        for level in range(1, self.levels + 1):
            axes = self.axes(level)
            values = torch.unflatten(self.project(level, h), axes[0], (len(inputs), -1))
            found = Moments.of(values, axes)
            z = self._noisy(found.normalise(values), noise, level)
            h = self.activate(level, self._together(level, z))
            levels.append(z)
            moments.append(found)
        tops = torch.unflatten(h, -2, (len(inputs), -1)).unbind(-3)
        return [
            Path(
                [z.select(self.axes(level)[0] - 1, part) for level, z in enumerate(levels)],
                [found.part(self.axes(level)[0] - 1, part) for level, found in enumerate(moments, start=1)],
                log_p,
            )
            for part, log_p in enumerate(tops)
        ]

    def _together(self, level: int, z: Tensor) -> Tensor:
        """The rows of all parts, one part after the other."""
        rows = self.axes(level)[0]
        return z.flatten(rows - 1, rows)

    def _noisy(self, z: Tensor, noise: Key | None, level: int) -> Tensor:
        """All parts of a level (*S, parts, rows, ...), with noise on as many of them as there are streams."""
        std = self.noise[level]
        if noise is None or (not isinstance(std, Tensor) and not std):
            return z
        if isinstance(std, Tensor):
            std = std.reshape(-1, *[1] * (z.ndim - 1))
        part = noise.word.ndim - 1
        drawn = noise.fold(level).normal(*z.shape[part + 1 :])
        return z + std * pad(drawn, (0, 0) * (z.ndim - part - 1) + (0, z.shape[part] - drawn.shape[part]))

    def costs(
        self, x: Float[Tensor, "*S B N"], classes: Int[Tensor, "*S B D"], unlabelled: Tensor, noise: Key
    ) -> tuple[Float[Tensor, "*S"], Float[Tensor, "*S"]]:
        """The class cost and the weighted denoising costs, per seed; a supervised method has only the first."""
        (path,) = self.encode([x], [noise])
        cost = class_cost(path.log_p, classes)
        return cost, torch.zeros_like(cost)


def class_cost(log_p: Float[Tensor, "*S B C"], classes: Int[Tensor, "*S B D"]) -> Float[Tensor, "*S"]:
    """Cross-entropy with a target of 1/D for each digit shown: 0.5 for two different ones, 1 for one shown twice."""
    return -log_p.gather(-1, classes).mean((-2, -1))


class FullyConnected(Classifier):
    """FC MLP: the widths are those of the input, the hidden levels and the classes."""

    def __init__(self, widths: Sequence[int], input_noise: float = 0.0, layer_noise: float = 0.0) -> None:
        if len(widths) < 2 or min(widths) < 1 or widths[-1] < 2:
            raise ValueError(
                f"widths={tuple(widths)}: give elements, hidden widths and at least 2 classes, all positive"
            )
        super().__init__([per_feature(width, 0.0) for width in widths[1:]], widths[-1], input_noise, layer_noise)
        self.widths = tuple(widths)
        self.encoder = nn.ModuleList(Linear(low, high) for low, high in itertools.pairwise(widths))

    def project(self, level: int, h: Tensor) -> Tensor:
        values: Tensor = self.encoder[level - 1](h)
        return values.float()


def clean_path(
    model: Classifier, weights: dict[str, Tensor], x: Float[Tensor, "n N"], population: Sequence[Moments]
) -> Tensor:
    """``model(x, population)`` with these weights; where they are stacked, every seed sees the same x."""
    name, weight = next(iter(weights.items()))
    seeds = weight.shape[: weight.ndim - model.get_parameter(name).ndim]
    values: Tensor = functional_call(model, weights, (x.expand(*seeds, *x.shape), population))
    return values


@torch.no_grad()
def population_moments(
    model: Classifier, weights: dict[str, Tensor], x: Float[Tensor, "n N"], batch: int = 1000
) -> list[Moments]:
    """The moments of every level over the rows of x, for weights as they are or stacked (S, ...).

    One pass per level, each ``batch`` rows at a time, so that memory does not grow with n.
    """
    found: list[Moments] = []
    for level in range(1, model.levels + 1):
        total, seen = None, 0
        for rows in torch.split(x, batch):
            values = clean_path(model, weights, rows, found)
            part = Moments.of(values, model.axes(level))
            total = part if total is None else _merged(total, seen, part, len(rows))
            seen += len(rows)
        assert total is not None, "x has no rows"
        found.append(total)
    return found


def _merged(a: Moments, rows_a: int, b: Moments, rows_b: int) -> Moments:
    """Moments of two sets together (Chan, Golub, LeVeque 1979), which loses nothing to cancellation."""
    share = rows_b / (rows_a + rows_b)
    apart = b.mean - a.mean
    variance = (1 - share) * a.variance + share * b.variance + share * (1 - share) * apart.square()
    return Moments(a.mean + share * apart, variance)
