"""Logs of a run: metrics as JSON lines, TensorBoard, a progress bar, the environment."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from taggernet._version import __version__
from taggernet.fileio import write_durably

EVERY = 30
"""Seconds between two lines of progress where there is no terminal."""


def environment() -> dict[str, Any]:
    """Versions, commit and hardware, to explain a difference between two runs."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "taggernet": __version__,
        "commit": _commit(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": gpu,
        "cuda": torch.version.cuda,
    }


def _commit() -> str | None:
    """The commit of the source tree, with + when it has changes; None outside a checkout.

    TAGGERNET_COMMIT names it where the sources are a copy that git knows nothing of.
    """
    if os.environ.get("TAGGERNET_COMMIT"):
        return os.environ["TAGGERNET_COMMIT"]
    here = Path(__file__).resolve()

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=here.parent, capture_output=True, text=True, timeout=10, check=True
        )  # fmt: skip
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # an installed package may lie in somebody else's checkout
        head, dirty = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if dirty else "")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


class Records:
    """metrics.jsonl: one JSON object per line, each with its step."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        self.kept: list[dict[str, Any]] = []
        """What a run that is resumed has recorded."""
        self._keep_until(step)
        self._file = open(path, "a")  # noqa: SIM115  lives as long as the run

    def _keep_until(self, step: int) -> None:
        """Drop what a killed run wrote after its last checkpoint, and a truncated last line."""
        if not self.path.exists():
            return
        before = self.path.read_bytes()
        lines = before.splitlines()
        kept = []
        for number, line in enumerate(lines, 1):
            found = _step_of(line)
            if found is not None and found <= step:
                kept.append(line + b"\n")
            elif found is None and number < len(lines):
                warnings.warn(f"line {number} of {self.path} is damaged and was dropped", stacklevel=2)
        self.kept = [json.loads(line) for line in kept]
        text = b"".join(kept)
        if text != before:
            write_durably(self.path, lambda temporary: temporary.write_bytes(text))

    def write(self, record: dict[str, Any]) -> None:
        self._check()
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def _check(self) -> None:
        """A file that was deleted can still be written to, and the records would be gone."""
        if not self.path.exists() or not os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path)):
            raise OSError(f"{self.path.name} was deleted or replaced while the run was using it")

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def __enter__(self) -> Records:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        _close(self._file, failing=kind is not None)


def _step_of(line: bytes) -> int | None:
    """The step of a whole record."""
    try:
        step = json.loads(line)["step"]
    except (ValueError, TypeError, KeyError):
        return None
    return step if isinstance(step, int) else None


def _close(file: Any, failing: bool) -> None:
    """Close the file; after a failure, which was reported already, without another error."""
    try:
        file.close()
    except OSError:
        if not failing:
            raise


class TensorBoard:
    """TensorBoard's copy of the metrics: one curve per metric and seed."""

    def __init__(self, folder: Path, step: int, enabled: bool) -> None:
        self._writer: Any = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=step)

    def write(self, step: int, metrics: dict[str, list[float]], seeds: list[int]) -> None:
        if self._writer is not None:
            for name, values in metrics.items():
                for seed, value in zip(seeds, values, strict=True):
                    self._writer.add_scalar(f"{name}/seed {seed}", value, step)

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._writer is not None:
            _close(self._writer, failing=kind is not None)


@runtime_checkable
class Bar(Protocol):
    def __call__(self, step: int, **values: str) -> None: ...


class Lines:
    """Progress for a log file: a line after every tenth of the updates, and at least every 30 s."""

    def __init__(self, console: Console, total: int, done: int, metric: str = "AMI") -> None:
        self.metric, self.console, self.total, self.first, self.shown = metric, console, total, done, done
        self.begin = self.last = time.monotonic()
        self.values: dict[str, str] = {}

    def __call__(self, step: int, **values: str) -> None:
        self.values |= values
        now = time.monotonic()
        if 10 * step // self.total == 10 * self.shown // self.total and now - self.last < EVERY:
            return
        self.shown, self.last = step, now
        seconds = (now - self.begin) * (self.total - step) / max(1, step - self.first)
        parts = [f"loss {self.values.get('loss', '-')}"]
        parts += [f"{self.metric} {self.values['metric']}"] if "metric" in self.values else []
        parts += [self.values["rate"]] if "rate" in self.values else []
        parts.append(f"{self.values.get('left') or timedelta(seconds=round(seconds))} left")
        words = f"update {step:,} of {self.total:,}: {', '.join(parts)}"
        self.console.print(words, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def progress_bar(total: int, done: int, enabled: bool, metric: str = "AMI", what: str = "training") -> Iterator[Bar]:
    """A bar with loss, a metric of the validation, updates per second and the time left; lines without a terminal."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda step, **values: None
        return
    if not console.is_terminal and not console.is_jupyter:
        yield Lines(console, total, done, metric)
        return
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn(f"{metric} {{task.fields[metric]}}"),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total, completed=done, loss="-", metric="-", rate="")

        def update(step: int, **values: Any) -> None:
            progress.update(task, completed=step, **values)

        yield update


@contextmanager
def row_bar(total: int, enabled: bool) -> Iterator[Callable[[int], None]]:
    """A bar of rows done, with the time left; where there is no terminal, a line every 30 s and at the end."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda done: None
        return
    if console.is_terminal or console.is_jupyter:
        columns = (
            TextColumn("[bold]grouping"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("grouping", total=total)
            yield lambda done: progress.update(task, completed=done)
        return
    begin = last = time.monotonic()
    first: int | None = None

    def line(done: int) -> None:
        nonlocal first, last
        now, first = time.monotonic(), done if first is None else first
        if now - last >= EVERY or done == total:
            last = now
            left = (now - begin) * (total - done) / max(1, done - first)
            console.print(
                f"{done:,} of {total:,} scenes, {timedelta(seconds=round(left))} left", soft_wrap=True, highlight=False
            )

    yield line
