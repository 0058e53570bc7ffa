"""Numbers in two halves: nothing is lost, and the upper half is the nearest bfloat16."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from taggernet.fast.split_float import dequantize, merge, quantize, split


def bits_of(number: Tensor) -> int:
    return int(number.view(torch.int32))


def from_bits(bits: int) -> Tensor:
    return torch.tensor(struct.unpack("<i", struct.pack("<I", bits))[0], dtype=torch.int32).view(torch.float32)


@given(st.integers(0, 2**32 - 1))
def test_both_halves_make_the_number(bits: int) -> None:
    number = from_bits(bits)
    whole = merge(*split(number))
    assert torch.isnan(whole) if torch.isnan(number) else bits_of(whole) == bits_of(number)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_upper_half_is_the_nearest(value: float) -> None:
    number = torch.tensor(value, dtype=torch.float32)
    high, _ = split(number)
    assert high.dtype == torch.bfloat16
    rounded = number.bfloat16()
    if torch.isfinite(rounded):
        error, least = ((one.double() - number.double()).abs() for one in (high, rounded))
        assert error == least  # two may be equally near
    else:
        assert bits_of(high.float()) == bits_of(rounded.float())


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), -float("inf"), 1.0, -1.0])
def test_what_bfloat16_holds_leaves_nothing(value: float) -> None:
    high, low = split(torch.tensor(value))
    assert high.float().item() == value
    assert low.item() == 0


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001])
def test_what_is_no_number_stays_none(bits: int) -> None:
    """Also in the half that the products read."""
    high, low = split(from_bits(bits))
    assert torch.isnan(high)
    assert torch.isnan(merge(high, low))


@given(
    st.floats(0, width=32, allow_nan=False, allow_infinity=False),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(0, 2**31),
)
def test_a_square_in_16_bits_is_one_of_its_neighbours(value: float, low: int, step: int) -> None:
    square = torch.tensor([value], dtype=torch.float32)
    short = quantize(square, torch.tensor([low], dtype=torch.int16), torch.tensor(step))
    assert short.dtype == torch.int16
    found, bits = bits_of(dequantize(short)), bits_of(square)
    assert found in (bits >> 15 << 15, (bits >> 15) + 1 << 15)
    assert torch.equal(quantize(dequantize(short), torch.zeros(1, dtype=torch.int16), torch.tensor(0)), short)


@pytest.mark.parametrize("low", [0, 1, -77, 12345])
def test_rounding_is_right_on_average(low: int) -> None:
    """Over the steps, also of a weight that never moves."""
    square = 1 + torch.rand(200, generator=torch.Generator().manual_seed(0))
    half = torch.full((200,), low, dtype=torch.int16)
    mean = torch.stack([dequantize(quantize(square, half, torch.tensor(s))) for s in range(2000)]).double().mean(0)
    torch.testing.assert_close(mean, square.double(), rtol=0, atol=1e-5)


def test_a_mean_square_follows_its_numbers() -> None:
    """0.999 v + 0.001 g^2 moves by less than the last bit that is kept: rounded to the nearest it would stand still."""
    torch.manual_seed(0)
    exact, short = torch.ones(500), quantize(torch.ones(500), torch.zeros(500, dtype=torch.int16), torch.tensor(0))
    for step in range(3000):
        low = torch.randint(-(2**15), 2**15, (500,), dtype=torch.int16)
        square = 0.25 * torch.randn(500).square()
        exact = 0.999 * exact + 0.001 * square
        short = quantize(0.999 * dequantize(short) + 0.001 * square, low, torch.tensor(step))
    ratio = dequantize(short) / exact
    assert abs(ratio.mean() - 1) < 0.01
    assert ratio.std() < 0.05


@pytest.mark.parametrize("bits", [0, 0x7F800000, 0x7FC00000, 0x7FFFFFFF], ids=["0", "inf", "NaN", "CUDA's NaN"])
def test_zero_stays_zero_and_what_is_not_finite_never_becomes_so(bits: int) -> None:
    square = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
    for low in (-1, 0, 32767):
        found = dequantize(quantize(square, torch.tensor([low], dtype=torch.int16), torch.tensor(3)))
        assert found.item() == 0 if bits == 0 else not torch.isfinite(found)
