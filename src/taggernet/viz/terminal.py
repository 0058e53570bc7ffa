"""Metrics as tables in the terminal: no wider than it is, and with every number in full.

# S seeds · T iterations
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Column = tuple[str, Sequence[str]]
"""What stands at the head of a column, and its cells."""


def show(metrics: dict[str, Any], title: str, console: Console | None = None, *, seeds: Sequence[object] = ()) -> None:
    """Mean and spread over seeds after each iteration; ``metrics`` maps names to (S, T) nested lists.

    Iterations are columns; where that is too wide for the terminal they are rows, and what is still too wide becomes
    several tables. Where several ``seeds`` are named, there is a row for each as well, after the last iteration.
    """
    console = console or Console()
    console.print(title, style="bold", soft_wrap=True, markup=False, highlight=False)
    means = {_words(name): _means(per_seed) for name, per_seed in metrics.items()}
    iterations = [str(i + 1) for i in range(len(next(iter(means.values()))))]
    by_iteration = zip(iterations, zip(*means.values(), strict=True), strict=True)
    columns: list[Column] = [("after iteration", list(means)), *by_iteration]
    if _width(columns) > console.width:
        columns = [("after iteration", iterations), *means.items()]
    _print(columns, console)
    if len(seeds) > 1:
        last = [(_words(name), [_number(seed[-1]) for seed in per_seed]) for name, per_seed in metrics.items()]
        _print([("seed", [str(seed) for seed in seeds]), *last], console)


def _print(columns: Sequence[Column], console: Console) -> None:
    """As few tables as fit, each with the first column and at least one other."""
    first, *others = columns
    shown = [first]
    for column in others:
        if len(shown) > 1 and _width([*shown, column]) > console.width:
            console.print(_table(shown), crop=False)
            shown = [first]
        shown.append(column)
    console.print(_table(shown), crop=False)


def _table(columns: Sequence[Column]) -> Table:
    table = Table(width=_width(columns))
    for index, column in enumerate(columns):
        head = column[0] if len(column[0]) <= _widest(column) else column[0].replace(" ", "\n")
        table.add_column(head, justify="right" if index else "left", no_wrap=True)
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def _width(columns: Sequence[Column]) -> int:
    return 1 + sum(_widest(column) + len("│  ") for column in columns)


def _widest(column: Column) -> int:
    """Cells stay on one line, heads may take one for each of their words."""
    head, cells = column
    return max(map(len, [*head.split(), *cells]))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _means(per_seed: Sequence[Sequence[float]]) -> list[str]:
    """After each iteration."""
    return [_mean(values) for values in zip(*per_seed, strict=True)]


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return _number(statistics.fmean(values)) + spread


def _number(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # + 0.0: no minus before zero
