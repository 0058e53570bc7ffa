"""Key: pure, stackable over seeds, sliceable over elements, and random enough."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taggernet.rng import Key

SEEDS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
WORD = 2**64 - 1


def splitmix(word: int) -> int:
    """The published finaliser in Python's own integers."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


@given(seed=SEEDS, start=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_bits_are_splitmix64(seed: int, start: int) -> None:
    golden = 0x9E3779B97F4A7C15
    root = splitmix((seed + golden) & WORD)
    expected = [splitmix((root + (start + i) * golden) & WORD) for i in range(5)]
    assert [bits & WORD for bits in Key.of(seed).bits(5, start=start).tolist()] == expected


@given(seeds=st.lists(SEEDS, min_size=1, max_size=4), part=st.one_of(st.integers(0, 99), st.text(max_size=5)))
@settings(max_examples=25, deadline=None)
def test_stacked_seeds_draw_as_each_alone(seeds: list[int], part: int | str) -> None:
    together = Key.of(seeds).fold(part)
    for row, seed in enumerate(seeds):
        alone = Key.of(seed).fold(part)
        assert torch.equal(together.bits(3, 4)[row], alone.bits(3, 4))
        assert torch.equal(together.uniform(7)[row], alone.uniform(7))
        assert torch.equal(together.normal(7)[row], alone.normal(7))
        assert torch.equal(together.integers(10, 7)[row], alone.integers(10, 7))
        assert torch.equal(together.permutation(9)[row], alone.permutation(9))


@given(seed=SEEDS, start=st.integers(0, 50), count=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_start_slices_the_stream(seed: int, start: int, count: int) -> None:
    key = Key.of(seed)
    assert torch.equal(key.bits(count, start=start), key.bits(start + count)[start:])
    assert torch.equal(key.bits(count, start=torch.tensor(start)), key.bits(count, start=start))


def test_fold_gives_other_streams() -> None:
    key = Key.of(0)
    words = [key.word, *(key.fold(i).word for i in range(1000)), key.fold("a").word, key.fold("b").word]
    words += [key.fold(1, 2).word, key.fold(2, 1).word]
    assert len({int(word) for word in words}) == len(words)


def test_fold_of_a_tensor_equals_fold_of_its_number() -> None:
    for number in (0, 1, 7, 123_456_789):
        assert torch.equal(Key.of(3).fold(torch.tensor(number)).word, Key.of(3).fold(number).word)


def test_uniform_covers_its_range_evenly() -> None:
    values = Key.of(1).uniform(200_000)
    assert values.min() >= 0
    assert values.max() < 1
    counts = torch.histc(values, bins=50, min=0, max=1)
    chi_square = ((counts - 4000) ** 2 / 4000).sum().item()
    assert 20 < chi_square < 95  # 49 degrees of freedom: outside with probability below 1e-4


def test_normal_has_the_moments_of_a_normal() -> None:
    values = Key.of(2).normal(400_000).double()
    assert torch.isfinite(values).all()
    assert abs(values.mean().item()) < 0.01
    assert abs(values.std().item() - 1) < 0.01
    assert abs((values**4).mean().item() - 3) < 0.1


def test_streams_are_uncorrelated() -> None:
    first, second = Key.of([0, 1]).normal(200_000).double()
    assert abs((first * second).mean().item()) < 0.01
    assert abs((first[1:] * first[:-1]).mean().item()) < 0.01


@given(seed=SEEDS, high=st.integers(1, 2**31))
@settings(max_examples=40, deadline=None)
def test_integers_stay_below_high(seed: int, high: int) -> None:
    drawn = Key.of(seed).integers(high, 100)
    assert drawn.dtype == torch.int64
    assert drawn.min() >= 0
    assert drawn.max() < high


def test_integers_take_a_bound_per_element() -> None:
    high = torch.tensor([1, 2, 50]).expand(4000, 3)
    drawn = Key.of(5).integers(high, 4000, 3)
    assert drawn.max(dim=0).values.tolist() == [0, 1, 49]


def test_bernoulli_has_its_probability() -> None:
    assert abs(Key.of(0).bernoulli(0.2, 100_000).double().mean().item() - 0.2) < 0.005
    assert not Key.of(0).bernoulli(0.0, 1000).any()
    assert Key.of(0).bernoulli(1.0, 1000).all()


def test_permutation_holds_each_number_once() -> None:
    orders = Key.of([0, 1, 2]).permutation(1000)
    assert torch.equal(orders.sort(dim=-1).values, torch.arange(1000).expand(3, -1))
    assert not torch.equal(orders[0], orders[1])


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("seed", [True, 1.5, "0", None])
def test_seed_of_another_type_is_refused(seed: object) -> None:
    with pytest.raises(TypeError, match="seed must be an integer"):
        Key.of(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, [0, 2**64]])
def test_seed_beyond_64_bits_is_refused(seed: int | list[int]) -> None:
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        Key.of(seed)


def test_golden_bits() -> None:
    """The streams of published runs: if this changes, no earlier result can be repeated."""
    assert Key.of(0).bits(2).tolist() == [5197578548964807871, -6411193824288604561]
    assert Key.of(0).fold("name", 3).integers(1000, 4).tolist() == [254, 583, 82, 958]
