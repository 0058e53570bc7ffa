"""Metrics as a table in the terminal.

# S seeds · T iterations
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def show(metrics: dict[str, Any], title: str, console: Console | None = None, *, seeds: Sequence[object] = ()) -> None:
    """Mean and spread over seeds, a column per iteration; ``metrics`` maps names to (S, T) nested lists.

    Where several ``seeds`` are named, a second table has a row for each, after the last iteration.
    """
    console = console or Console()
    table = Table()
    table.add_column("after iteration")
    count = len(next(iter(metrics.values()))[0])
    for i in range(count):
        table.add_column(str(i + 1), justify="right")
    for name, per_seed in metrics.items():
        cells = []
        for i in range(count):
            values = [seed[i] for seed in per_seed]
            spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
            cells.append(_number(statistics.fmean(values)) + spread)
        table.add_row(name.replace("_", " "), *cells)
    console.print(title, style="bold", soft_wrap=True, markup=False, highlight=False)
    console.print(table)
    if len(seeds) > 1:
        console.print(_by_seed(metrics, seeds))


def _by_seed(metrics: dict[str, Any], seeds: Sequence[object]) -> Table:
    table = Table()
    table.add_column("seed")
    for name in metrics:
        table.add_column(name.replace("_", " "), justify="right")
    for index, seed in enumerate(seeds):
        table.add_row(str(seed), *(_number(per_seed[index][-1]) for per_seed in metrics.values()))
    return table


def _number(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # + 0.0: no minus before zero
