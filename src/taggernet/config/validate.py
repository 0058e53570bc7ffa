"""Checks of what a user gives, one function per kind of mistake: the same mistake gets the same sentence everywhere.

Arguments, fields of a configuration, command-line options and JSON files all end here. Needs neither numpy nor torch,
so that the command line can explain its options at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

MAX_GROUPS, MAX_ITERATIONS, MAX_STARTS = 64, 1000, 1000
MAX_ELEMENTS, MAX_WIDTH, MAX_LEVELS = 10_000_000, 100_000, 100
LARGEST = 1e6
"""The largest value in the model's units: its square, over a small variance, still fits float32."""


@dataclass(frozen=True)
class Range:
    """The finite numbers from ``low`` to ``high``; ``above`` and ``below`` leave out the ends themselves."""

    low: int | float = 0
    high: int | float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: Any) -> bool:
        low = self.low < value if self.above else self.low <= value
        high = value < self.high if self.below or math.isinf(self.high) else value <= self.high
        return bool(low and high)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {_plain(self.low)}" if self.above else f"of at least {_plain(self.low)}"
        return f"from {_plain(self.low)} to {'below ' * self.below}{_plain(self.high)}"


def _plain(number: int | float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


_COUNT, _SOME = Range(0, 10**12), Range(1, 10**12)
_BATCH, _GROUPS, _ITERATIONS = Range(1, 10**6), Range(1, MAX_GROUPS), Range(1, MAX_ITERATIONS)
_NOT_NEGATIVE, _POSITIVE, _BELOW_ONE = Range(0), Range(0, above=True), Range(0, 1, below=True)

RANGES: dict[str, Range] = {
    # the model
    "classes": Range(0, MAX_WIDTH), "mean": Range(-LARGEST, LARGEST), "v_start": Range(1 / LARGEST, LARGEST),
    "norm_eps": Range(0, LARGEST), "offset": Range(-1e30, 1e30), "scale": Range(1e-30, 1e30),
    "frozen_iterations": Range(0, MAX_ITERATIONS), "group_attention": Range(0, MAX_WIDTH),
    "channels": Range(1, MAX_WIDTH), "patch": Range(1, 64), "start_patch": Range(1, MAX_WIDTH), "tie": Range(0, 1),
    "place_weight": Range(0, LARGEST), "start_apart": Range(0, 1),
    "start_smooth": Range(1, MAX_WIDTH),
    # data
    "train": _SOME, "valid": _COUNT, "test": _COUNT, "objects": Range(1, 255), "min_objects": Range(0, 255),
    "size": _SOME, "labels": _COUNT,
    # the optimiser
    "lr": _POSITIVE, "batch": _BATCH, "updates": _SOME, "warmup": _COUNT, "final": _NOT_NEGATIVE,
    "clip": _NOT_NEGATIVE, "ema": _BELOW_ONE, "v_rate": _NOT_NEGATIVE,
    "lower_layers": _COUNT, "lower_rate": _NOT_NEGATIVE, "lower_wait": _COUNT, "beta1": _BELOW_ONE, "beta2": _BELOW_ONE,
    "eps": _POSITIVE, "patience": _COUNT,
    # how to run it
    "log_every": _SOME, "evaluate_every": _COUNT, "evaluate_scenes": _COUNT, "checkpoint_every": _COUNT,
    "resident": _COUNT,
    # the run
    "groups": _GROUPS, "test_groups": _GROUPS, "iterations": _ITERATIONS, "test_iterations": _ITERATIONS,
    "test_starts": Range(1, MAX_STARTS),
    "evaluation_batch": _BATCH, "discount": Range(0, 1), "class_cost": _NOT_NEGATIVE, "class_dropout": _BELOW_ONE,
    "class_distortion": _NOT_NEGATIVE, "class_agreement": _NOT_NEGATIVE,
    "seeds": Range(1, 1000), "first_seed": Range(0, 2**63 - 1),
}  # fmt: skip
"""What a field of any configuration may hold, by its name."""


def check_integer(name: str, value: object, allowed: Range | None = None) -> int:
    """An integer within its range, as a plain int; numpy's integers are welcome, True and False are not."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={_short(value)} is not an integer: give {_wanted('an integer', allowed)}")
    if allowed is not None and value not in allowed:
        raise ValueError(f"{name}={_short(int(value))} is out of range: give {_wanted('an integer', allowed)}")
    return int(value)


def check_count(name: str, value: object, low: int = 0, high: int | None = None) -> int:
    """How many of something: an integer from ``low`` to ``high``."""
    return check_integer(name, value, Range(low, math.inf if high is None else high))


def check_number(name: str, value: object, allowed: Range | None = None) -> float:
    """A real number within its range, as a plain float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={_short(value)} is not a number: give {_wanted('a number', allowed)}")
    try:
        number = float(value)
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if allowed is not None and number not in allowed:
        what = "a finite number" if math.isinf(allowed.high) else "a number"
        raise ValueError(f"{name}={number} is out of range: give {_wanted(what, allowed)}")
    return number


def check_numbers(name: str, value: object, count: int, allowed: Range, of: str) -> tuple[float, ...]:
    """No numbers, or ``count`` of them within the range, one for each ``of`` something, as a tuple of plain floats."""
    if not isinstance(value, list | tuple) or len(value) not in (0, count):
        given = f"{len(value)} numbers" if isinstance(value, list | tuple) else "no list"
        raise ValueError(f"{name} holds {given}: give one for each of {count:,} {of}, or none")
    return tuple(check_number(name, number, allowed) for number in value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """One of a few named options."""
    if value not in choices:
        raise ValueError(f"{name}={_short(value)} is not known: choose one of {', '.join(map(repr, choices))}")
    return str(value)


def check_type(name: str, value: object, kind: type) -> None:
    """Text or true/false."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}={_short(value)} is not {'true or false' if kind is bool else 'a text'}: give one")


def check_sizes(name: str, value: object, *, least: int, most: int, largest: int) -> tuple[int, ...]:
    """A list of positive integers, such as the widths of layers, as a tuple of plain ints."""
    wanted = f"give {least} to {most} integers from 1 to {largest:,}"
    if not isinstance(value, list | tuple) or any(isinstance(n, bool) or not isinstance(n, Integral) for n in value):
        raise TypeError(f"{name}={_short(value)} is not a list of integers: {wanted}")
    if not least <= len(value) <= most or any(not 1 <= n <= largest for n in value):
        raise ValueError(f"{name}={_short(value)} is out of range: {wanted}")
    return tuple(int(n) for n in value)


def check_fields(record: Any) -> None:
    """Check every plain field of a frozen dataclass by its type and by ``RANGES``; numbers become plain ones."""
    for name, hint in get_type_hints(type(record)).items():
        value, allowed = getattr(record, name), RANGES.get(name)
        if get_origin(hint) is Literal:
            check_choice(name, value, get_args(hint))
        elif hint is int:
            object.__setattr__(record, name, check_integer(name, value, allowed))
        elif hint is float:
            object.__setattr__(record, name, check_number(name, value, allowed))
        elif hint in (str, bool):
            check_type(name, value, hint)


def _wanted(what: str, allowed: Range | None) -> str:
    return what if allowed is None else f"{what} {allowed}"


def _short(value: object) -> str:
    """What was given, as far as it fits into a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
