"""What a browser shows of the explorer: pictures as numbers, and waiting for an answer of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from taggernet.viz.colours import ink

Pixels = Callable[[Any], Any]

INPUT, SCENE, COLOUR = (f"[data-picture={name}] img" for name in ("input", "scene", "colour"))


def as_ink(x: Any) -> Any:
    return (ink(np.asarray(x, float)) * 255 + 0.5).astype(int)


def inked(picture: Any) -> int:
    """How many elements are drawn."""
    return int((picture == as_ink(np.ones((1, 1)))[0, 0]).all(-1).sum())


def until(page: Any, found: Callable[[], bool], what: str) -> None:
    """Wait for an answer of the server."""
    for _ in range(1000):
        if found():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"waited in vain: {what}")


def shows(page: Any, pixels: Pixels, picture: str, expected: Any) -> None:
    until(page, lambda: bool((pixels(page.locator(picture)) == expected).all()), f"{picture} as expected")


def has(page: Any, what: str, count: int) -> None:
    until(page, lambda: page.locator(what).count() == count, f"{count} of {what}")


def set_number(page: Any, name: str, value: object) -> None:
    field = page.locator(f"#{name} input[type=number]")
    field.fill(str(value))
    field.press("Tab")
    assert field.input_value() == str(value)
