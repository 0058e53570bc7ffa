"""The parametric mapping: the part that TAG drives and training learns.

# S seeds (optional) · R rows = B x K · P positions · C channels · N = P C elements

A mapping is any module that takes the four features of every group as rows of length 2N + 2P, ordered
[z, m, delta z, L(m)], and returns the next z and m before their activations. z and delta z have N numbers each, the
channels of a position side by side; m and L(m) have P. With one channel, N = P and a row has 4N. A mapping treats rows
alike, so the groups stay symmetric, and it knows nothing of K or T. It may hand out its topmost representation, which a
classifier reads.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


class Mapped(NamedTuple):
    """What a mapping returns for each row."""

    z_pre: Float[Tensor, "*S R N"]
    m_pre: Float[Tensor, "*S R P"]
    top: Float[Tensor, "*S R W"] | None = None


@runtime_checkable
class Mapping(Protocol):
    """Rows of 2N + 2P features in, rows of N pre-activations for z and of P for m out."""

    def __call__(self, features: Float[Tensor, "*S R F"]) -> Mapped: ...
