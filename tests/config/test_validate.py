"""One function per kind of mistake, one sentence per mistake; numbers of any library become plain ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.config.validate import (
    RANGES,
    Range,
    check_choice,
    check_count,
    check_fields,
    check_integer,
    check_number,
    check_sizes,
)

pytestmark = pytest.mark.usefixtures("without_typecheck")


@pytest.mark.parametrize(
    ("allowed", "text", "inside", "outside"),
    [
        (Range(1, 64), "from 1 to 64", [1, 64], [0, 65, math.nan]),
        (Range(0, 1, below=True), "from 0 to below 1", [0, 0.999], [-1e-9, 1, math.inf, math.nan]),
        (Range(0), "of at least 0", [0, 1e300], [-1e-300, math.inf, math.nan]),
        (Range(0, above=True), "above 0", [5e-324, 1e300], [0, -1, math.inf, math.nan]),
        (Range(0, 10**6), "from 0 to 1,000,000", [10**6], [10**6 + 1]),
        (Range(-1e6, 1e6), "from -1e+06 to 1e+06", [-1e6, 1e6], [-1.1e6, math.inf, -math.inf]),
    ],
)
def test_ranges(allowed: Range, text: str, inside: list[float], outside: list[float]) -> None:
    assert str(allowed) == text
    assert all(value in allowed for value in inside)
    assert not any(value in allowed for value in outside)


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: check_integer("n", 2.0), TypeError, "n=2.0 is not an integer: give an integer"),
    (lambda: check_integer("n", np.bool_(True)), TypeError, "n=np.True_ is not an integer: give an integer"),
    (lambda: check_integer("n", "x" * 10**6), TypeError, f"n='{'x' * 76}... is not an integer: give an integer"),
    (lambda: check_count("n", 0, low=1), ValueError, "n=0 is out of range: give an integer of at least 1"),
    (lambda: check_count("n", -1), ValueError, "n=-1 is out of range: give an integer of at least 0"),
    (lambda: check_count("n", "3", low=1, high=9), TypeError, "n='3' is not an integer: give an integer from 1 to 9"),
    (lambda: check_number("x", None), TypeError, "x=None is not a number: give a number"),
    (lambda: check_number("x", True), TypeError, "x=True is not a number: give a number"),
    (lambda: check_number("x", 1j, Range(0)), TypeError, "x=1j is not a number: give a number of at least 0"),
    (lambda: check_number("x", 10**400, Range(0, 9)), ValueError, "x=inf is out of range: give a number from 0 to 9"),
    (lambda: check_number("x", 2, Range(0, 1)), ValueError, "x=2.0 is out of range: give a number from 0 to 1"),
    (lambda: check_choice("kind", "a", ("b", "c")), ValueError, "kind='a' is not known: choose one of 'b', 'c'"),
    (lambda: check_sizes("w", 5, least=2, most=9, largest=7), TypeError,
     "w=5 is not a list of integers: give 2 to 9 integers from 1 to 7"),
    (lambda: check_sizes("w", (5, True), least=2, most=9, largest=7), TypeError,
     "w=(5, True) is not a list of integers: give 2 to 9 integers from 1 to 7"),
    (lambda: check_sizes("w", (5,), least=2, most=9, largest=7), ValueError,
     "w=(5,) is out of range: give 2 to 9 integers from 1 to 7"),
    (lambda: check_sizes("w", (5, 8), least=2, most=9, largest=7), ValueError,
     "w=(5, 8) is out of range: give 2 to 9 integers from 1 to 7"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "error", "message"), MISTAKES)
def test_a_mistake_has_one_sentence(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert str(caught.value) == message


def test_numbers_of_any_library_become_plain_ones() -> None:
    assert type(check_integer("n", np.int16(3))) is int
    assert type(check_number("x", np.float32(0.5))) is float
    assert check_number("x", Fraction(1, 2), Range(0, 1)) == 0.5
    assert check_sizes("w", [np.int64(3), 4], least=1, most=2, largest=9) == (3, 4)


@dataclass(frozen=True)
class Record:
    groups: int = 4
    lr: float = 0.1
    device: str = "cpu"
    progress: bool = True
    mode: Literal["a", "b"] = "a"

    def __post_init__(self) -> None:
        check_fields(self)


def test_fields_are_checked_by_type_and_name() -> None:
    assert type(Record(lr=1).lr) is float
    for change, message in (
        ({"groups": 65}, "groups=65 is out of range: give an integer from 1 to 64"),
        ({"lr": 0.0}, "lr=0.0 is out of range: give a finite number above 0"),
        ({"device": 3}, "device=3 is not a text: give one"),
        ({"progress": 1}, "progress=1 is not true or false: give one"),
        ({"mode": "c"}, "mode='c' is not known: choose one of 'a', 'b'"),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            Record(**change)  # type: ignore[arg-type]
        assert str(caught.value) == message


def test_every_number_of_a_configuration_has_a_range() -> None:
    """But for seeds, of which every integer is one, and noise, whose range depends on the kind of data."""
    names = {
        field.name
        for kind in (TaggerConfig, DataConfig, OptimiserConfig, RuntimeConfig, Config)
        for field in fields(kind)
        if field.type in ("int", "float")
    }
    assert names - set(RANGES) == {"seed", "noise"}
    assert set(RANGES) <= names
