"""The user's units and the model's: x_model = (x_user - offset) / scale.

# N elements, which may each have units of their own
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from taggernet.tag.likelihood import wide


class Units(NamedTuple):
    """Where the model's 0 lies in the user's units, and how long its 1 is there."""

    offset: float | Float[Tensor, " N"] = 0.0
    scale: float | Float[Tensor, " N"] = 1.0

    def to_model(self, x: Tensor) -> Tensor:
        """x in the model's units, float32 or wider; the default (0, 1) changes no value."""
        return wide(x) if self.are_the_models else (wide(x) - _at(self.offset, x)) / _at(self.scale, x)

    def to_user(self, x: Tensor) -> Tensor:
        """x back in the user's units."""
        return x if self.are_the_models else x * _at(self.scale, x) + _at(self.offset, x)

    @property
    def are_the_models(self) -> bool:
        """Whether nothing has to be converted."""
        return not isinstance(self.offset, Tensor) and (self.offset, self.scale) == (0.0, 1.0)


def _at(value: float | Tensor, x: Tensor) -> float | Tensor:
    return value.to(x.device) if isinstance(value, Tensor) else value


SAME_UNITS = Units()
