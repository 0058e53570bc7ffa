"""Where the time went: nothing is counted twice, and the parts add up."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from toys import toy

from taggernet.fileio import write_json
from taggernet.training import train
from taggernet.training.time_spent import PARTS, TimeSpent, in_words


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_inner_work_is_not_counted_twice(clock: list[float]) -> None:
    spent = TimeSpent(since=95.0)
    with spent.on("updates"):
        clock[0] += 2
        with spent.on("compiling"):
            clock[0] += 10
        clock[0] += 1
    with spent.on("updates"):
        clock[0] += 4
    clock[0] += 0.5
    record = spent.record()
    assert record["start-up"] == pytest.approx(5)
    assert record["compiling"] == pytest.approx(10)
    assert record["updates"] == pytest.approx(7)
    assert record["other"] == pytest.approx(0.5)
    assert record["total"] == pytest.approx(22.5)
    assert in_words(record) == "22.5 s in all: start-up 5.0, compiling 10.0, updates 7.0, other 0.5"


def test_work_that_fails_is_counted(clock: list[float]) -> None:
    spent = TimeSpent()

    def fails() -> None:
        with spent.on("data"):
            clock[0] += 3
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    assert spent.record()["data"] == pytest.approx(3)


def test_a_run_records_every_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = toy(updates=6)
    first = train(config, tmp_path)
    shown = replace(config.runtime, progress=True)
    longer = replace(config, optimiser=replace(config.optimiser, updates=8), runtime=shown)
    second = train(longer, tmp_path, since=time.monotonic() - 5)
    calls = json.loads((tmp_path / "timing.json").read_text())["calls"]
    assert [call["total"] for call in calls] == [pytest.approx(run.times["total"], abs=1e-3) for run in (first, second)]
    for call in calls:
        assert set(call) == {*PARTS, "other", "total"}
        assert sum(call.values()) == pytest.approx(2 * call["total"], abs=0.01)
        assert call["updates"] > 0
        assert call["evaluation"] > 0
    assert calls[1]["start-up"] == pytest.approx(5, abs=0.5)
    assert "s in all: start-up 5" in capsys.readouterr().err


def test_a_resumed_run_counts_the_training_of_every_call(tmp_path: Path) -> None:
    config = toy(updates=6)
    first = train(config, tmp_path)
    write_json(tmp_path / "timing.json", {"calls": [{"start-up": 500.0, "compiling": 20.0, "updates": 30.0}]})
    again = train(config, tmp_path)
    assert first.seconds < 40
    assert 50 <= again.seconds < 90
