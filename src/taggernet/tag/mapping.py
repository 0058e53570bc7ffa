"""The parametric mapping: the part that TAG drives and training learns.

# S seeds (optional) · R rows = B x K · N elements

A mapping is any module that takes the four features of every group as rows of length 4N, ordered
[z, m, delta z, L(m)], and returns the next z and m before their activations. It treats rows alike, so
the groups stay symmetric, and it knows nothing of K or T. It may hand out its topmost representation,
which a classifier reads.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


class Mapped(NamedTuple):
    """What a mapping returns for each row."""

    z_pre: Float[Tensor, "*S R N"]
    m_pre: Float[Tensor, "*S R N"]
    top: Float[Tensor, "*S R C"] | None = None


@runtime_checkable
class Mapping(Protocol):
    """Rows of 4N features in, rows of N pre-activations for z and for m out."""

    def __call__(self, features: Float[Tensor, "*S R F"]) -> Mapped: ...
