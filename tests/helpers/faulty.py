"""For the tests of faults: do something to a run on its way, and see what is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from toys import records, toy

import taggernet
from taggernet.fileio import read_tensors
from taggernet.training import train
from taggernet.training.checkpoint import load_latest
from taggernet.training.step import Update

CONFIG = toy("batch", "fixed", ema=0.9)
"""Records after updates 4, 6, 8, 12; checkpoints after 5, 10, 12."""
OPTIONS = [
    "--widths",
    "12",
    "8",
    "--batch",
    "4",
    "--updates",
    "2",
    "--train",
    "8",
    "--valid",
    "4",
    "--test",
    "4",
    "--no-tensorboard",
    "--no-progress",
    "--device",
    "cpu",
]
"""The smallest run of the command line."""
SOAK = os.environ.get("TAGGERNET_SOAK") == "1"
"""Whether the long tests run at full size: make soak."""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(taggernet.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


def after(step: int, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something once, as soon as so many updates are done."""
    advance, done = Update.advance, []

    def advance_and_act(self: Update, count: int) -> torch.Tensor:
        costs = advance(self, count)
        if self.state.step >= step and not done:
            done.append(action())
        return costs

    monkeypatch.setattr(Update, "advance", advance_and_act)


def settled(run: Path) -> Path:
    """The run, once the thread that writes its checkpoint is done."""
    for thread in threading.enumerate():
        if thread.name == "taggernet checkpoint":
            thread.join()
    return run


def assert_kept(run: Path, step: int) -> None:
    found = load_latest(run, CONFIG, "cpu")
    assert found is not None
    assert found[0].step == step
    assert not list(run.rglob("*.tmp"))


def assert_goes_on(run: Path, whole: Path) -> None:
    train(CONFIG, run)
    assert records(run) == records(whole)
    expected = read_tensors(whole / "seed-0" / "model.safetensors")
    found = read_tensors(run / "seed-0" / "model.safetensors")
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def command(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "taggernet", *args],
        env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
