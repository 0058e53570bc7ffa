"""Fill a disk, make it read-only or limit the size of files under a run; mend it; compare with a run left in peace.

Not a test module: test_failures.py runs it as a program, for 'mounted' in a mount namespace of its own.
Prints one line per failure and 'all alike' at the end.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from crashes import same_outcome
from faulty import settled
from toys import quiet, toy

from taggernet.training import train
from taggernet.training.checkpoint import load_latest
from taggernet.training.step import Update

CONFIG = replace(
    toy("batch", "fixed", seeds=2, ema=0.9),
    runtime=quiet(log_every=4, evaluate_every=6, checkpoint_every=5, tensorboard=True),
)
Fault = Callable[[Path], AbstractContextManager[None]]


def interrupted(run: Path, fault: Fault, words: str) -> None:
    """Train into a folder that fails after update 7; the checkpoint after update 5 must outlive it."""
    advance, told = Update.advance, ""
    try:
        with fault_at(7, run, fault(run)):
            train(CONFIG, run)
    except OSError as problem:
        told = str(problem)
    finally:
        Update.advance = advance  # type: ignore[method-assign]
    assert words in told, told
    assert f"the last good checkpoint, after update 5, is kept in {run}" in told, told
    found = load_latest(run, CONFIG, "cpu")
    assert found is not None
    assert found[0].step == 5
    assert not list(run.rglob("*.tmp")), list(run.rglob("*.tmp"))
    print(f"stopped as it should: {told}", flush=True)


@contextmanager
def fault_at(step: int, run: Path, fault: AbstractContextManager[None]) -> Iterator[None]:
    """The fault begins after so many updates and ends with the run."""
    advance, begun = Update.advance, []

    def advance_and_fail(self: Update, count: int) -> torch.Tensor:
        costs = advance(self, count)
        if self.state.step >= step and not begun:
            settled(run)
            begun.append(fault.__enter__())
        return costs

    Update.advance = advance_and_fail  # type: ignore[method-assign]
    try:
        yield
    finally:
        Update.advance = advance  # type: ignore[method-assign]
        assert begun, "the fault was never reached"
        fault.__exit__(None, None, None)


@contextmanager
def full(run: Path, left: int = 0) -> Iterator[None]:
    """A disk with so many bytes left."""
    ballast = run.parent / "ballast"
    ballast.write_bytes(b"\0" * left)
    with open(run.parent / "more", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            ballast.unlink()
    yield
    (run.parent / "more").unlink()


@contextmanager
def read_only(run: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", run, run], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", run], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", run], check=True)


@contextmanager
def limited(run: Path) -> Iterator[None]:
    """No file may be longer than a record or two."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def on_a_small_disk(folder: Path) -> dict[str, tuple[Fault, str]]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True)
    space = "(No space left on device): free some space and run the same command again"
    return {
        "full": (full, f"could not be written to {folder / 'full'} {space}"),
        "nearly full": (
            lambda run: full(run, 60_000),
            f"a checkpoint could not be written to {folder / 'nearly full'} {space}",
        ),
        "read-only": (
            read_only,
            f"could not be written to {folder / 'read-only'} (Read-only file system): "
            "make the folder writable and run the same command again",
        ),
    }


def with_small_files(folder: Path) -> dict[str, tuple[Fault, str]]:
    words = f"a checkpoint could not be written to {folder / 'limited'} (File too large): allow larger files"
    return {"limited": (limited, words)}


def refused(run: Path, fault: Fault, words: str) -> None:
    """Nothing can be written from the start."""
    run.mkdir()
    told = ""
    with fault(run):
        try:
            train(CONFIG, run)
        except OSError as problem:
            told = str(problem)
    assert words in told, told
    print(f"refused as it should: {told}", flush=True)


def main(folder: Path, kind: str) -> None:
    place = folder / "disk"
    place.mkdir()
    train(CONFIG, folder / "whole")
    cases = on_a_small_disk(place) if kind == "mounted" else with_small_files(place)
    for name, (fault, words) in cases.items():
        interrupted(place / name, fault, words)
        train(CONFIG, place / name)
        same_outcome(place / name, folder / "whole")
    if kind == "mounted":
        refused(place / "never", read_only, "never cannot be written (Read-only file system): choose another --out")
        refused(place / "nowhere", full, "could not be written to")
    print("all alike")


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    # TensorBoard's thread and the checkpoint's may both lose the disk: one is raised, the other only told of.
    warnings.filterwarnings("default", "a checkpoint could not be written")
    main(Path(sys.argv[1]), sys.argv[2])
