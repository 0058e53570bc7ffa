"""Numbers as text: spreads, differences with their error, links, tables."""

from __future__ import annotations

import numpy as np
import pytest

from paper.markdown import difference, links, mean_sd, signed, table
from paper.published import Published


def test_mean_and_sample_standard_deviation() -> None:
    assert mean_sd([1.0, 2.0, 4.5], 2) == "2.50 ± 1.80"
    assert mean_sd([0.5]) == "0.500 ± 0.000"


def test_a_difference_has_the_error_of_two_means() -> None:
    """Against a simulation: the spread of many such differences."""
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(3.0, 0.5, (20_000, 8)), rng.normal(3.2, 0.3, (20_000, 5))
    spread = float((ours.mean(1) - theirs.mean(1)).std())
    sample = 3 + 0.5 * np.array([-1, -1, -1, -1, 1, 1, 1, 1]) * np.sqrt(7 / 8)  # mean 3 and sd 0.5 exactly
    shown, error = difference(list(sample), Published(3.2, 0.3, 5), 4).split(" ± ")
    assert shown == "−0.2000"
    assert float(error) == pytest.approx(spread, rel=0.03)


def test_the_error_of_medians_is_larger() -> None:
    """Against a simulation of normal samples."""
    rng = np.random.default_rng(1)
    spread = float(np.median(rng.normal(0, 1, (20_000, 101)), axis=1).std())
    sample = np.concatenate([-np.ones(50), [0], np.ones(50)])  # sd 1
    shown, error = difference(list(sample), Published(0.0), 4, median=True).split(" ± ")
    assert shown == "0.0000"
    assert float(error) == pytest.approx(spread, rel=0.03)


def test_without_the_papers_spread_the_error_is_ours_alone() -> None:
    ours = [1.0, 2.0, 3.0, 4.0]
    for paper in (Published(2.0), Published(2.0, 0.5), Published(2.0, None, 5)):
        assert difference(ours, paper, 3) == "+0.500 ± 0.645"


def test_a_rounded_mean_decides_nothing() -> None:
    assert difference([0.786, 0.786], Published(0.79), 3) == "−0.004 ± 0.000"


def test_zero_has_no_sign() -> None:
    assert [signed(v, 2) for v in (-0.001, 0.0, 0.004, -0.126, 1.0)] == ["0.00", "0.00", "0.00", "−0.13", "+1.00"]


def test_links_start_at_the_page() -> None:
    assert links("paper/rc/run.py", {"record": "results/a.json"}, "..") == (
        " ([recipe](../paper/rc/run.py), [record](../results/a.json))"
    )
    assert links("a.py", {}) == " ([recipe](a.py))"


def test_a_table_is_as_wide_as_its_head() -> None:
    lines = table("Title", ["a", "b"], [["1"], ["2", "3"]], "note")
    assert lines == ["### Title", "", "| a | b |", "|---|---|", "| 1 |  |", "| 2 | 3 |", "", "note"]
    assert table("Title", ["a"], [], "note") == []
