"""Corruptions: what they refuse, and that noise belongs to a scene rather than to a batch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from taggernet.rng import Key
from taggernet.tag import BitFlip, Corruption, GaussianNoise

CORRUPTIONS: list[Corruption] = [BitFlip(0.2), GaussianNoise(0.3)]


@pytest.mark.parametrize("corruption", CORRUPTIONS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_refuses_what_is_not_finite(corruption: Corruption, bad: float) -> None:
    x = torch.ones(2, 5)
    x[1, 3] = x[0, 0] = bad
    with pytest.raises(ValueError, match=r"x holds 2 NaN or infinite values of 10: remove or replace them"):
        corruption(x, Key.of(0))


@pytest.mark.parametrize("bad", [0.5, -1.0, 2.0, 255.0, 1e-7])
def test_bit_flip_refuses_other_values_than_0_and_1(bad: float) -> None:
    x = torch.zeros(2, 3)
    x[1, 2] = bad
    with pytest.raises(ValueError, match=rf"0 or 1, but x holds {bad:g}: threshold the data, or use Gaussian"):
        BitFlip(0.2)(x, Key.of(0))


def test_gaussian_noise_refuses_integers() -> None:
    with pytest.raises(ValueError, match=r"needs real values, but x is torch.int64: convert it to float first"):
        GaussianNoise(0.2)(torch.ones(2, 3, dtype=torch.int64), Key.of(0))


@pytest.mark.parametrize("beta", [-0.1, 0.5, 1.0, math.nan])
def test_bit_flip_refuses_a_useless_probability(beta: float) -> None:
    with pytest.raises(ValueError, match=r"is not a bit-flip probability: choose 0 <= beta < 0.5"):
        BitFlip(beta)


@pytest.mark.parametrize("sigma", [-0.1, math.inf, math.nan])
def test_gaussian_noise_refuses_a_bad_sigma(sigma: float) -> None:
    with pytest.raises(ValueError, match=r"is not a standard deviation: choose a finite sigma >= 0"):
        GaussianNoise(sigma)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
@given(seed=st.integers(0, 2**40), cut=st.integers(1, 6))
def test_noise_belongs_to_a_scene_not_to_a_batch(corruption: Corruption, seed: int, cut: int) -> None:
    x = (Key.of(9).uniform(7, 5) > 0.5).float()
    whole = corruption(x, Key.of(seed))
    parts = [corruption.apply(x[:cut], Key.of(seed)), corruption.apply(x[cut:], Key.of(seed), first=cut)]
    assert torch.equal(torch.cat(parts), whole)
    assert torch.equal(corruption(x, Key.of(seed)), whole)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_stacked_seeds_are_corrupted_as_each_alone(corruption: Corruption) -> None:
    x = (Key.of(9).uniform(3, 4, 50) > 0.5).float()
    together = corruption(x, Key.of([5, 6, 7]))
    for row, seed in enumerate([5, 6, 7]):
        assert torch.equal(together[row], corruption(x[row], Key.of(seed)))
    assert not torch.equal(together[0] - x[0], together[1] - x[1])


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_input_is_left_as_it_was(corruption: Corruption) -> None:
    x = torch.ones(20, 20)
    corruption(x, Key.of(0))
    assert torch.equal(x, torch.ones(20, 20))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float64, torch.bfloat16])
def test_bit_flip_takes_what_its_check_takes(dtype: torch.dtype) -> None:
    x = Key.of(0).uniform(5, 6) > 0.5
    flipped = BitFlip(0.2)(x.to(dtype), Key.of(1))
    assert flipped.dtype == (dtype if dtype.is_floating_point else torch.float32)
    assert torch.equal(flipped.float(), BitFlip(0.2)(x.float(), Key.of(1)))
