"""Random numbers that are a pure function of (seed, what for, which step, which element).

A ``Key`` names a stream. Drawing from it has no side effect: the same key gives the same numbers, and
``fold`` derives a new, independent stream. Element i of a stream is splitmix64(key + i), so

- the bits are the same on a CPU and on any GPU, inside a compiled or captured step, and for any number
  of processes that share a batch (``start`` says where in the stream a process's part begins);
- a run that was interrupted continues exactly by knowing its step number and nothing else;
- a key of shape (S,) draws for S seeds at once, and row s equals what seed s draws alone.

Uniform and integer draws are bit-identical everywhere; normal ones go through the device's own log and
cosine and agree to float precision.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


def _signed(word: int) -> int:
    """The 64-bit word as the two's complement integer that torch's int64 holds."""
    return word - (1 << 64) if word >= 1 << 63 else word


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_GOLDEN_INVERSE = _signed(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def _shift_right(word: Tensor, bits: int) -> Tensor:
    """Logical shift; torch's own >> keeps the sign."""
    return (word >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mix(word: Tensor) -> Tensor:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that scatters nearby words."""
    # In place, but for the given word itself: half of the time would go into finding memory.
    word = _shift_right(word, 30).bitwise_xor_(word).mul_(_MIX_1)
    word = _shift_right(word, 27).bitwise_xor_(word).mul_(_MIX_2)
    return _shift_right(word, 31).bitwise_xor_(word)


@dataclass(frozen=True)
class Key:
    """The name of a stream of random numbers, or of several at once when ``word`` has a shape."""

    word: Tensor

    @staticmethod
    def of(seed: int | list[int] | Tensor, device: torch.device | str | None = None) -> Key:
        """The root stream of a seed, or one per seed for a list or tensor of seeds."""
        seeds = [] if isinstance(seed, Tensor) else seed if isinstance(seed, list | tuple) else [seed]
        for one in seeds:
            if isinstance(one, bool) or not isinstance(one, int | np.integer):
                raise TypeError(f"seed must be an integer, got {type(one).__name__}: pass e.g. seed=0")
            if not _INT64_MIN <= one <= _INT64_MAX:
                raise ValueError(f"seed {one} does not fit in 64 bits: choose one between 0 and {_INT64_MAX}")
        return Key(_mix(torch.as_tensor(seed, dtype=torch.int64, device=device) + _GOLDEN))

    def fold(self, *parts: int | str | Tensor) -> Key:
        """A stream of its own for these parts: names, numbers, or integer tensors such as a step counter."""
        word = self.word
        for part in parts:
            if isinstance(part, str):
                part = zlib.crc32(part.encode())
            word = _mix((word ^ (part * _GOLDEN if isinstance(part, Tensor) else _wrap(part))) + _GOLDEN)
        return Key(word)

    def bits(self, *shape: int, start: int | Tensor = 0) -> Tensor:
        """64 random bits per element, of shape ``key.shape + shape``."""
        count = math.prod(shape)
        index = torch.arange(count, dtype=torch.int64, device=self.word.device) + start
        # word + index * golden, with the product taken last: compilers do not fit the golden ratio into the
        # 32-bit arithmetic of an index expression.
        word = (self.word * _GOLDEN_INVERSE)[..., None] + index
        return _mix(word * _GOLDEN).reshape(*self.word.shape, *shape)

    def uniform(self, *shape: int, start: int | Tensor = 0) -> Tensor:
        """Uniform in [0, 1) with 24 bits, the most that float32 spaces evenly."""
        return _shift_right(self.bits(*shape, start=start), 40).to(torch.float32) * 2.0**-24

    def normal(self, *shape: int, start: int | Tensor = 0) -> Tensor:
        """Standard normal (Box and Muller, both uniforms from one word)."""
        word = self.bits(*shape, start=start)
        radius = (_shift_right(word, 40) + 1).to(torch.float32) * 2.0**-24  # (0, 1]: log stays finite
        angle = ((word >> 8) & 0xFFFFFF).to(torch.float32) * (2.0**-24 * 2 * math.pi)
        return torch.sqrt(-2.0 * torch.log(radius)) * torch.cos(angle)

    def integers(self, high: int | Tensor, *shape: int, start: int | Tensor = 0) -> Tensor:
        """Integers in [0, high) by multiply-shift; ``high`` up to 2**31 and may be a tensor that broadcasts."""
        return (_shift_right(self.bits(*shape, start=start), 33) * high) >> 31

    def bernoulli(self, probability: float | Tensor, *shape: int, start: int | Tensor = 0) -> Tensor:
        """True with this probability, which may be a tensor that broadcasts."""
        return self.uniform(*shape, start=start) < probability

    def permutation(self, n: int) -> Tensor:
        """A random order of 0 .. n-1 per stream, the same on every device (ties broken by position)."""
        return torch.argsort(self.bits(n), dim=-1, stable=True)


def _wrap(number: int) -> int:
    """number * golden in 64-bit arithmetic, done in Python where a tensor is not at hand."""
    return _signed((number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
