"""A float32 number in two halves: the bfloat16 nearest to it, and the 16 bits that this one lacks; and one in 16 bits.

The products read the first half, Adam both: together they are the float32 weight to the last bit, and the copy that the
products need costs no memory of its own. Adam's mean square is what 16 bits must do for.
"""

from __future__ import annotations

import torch
from torch import Tensor

_HALF = 0x8000
_NAN = 0x7FC0
_DROPPED = 15
"""Bits of a mean square that are not kept."""


def merge(high: Tensor, low: Tensor) -> Tensor:
    """float32 from its bfloat16 and int16 halves."""
    return ((high.view(torch.int16).to(torch.int32) << 16) + low.to(torch.int32)).view(torch.float32)


def split(number: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16 (of two, the one further from 0) and what must be added to its bits, int16."""
    bits = number.view(torch.int32)
    high = torch.where(torch.isnan(number), _NAN, (bits + _HALF) >> 16)
    low = bits - (high << 16)
    return high.to(torch.int16).view(torch.bfloat16), low.to(torch.int16)


def quantize(square: Tensor, low: Tensor, step: Tensor) -> Tensor:
    """A number that is not negative in 16 bits: those of float32 after the sign, the rest rounded up or down at random.

    A mean over a thousand updates moves by less than the last of these bits, so plain rounding would stop it; rounded
    at random it is right on average. The draw mixes the step with the lower half of the weight: two operations.
    """
    draw = (low.to(torch.int32) * 0x6C8F + step.to(torch.int32) * 0x4F1B) & ((1 << _DROPPED) - 1)
    return ((square.view(torch.int32) + draw) >> _DROPPED).to(torch.int16)


def dequantize(short: Tensor) -> Tensor:
    """float32 from its ``quantize`` form."""
    return ((short.to(torch.int32) & 0xFFFF) << _DROPPED).view(torch.float32)
