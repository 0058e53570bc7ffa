"""float32 weights split into two 16-bit halves, and Adam's second moment quantised to 16 bits.

A weight is the nearest bfloat16 and the 16 bits that one lacks. Products read the first half and Adam both: together
they are the float32 weight to the last bit, so the bfloat16 copy for the products costs no memory of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

_HALF = 0x8000
_NAN = 0x7FC0
_INFINITY = 0x7F800000
"""Beyond it lie the bits of NaN, to which nothing may be added: the sum could be those of 0."""
_DROPPED = 15
"""How many of the lowest bits of a second moment are dropped."""


def merge(high: Tensor, low: Tensor) -> Tensor:
    """float32 from its bfloat16 and int16 halves."""
    return ((high.view(torch.int16).to(torch.int32) << 16) + low.to(torch.int32)).view(torch.float32)


def split(number: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16 (ties away from 0), and the difference to its bits as int16."""
    bits = number.view(torch.int32)
    high = torch.where(torch.isnan(number), _NAN, (bits + _HALF) >> 16)
    low = bits - (high << 16)
    return high.to(torch.int16).view(torch.bfloat16), low.to(torch.int16)


def quantize(square: Tensor, low: Tensor, step: Tensor) -> Tensor:
    """A non-negative number in 16 bits: the upper ones of its float32 after the sign, with stochastic rounding.

    A running mean over a thousand updates changes by less than the last of these bits, so rounding to the nearest would
    stop it; stochastic rounding is right on average. Its random bits mix the step with the lower half of the weight,
    which takes two operations. NaN becomes infinity, which the check of the state finds as well.
    """
    draw = (low.to(torch.int32) * 0x6C8F + step.to(torch.int32) * 0x4F1B) & ((1 << _DROPPED) - 1)
    return ((square.view(torch.int32).clamp(max=_INFINITY) + draw) >> _DROPPED).to(torch.int16)


def dequantize(short: Tensor) -> Tensor:
    """float32 from its ``quantize`` form."""
    return ((short.to(torch.int32) & 0xFFFF) << _DROPPED).view(torch.float32)
