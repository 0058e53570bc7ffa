"""Units left out at random on the way up, for the pass from which classes are learned.

# S seeds (optional) · R rows = B x K · F features
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from taggernet.randomness import Key


@dataclass(frozen=True)
class Dropout:
    """Each unit is zero with probability ``rate``, and what is left is larger by as much as is missing."""

    rate: float | Tensor
    """A share below 1, or one per seed (S, 1, 1)."""
    key: Key
    first: int = 0
    """Index of the first row among those of all processes."""

    def __call__(self, h: Float[Tensor, "*S R F"], level: int) -> Float[Tensor, "*S R F"]:
        key = self.key.fold(level)
        drawn = key.uniform(*h.shape[key.word.ndim :], start=self.first * h.shape[-1])
        scale = (drawn >= self.rate) / (1 - self.rate)
        return h * scale.to(h.dtype)


def dropped(dropout: Dropout | None, h: Tensor, level: int) -> Tensor:
    """h as the next level sees it."""
    return h if dropout is None else dropout(h, level)


__all__ = ["Dropout", "dropped"]
