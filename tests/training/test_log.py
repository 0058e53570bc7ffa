"""Progress as a person or a log file sees it."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from toys import quiet, toy

from taggernet.training import log, train
from taggernet.training.log import Lines


def test_without_a_terminal_there_is_a_line_for_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    train(replace(toy(updates=20), runtime=quiet(progress=True)))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("update ")]
    assert [line.split(":")[0] for line in lines] == [f"update {step} of 20" for step in (5, 10, 15, 20)]
    assert all(" left" in line and float(line.split("loss ")[1].split(",")[0]) > 0 for line in lines)


def test_a_slow_run_has_a_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=200)
    lines = Lines(console, total=1000, done=400)
    for step in range(401, 421):
        now[0] += 8
        lines(step, loss=f"{1 / step:.4f}", rate="0.125/s", metric="0.500")
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert shown[0] == "update 404 of 1,000: loss 0.0025, AMI 0.500, 0.125/s, 1:19:28 left"
    assert [line.split()[1] for line in shown] == ["404", "408", "412", "416", "420"]
