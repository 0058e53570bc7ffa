"""Metrics as a table: mean and spread over seeds, a column per iteration."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from taggernet.viz.terminal import show


def shown(metrics: dict[str, list[list[float]]], seeds: tuple[int, ...] = (), width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(metrics, "a title", console, seeds=seeds)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_mean_and_spread_over_seeds() -> None:
    text = shown({"cost": [[0.1, 0.3], [0.2, 0.5]], "ami_arithmetic": [[0.5, 0.5], [0.5, 0.5]]})
    assert text.startswith("a title")
    (cost,) = (line for line in text.splitlines() if "cost" in line)
    assert "0.150 ± 0.071" in cost
    assert "0.400 ± 0.141" in cost
    assert "ami arithmetic" in text


def test_one_seed_has_no_spread_and_zero_no_minus() -> None:
    text = shown({"ami": [[-0.0001, 1.0]]})
    assert "±" not in text
    assert "-0.000" not in text
    assert "1.000" in text


def test_each_of_several_seeds_has_a_row_of_its_own() -> None:
    metrics = {"cost": [[0.1, 0.3], [0.2, 0.5]], "ami_arithmetic": [[0.5, 0.7], [0.5, 0.9]]}
    rows = [line.replace("│", " ").split() for line in shown(metrics, (7, 8)).splitlines()]
    assert ["7", "0.300", "0.700"] in rows
    assert ["8", "0.500", "0.900"] in rows
    assert not any(row[:1] == ["7"] for row in (line.split() for line in shown(metrics).splitlines()))


NAMES = ["cost", "ami", "ami_arithmetic", "ari", "ari_foreground", "error", "error_first", "error_second"]


@pytest.mark.parametrize(
    ("names", "seeds", "iterations", "width"),
    [(NAMES[:5:2], 1, 8, 80), (NAMES, 1, 5, 80), (NAMES, 3, 5, 80), (NAMES, 1, 20, 80), (NAMES, 2, 3, 40),
     (NAMES[:2], 2, 2, 12)],
)  # fmt: skip
def test_every_number_is_whole_in_a_terminal_of_any_width(
    names: list[str], seeds: int, iterations: int, width: int
) -> None:
    """Where columns of iterations are too wide there are rows of them; in 12 columns the terminal breaks the lines."""
    metrics = {
        name: [[-10 - i - 0.01 * t - 0.001 * seed for t in range(iterations)] for seed in range(seeds)]
        for i, name in enumerate(names)
    }
    text = shown(metrics, tuple(range(seeds)) if seeds > 1 else (), width)
    assert "…" not in text
    assert width < 20 or all(len(line) <= width for line in text.splitlines())
    for per_seed in metrics.values():
        for values in zip(*per_seed, strict=True):
            assert f"{sum(values) / seeds:.3f}" in text
        for values in per_seed:
            assert seeds == 1 or f"{values[-1]:.3f}" in text
    for word in " ".join(names).replace("_", " ").split():
        assert word in text


def test_what_fits_has_a_column_for_each_iteration() -> None:
    metrics = {"cost": [[0.1, 0.2]], "foreground ARI": [[0.3, 0.4]]}
    rows = [line.replace("│", " ").split() for line in shown(metrics).splitlines()]
    assert ["foreground", "ARI", "0.300", "0.400"] in rows
    rows = [line.replace("│", " ").split() for line in shown({k: [v[0] * 10] for k, v in metrics.items()}).splitlines()]
    assert ["20", "0.200", "0.400"] in rows
