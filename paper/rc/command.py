"""The command line of the RC row; apart from it, so that it runs where tyro is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from paper.rc.run import RCRun, run_rc
from taggernet.errors import exit_on_user_error
from taggernet.fileio import make_folder, write_json


def _command(config: Annotated[RCRun, tyro.conf.arg(name="")], out: Path = Path("results/table1/rc.json")) -> None:
    """Reconstruction Clustering on Shapes, trained on scenes and on single shapes: the RC row of Table 1b.

    Args:
        out: The record, as JSON.
    """
    make_folder(out.parent)
    record = run_rc(config)
    write_json(out, record)
    for mode, metrics in record["modes"].items():
        for split, summary in metrics["summary"].items():
            ami, spread = summary["ami"]["mean"], summary["ami"]["sd"]
            text = f"{ami:.3f}" + ("" if spread is None else f" +- {spread:.3f}")
            print(f"RC trained on {mode}: {split} AMI {text} (n={summary['n']}; paper 0.61 +- 0.005)")


def main(args: list[str] | None = None) -> None:
    """The command line."""
    with exit_on_user_error():
        tyro.cli(_command, prog="python -m paper.rc", args=args)
