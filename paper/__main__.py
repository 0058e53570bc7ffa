"""python -m paper table1|table2|figure4|figure5: the paper's tables and figures, from data to the finished file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from paper.reproduce import reproduce
from taggernet.errors import exit_on_user_error


@dataclass(frozen=True)
class Reproduce:
    """Everything from data to the finished table or figure of the paper."""

    what: Annotated[Literal["table1", "table2", "figure4", "figure5"], tyro.conf.Positional]
    """Which table or figure."""
    seeds: int | None = None
    """Seeds of each of the paper's rows; by default as many as the paper: 20 in Table 1, 5 in Table 2."""
    quick: bool = False
    """Toy size: shows that everything works, in seconds, on any machine."""
    results: Path = Path("results")
    """Where records, tables and figures go; a record that is there already is not computed again."""
    runs: Path = Path("runs")
    """Where the runs keep their checkpoints."""
    model: str = ""
    """Figures: the model to draw, a folder or the name of a shipped one; by default the first seed of our best row,
    which is trained if runs does not hold it."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    rows: tuple[str, ...] = ()
    """table2: some of tagger, baselines, best, top, compact, fresh, permuted, curve, or cells by name; else all."""


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    with exit_on_user_error():
        options = tyro.cli(Reproduce, prog="python -m paper", args=argv, config=(tyro.conf.OmitArgPrefixes,))
        reproduce(**vars(options))


if __name__ == "__main__":
    main()
