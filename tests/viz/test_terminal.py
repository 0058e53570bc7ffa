"""Metrics as a table: mean and spread over seeds, a column per iteration."""

from __future__ import annotations

import io

from rich.console import Console

from taggernet.viz.terminal import show


def shown(metrics: dict[str, list[list[float]]], seeds: tuple[int, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=100)
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
