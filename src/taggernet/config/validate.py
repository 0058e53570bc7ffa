"""Fields of a configuration, each checked for its type and its range, whoever gave it: Python, an option, a file."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

from taggernet.tagger import MAX_GROUPS, MAX_ITERATIONS

MANY = 10**12
_COUNT, _SOME = (0, MANY), (1, MANY)
_BATCH = (1, 10**6)
_POSITIVE, _SHARE, _PART, _ANY = "positive", "share", "part", "any"

RANGES: dict[str, tuple[int, int] | str] = {
    "train": _SOME, "valid": _COUNT, "test": _COUNT, "objects": (1, 255), "size": _SOME, "labels": _COUNT,
    "lr": _POSITIVE, "batch": _BATCH, "updates": _SOME, "warmup": _COUNT, "final": _ANY, "clip": _ANY, "ema": _SHARE,
    "lower_layers": _COUNT, "lower_rate": _ANY, "beta1": _SHARE, "beta2": _SHARE, "eps": _ANY,
    "log_every": _SOME, "evaluate_every": _COUNT, "evaluate_scenes": _COUNT, "checkpoint_every": _COUNT,
    "resident": _COUNT,
    "groups": (1, MAX_GROUPS), "test_groups": (1, MAX_GROUPS), "iterations": (1, MAX_ITERATIONS),
    "test_iterations": (1, MAX_ITERATIONS), "evaluation_batch": _BATCH, "class_cost": _ANY,
    "class_dropout": _PART, "class_agreement": _ANY, "seeds": (1, 1000),
    "first_seed": (0, 2**63 - 1),
}  # fmt: skip
"""Integers: the least and the most. Floats: positive, a share or a part in [0, 1), or any number from 0."""


def check_fields(record: Any) -> None:
    """Every plain field of a dataclass, or one sentence on the first that is wrong."""
    for name, hint in get_type_hints(type(record)).items():
        value = getattr(record, name)
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ValueError(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, get_args(hint)))}")
        elif hint in _WANTED:
            what, fits = _WANTED[hint]
            if not fits(value):
                raise TypeError(f"{name}={value!r} is not {what}: give {name} as {what}")
            if name in RANGES:
                _check_range(name, value, RANGES[name])


_WANTED: dict[type, tuple[str, Any]] = {
    int: ("an integer", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    float: ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    str: ("a text", lambda value: isinstance(value, str)),
}


def _check_range(name: str, value: Any, allowed: tuple[int, int] | str) -> None:
    if isinstance(allowed, tuple):
        least, most = allowed
        if value < least:
            raise ValueError(f"{name}={value} must " + (f"be at least {least}" if least else "not be negative"))
        if value > most:
            raise ValueError(f"{name}={value} must be at most {most:,}")
    elif allowed == _POSITIVE and not 0 < value < math.inf:
        raise ValueError(f"{name}={value} must be positive and finite")
    elif allowed == _SHARE and not 0 <= value < 1:
        raise ValueError(f"{name}={value} is not a decay: choose 0 (none) or a number below 1, e.g. 0.999")
    elif allowed == _PART and not 0 <= value < 1:
        raise ValueError(f"{name}={value} is not a share of units: choose 0 (none) or a number below 1, e.g. 0.3")
    elif allowed == _ANY and not 0 <= value < math.inf:
        raise ValueError(f"{name}={value} must not be negative, and finite")
