"""Kill a run before each of its file operations in turn, and at random; continue it; compare with one left in peace.

Not a test module: test_resume.py runs it as a program, because it forks, and a fork wants a process of one thread.
Prints one line per death and 'all alike' at the end.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from toys import quiet, records, toy

from taggernet.fileio import read_tensors
from taggernet.training import train

OPERATIONS = [(os, "replace"), (os, "fsync"), (shutil, "rmtree")]


def in_child(action: Callable[[], Any]) -> int:
    """The exit status of a forked process, negative for the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(in_this_process(action))


def in_this_process(action: Callable[[], Any]) -> int:
    try:
        action()
    except BaseException as problem:
        print(f"the child failed: {problem!r}", flush=True)
        return 1
    return 0


def fatal(call: int, action: Callable[[], Any]) -> None:
    """Do the action; the call-th file operation is never reached alive."""
    count = itertools.count()

    def guard(operation: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **options: Any) -> Any:
            if next(count) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*args, **options)

        return guarded

    for module, name in OPERATIONS:
        setattr(module, name, guard(getattr(module, name)))
    action()


def outcome(run: Path) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    return records(run), read_tensors(run / "seed-0" / "model.safetensors")


def same_outcome(run: Path, whole: Path) -> None:
    expected_records, expected = outcome(whole)
    found_records, found = outcome(run)
    assert found_records == expected_records, (found_records, expected_records)
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    assert not list(run.rglob("*.tmp")), "something unfinished was left behind"


def at_every_operation(folder: Path) -> None:
    config = replace(toy("batch", "fixed", updates=3, ema=0.9), runtime=quiet(log_every=3, checkpoint_every=2))
    train(config, folder / "whole")  # here: what it loads, the children need not load again
    for call in itertools.count():
        run = folder / str(call)
        status = in_child(lambda: fatal(call, lambda: train(config, run)))  # noqa: B023  called at once
        if status == 0:
            break
        assert status == -signal.SIGKILL, status
        left = sorted(path.name for path in (run / "checkpoints").glob("*"))
        print(f"killed before operation {call}: {left}", flush=True)
        assert in_child(lambda: train(config, run)) == 0  # noqa: B023
        same_outcome(run, folder / "whole")
        shutil.rmtree(run)
    assert call > 15, "too few operations were seen: is the list of them still right?"


def at_random(folder: Path, kills: int) -> None:
    """In turn anywhere, and as soon as a checkpoint is being written."""
    config = toy("layer", "fresh", seeds=2, updates=20 * kills, ema=0.9, clip=0.05, schedule="cosine")
    config = replace(config, runtime=quiet(log_every=4, checkpoint_every=3, evaluate_every=10))
    begin = time.monotonic()
    assert in_child(lambda: train(config, folder / "whole")) == 0
    reach = 1.5 * (time.monotonic() - begin) / kills
    killed = while_writing = 0
    for run in (folder / f"run-{number}" for number in itertools.count()):
        while killed < kills:
            child = os.fork()
            if not child:
                os._exit(in_this_process(lambda: train(config, run)))  # noqa: B023  called at once
            if killed % 2 == 0:
                time.sleep(random.uniform(0, reach))
            else:
                until_a_checkpoint_is_begun(run, child)
            os.kill(child, signal.SIGKILL)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
                break  # it was faster: the rest die in another run
            killed += 1
            torn = bool(list((run / "checkpoints").glob("*.tmp")))
            while_writing += torn
            print(f"killed {'while writing' if torn else 'after'} a checkpoint, the last is {newest(run)}", flush=True)
        assert in_child(lambda: train(config, run)) == 0  # noqa: B023
        same_outcome(run, folder / "whole")
        if killed == kills:
            break
    assert while_writing or kills < 4, "no checkpoint was torn: look where the run was killed"


def until_a_checkpoint_is_begun(run: Path, child: int) -> None:
    """Wait for it; for a checkpoint left by the run before, until it is begun again."""
    known = {path.stat().st_ino for path in (run / "checkpoints").glob("*.tmp")}
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with suppress(FileNotFoundError):
            if {path.stat().st_ino for path in (run / "checkpoints").glob("*.tmp")} - known:
                time.sleep(random.uniform(0, 0.002))
                return
        time.sleep(0.0005)


def newest(run: Path) -> str:
    return max((path.name for path in (run / "checkpoints").glob("*") if path.name.isdigit()), default="none")


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error")  # a checkpoint that is cut short would be reported as damaged
    place = Path(sys.argv[1])
    at_every_operation(place / "operations")
    at_random(place / "random", int(sys.argv[2]))
    print("all alike")
