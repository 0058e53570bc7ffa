"""Numbers in two halves: nothing is lost, and the upper half is the nearest bfloat16."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from taggernet.training.packing import joined, parted


def bits_of(number: Tensor) -> int:
    return int(number.view(torch.int32))


def from_bits(bits: int) -> Tensor:
    return torch.tensor(struct.unpack("<i", struct.pack("<I", bits))[0], dtype=torch.int32).view(torch.float32)


@given(st.integers(0, 2**32 - 1))
def test_both_halves_make_the_number(bits: int) -> None:
    number = from_bits(bits)
    whole = joined(*parted(number))
    assert torch.isnan(whole) if torch.isnan(number) else bits_of(whole) == bits_of(number)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_upper_half_is_the_nearest(value: float) -> None:
    number = torch.tensor(value, dtype=torch.float32)
    high, _ = parted(number)
    assert high.dtype == torch.bfloat16
    rounded = number.bfloat16()
    if torch.isfinite(rounded):
        error, least = ((one.double() - number.double()).abs() for one in (high, rounded))
        assert error == least  # two may be equally near
    else:
        assert bits_of(high.float()) == bits_of(rounded.float())


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), -float("inf"), 1.0, -1.0])
def test_what_bfloat16_holds_leaves_nothing(value: float) -> None:
    high, low = parted(torch.tensor(value))
    assert high.float().item() == value
    assert low.item() == 0


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001])
def test_what_is_no_number_stays_none(bits: int) -> None:
    """Also in the half that the products read."""
    high, low = parted(from_bits(bits))
    assert torch.isnan(high)
    assert torch.isnan(joined(high, low))
