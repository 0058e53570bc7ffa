"""The command line of the baselines; apart from them, so that they train where tyro is not installed."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from paper.baselines.recipes import baseline
from paper.baselines.recipes import quick as toy_version
from paper.baselines.run import run_baseline
from taggernet.errors import exit_on_user_error
from taggernet.fileio import make_folder, write_json


def _command(name: Annotated[str, tyro.conf.Positional], out: Path = Path("results/table2"), quick: bool = False,
             device: str = "auto") -> None:  # fmt: skip
    """Train one baseline of Table 2 and write its record.

    Args:
        name: Which one, e.g. ladder-texture-mnist-2-1k; a wrong name lists them all.
        out: Folder of the record, NAME.json.
        quick: At toy size, to see that it works.
        device: auto, cpu, cuda, ...
    """
    config = replace(baseline(name), device=device)
    make_folder(out)
    record = run_baseline(toy_version(config) if quick else config)
    write_json(out / f"{name}.json", record)
    for part in ("valid", "test"):
        found = [100 * row[-1] for row in record[part]["error"]]
        sd = statistics.stdev(found) if len(found) > 1 else 0.0
        print(f"{name} {part} error {statistics.fmean(found):.2f} ± {sd:.2f} % over {len(found)} seeds")


def main(args: list[str] | None = None) -> None:
    """The command line."""
    with exit_on_user_error():
        tyro.cli(_command, prog="python -m paper.baselines", args=args)
