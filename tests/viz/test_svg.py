"""Line charts: points lie where the values are, ticks are round, and nothing breaks on odd values."""

from __future__ import annotations

import pytest
from html_pages import Page
from hypothesis import given
from hypothesis import strategies as st

from taggernet.viz.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, line_chart, short, ticks


def points(of: dict[str, str]) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in of["points"].split()]  # type: ignore[misc]


def test_points_lie_where_the_values_are() -> None:
    page = Page(line_chart([Line([0, 5, 10], [1.0, 0.0, 0.5])], "a < b", "update"))
    (line,) = page.all("polyline")
    (x0, y0), (x1, y1), (x2, y2) = points(line)
    assert (x0, x2) == (LEFT, WIDTH - RIGHT)
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.1)
    assert TOP < y0 < y2 < y1 < HEIGHT - BOTTOM, "larger values are higher"
    assert y2 == pytest.approx((y0 + y1) / 2, abs=0.1)
    assert "a < b" in page.text
    assert len(page.all("circle")) == 3


def test_the_axis_reaches_what_it_must_and_the_named_line_is_on_top() -> None:
    page = Page(line_chart([Line([1, 2], [0.4, 0.5]), Line([1, 2], [0.4, 0.6], "b", True)], "", "", low=0.0, high=1.0))
    assert {"0", "1"} <= set(page.text.split())
    assert [of["class"] for of in page.all("polyline")] == ["line b faint", "line a"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_every_value_is_inside(values: list[float]) -> None:
    page = Page(line_chart([Line(list(range(len(values))), values)], "cost", "update"))
    for x, y in points(page.all("polyline")[0]):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1


def test_a_value_that_is_not_a_number_is_left_out() -> None:
    page = Page(line_chart([Line([1, 2, 3], [0.1, float("nan"), 0.3])], "", ""))
    assert len(points(page.all("polyline")[0])) == 2


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e5))
def test_ticks_are_few_and_within(low: float, spread: float) -> None:
    found = ticks(low, low + spread)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-6 * spread <= tick <= low + spread * (1 + 1e-6) for tick in found)


def test_ticks_and_their_words_are_round() -> None:
    assert ticks(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(1.0, 5.0, whole=True) == [1, 2, 3, 4, 5]
    assert ticks(1.0, 3.0, whole=True) == [1, 2, 3]
    assert [short(n) for n in (0.0, 0.25, 12.0, 2000.0, 40_000.0, 0.30000000000000004)] == [
        "0", "0.25", "12", "2,000", "40k", "0.3",
    ]  # fmt: skip
