"""Corruption of the input, x -> x~ (paper, appendix "Input").

# S seeds (optional) · B batch · N elements = P positions x C channels

Calling a corruption checks its input; ``apply`` trusts it, for use inside a compiled step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from taggernet.rng import Key


@runtime_checkable
class Corruption(Protocol):
    """What the loop needs of a corruption."""

    def __call__(self, x: Tensor, key: Key) -> Tensor: ...

    def apply(self, x: Tensor, key: Key, first: int | Tensor = 0) -> Tensor: ...

    def check(self, x: Tensor) -> None: ...


def _check_finite(x: Tensor) -> None:
    if not torch.is_floating_point(x):
        return
    bad = ~torch.isfinite(x)
    if bad.any():
        raise ValueError(
            f"x holds {int(bad.sum())} NaN or infinite values of {x.numel()}: remove or replace them first"
        )


def _noise_shape(x: Tensor, key: Key) -> tuple[int, ...]:
    """The part of x's shape that the key does not already bring (its leading seed dimensions)."""
    return tuple(x.shape[key.word.ndim :])


@dataclass(frozen=True)
class BitFlip:
    """x~ = x XOR Bernoulli(beta), for x in {0, 1}."""

    beta: float | Tensor = 0.2
    """One number, or one for each seed, (S, 1, 1)."""

    def __post_init__(self) -> None:
        if not isinstance(self.beta, Tensor) and not 0.0 <= self.beta < 0.5:
            raise ValueError(f"beta={self.beta} is not a bit-flip probability: choose 0 <= beta < 0.5")

    def check(self, x: Tensor) -> None:
        _check_finite(x)
        other = (x != 0) & (x != 1)
        if other.any():
            raise ValueError(
                f"bit flips need every value to be 0 or 1, but x holds {x[other].flatten()[0].item():g}: "
                "threshold the data, or use Gaussian noise for real values"
            )

    def apply(self, x: Shaped[Tensor, "*S B N"], key: Key, first: int | Tensor = 0) -> Float[Tensor, "*S B N"]:
        """Corrupt without checking, bools and integers too; ``first`` is the batch's first row in the stream."""
        x = x if torch.is_floating_point(x) else x.float()
        flip = key.bernoulli(self.beta, *_noise_shape(x, key), start=first * x.shape[-1])
        return torch.where(flip, 1.0 - x, x)

    def __call__(self, x: Tensor, key: Key) -> Tensor:
        self.check(x)
        return self.apply(x, key)


@dataclass(frozen=True)
class GaussianNoise:
    """x~ = x + N(0, sigma^2), for real x."""

    sigma: float | Tensor = 0.2
    """One number, or one for each seed, (S, 1, 1)."""

    def __post_init__(self) -> None:
        if not isinstance(self.sigma, Tensor) and not 0.0 <= self.sigma < float("inf"):
            raise ValueError(f"sigma={self.sigma} is not a standard deviation: choose a finite sigma >= 0")

    def check(self, x: Tensor) -> None:
        if not torch.is_floating_point(x):
            raise ValueError(f"Gaussian noise needs real values, but x is {x.dtype}: convert it to float first")
        _check_finite(x)

    def apply(self, x: Float[Tensor, "*S B N"], key: Key, first: int | Tensor = 0) -> Float[Tensor, "*S B N"]:
        """Corrupt without checking; ``first`` is the batch's first row in the stream."""
        noise = key.normal(*_noise_shape(x, key), start=first * x.shape[-1])
        return x + self.sigma * noise

    def __call__(self, x: Tensor, key: Key) -> Tensor:
        self.check(x)
        return self.apply(x, key)


@dataclass(frozen=True)
class CategoryFlip:
    """One-hot channels: with probability beta a position shows another of its C states, each equally likely."""

    channels: int
    beta: float = 0.2

    def __post_init__(self) -> None:
        if self.channels < 2:
            raise ValueError(f"channels={self.channels} leaves a position no other state: give at least 2 channels")
        most = 1 - 1 / self.channels
        if not 0.0 <= self.beta < most:
            raise ValueError(
                f"beta={self.beta} hides the state of {self.channels} channels: choose 0 <= beta < {most:.3g}"
            )

    def check(self, x: Tensor) -> None:
        _check_finite(x)
        if x.shape[-1] % self.channels:
            raise ValueError(
                f"{x.shape[-1]} elements do not divide into positions of {self.channels} channels: "
                "check the shape and the number of channels"
            )
        states = torch.unflatten(x, -1, (-1, self.channels))
        wrong = ((states != 0) & (states != 1)).any(-1) | (states.sum(-1) != 1)
        if wrong.any():
            given = ", ".join(f"{number:g}" for number in states[wrong][0].tolist()[:8])
            raise ValueError(
                f"categories need one 1 and zeros in the {self.channels} channels of every position, but x holds "
                f"({given}): encode states as numpy.eye({self.channels})[states], or choose another kind"
            )

    def apply(self, x: Shaped[Tensor, "*S B N"], key: Key, first: int | Tensor = 0) -> Float[Tensor, "*S B N"]:
        """Corrupt without checking; ``first`` is the batch's first row in the stream."""
        x = x if torch.is_floating_point(x) else x.float()
        states = torch.unflatten(x, -1, (-1, self.channels))
        begin, shape = first * states.shape[-2], _noise_shape(states[..., 0], key)
        flip = key.bernoulli(self.beta, *shape, start=begin)
        turn = 1 + key.fold(1).integers(self.channels - 1, *shape, start=begin)
        shown = (states.argmax(-1) + flip * turn) % self.channels
        every = torch.arange(self.channels, device=x.device)
        return (shown.unsqueeze(-1) == every).to(x.dtype).flatten(-2)

    def __call__(self, x: Tensor, key: Key) -> Tensor:
        self.check(x)
        return self.apply(x, key)
