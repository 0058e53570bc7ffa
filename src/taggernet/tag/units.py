"""The user's units and the model's: x_model = (x_user - offset) / scale."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from taggernet.tag.likelihood import wide


class Units(NamedTuple):
    """Where the model's 0 lies in the user's units, and how long its 1 is there."""

    offset: float = 0.0
    scale: float = 1.0

    def to_model(self, x: Tensor) -> Tensor:
        """x in the model's units, float32 or wider; the default (0, 1) changes no value."""
        return wide(x) if self == (0.0, 1.0) else (wide(x) - self.offset) / self.scale

    def to_user(self, x: Tensor) -> Tensor:
        """x back in the user's units."""
        return x if self == (0.0, 1.0) else x * self.scale + self.offset


SAME_UNITS = Units()
