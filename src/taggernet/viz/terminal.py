"""Metrics as a table in the terminal.

# S seeds · T iterations
"""

from __future__ import annotations

import statistics
from typing import Any

from rich.console import Console
from rich.table import Table


def show(metrics: dict[str, Any], title: str, console: Console | None = None) -> None:
    """Mean and spread over seeds, a column per iteration; ``metrics`` maps names to (S, T) nested lists."""
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
            cells.append(f"{round(statistics.fmean(values), 3) + 0.0:.3f}{spread}")  # + 0.0: no minus before zero
        table.add_row(name.replace("_", " "), *cells)
    console.print(title, style="bold", soft_wrap=True, markup=False, highlight=False)
    console.print(table)
