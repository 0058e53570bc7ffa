"""One process of several: trains one run after the other by the command line, and dies where it is told to.

Not a test module: test_distributed.py starts it with torchrun. ``python ranks.py JOBS.json``, a list of objects with
``args`` of ``taggernet`` and, where a process is to be killed, ``deaths``: pairs of a rank and an update. Each happens
once; a file beside the jobs remembers it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch

from taggernet.cli import main
from taggernet.training.step import Update

RANK = int(os.environ["RANK"])


def die_after(deaths: list[tuple[int, int]], folder: Path) -> None:
    """SIGKILL, for real, as soon as this process has done so many updates."""
    advance = Update.advance

    def advance_and_die(self: Update, count: int) -> torch.Tensor:
        costs = advance(self, count)
        for rank, step in deaths:
            mark = folder / f"death-{rank}-{step}"
            if rank == RANK and self.state.step >= step and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return costs

    Update.advance = advance_and_die  # type: ignore[method-assign]


if __name__ == "__main__":
    torch.set_num_threads(1)
    jobs = Path(sys.argv[1])
    for job in json.loads(jobs.read_text()):
        die_after(job.get("deaths", []), jobs.parent)
        status = main(job["args"])
        if status:
            sys.exit(status)
