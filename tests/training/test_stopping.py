"""Training ends early once groups have formed and nothing gets better, and goes on when it is told to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from own_files import sensors, short, write
from toys import records

from taggernet import config_for, grouping_report
from taggernet.fileio import read_json
from taggernet.training import Config, loop, train
from taggernet.training.stopping import Patience, duration


def patience(n: int, costs: list[float], agreements: list[float], confidence: float = 0.9) -> Patience:
    found = Patience(n)
    for cost, agreement in zip(costs, agreements, strict=True):
        found.see([[9.0, cost]], {"agreement": [agreement], "confidence": [confidence], "used": [2.0]})
    return found


FLAT = [1.0, 0.5, 0.4, 0.4, 0.399]


@pytest.mark.parametrize(
    ("n", "costs", "agreements", "confidence", "over"),
    [
        (2, FLAT, [0.0, 0.8, 0.9, 0.9, 0.9], 0.9, True),
        (0, FLAT, [0.0, 0.8, 0.9, 0.9, 0.9], 0.9, False),  # never
        (5, FLAT, [0.0, 0.8, 0.9, 0.9, 0.9], 0.9, False),  # too few evaluations
        (2, [1.0, 0.5, 0.4, 0.4, 0.39], [0.0, 0.8, 0.9, 0.9, 0.9], 0.9, False),  # the cost falls
        (2, FLAT, [0.0, 0.8, 0.8, 0.9, 0.9], 0.9, False),  # the agreement grows
        (2, FLAT, [0.0, 0.1, 0.1, 0.1, 0.1], 0.9, False),  # each start gives other groups: they may still form
        (2, FLAT, [0.0, 0.8, 0.9, 0.9, 0.9], 0.1, False),  # masks are undecided
        (2, [0.4, 0.4, 0.4], [0.9, 0.9, 0.9], 0.9, True),  # a run that began where it ends
    ],
)
def test_it_is_over_when_groups_formed_and_all_is_flat(
    n: int, costs: list[float], agreements: list[float], confidence: float, over: bool
) -> None:
    assert patience(n, costs, agreements, confidence).is_over == over


def test_the_same_cut_in_every_scene_is_no_reason_to_stop() -> None:
    for elsewhere, over in ((0.1, True), (0.9, False)):
        found = Patience(2)
        for _ in range(4):
            grouping = {"agreement": [0.9], "confidence": [0.9], "used": [2.0], "elsewhere": [elsewhere]}
            found.see([[9.0, 0.4]], grouping)
        assert found.is_over == over


def test_the_same_cut_in_every_scene_is_fine_where_masks_start_from_parts() -> None:
    found = Patience(2, by_parts=True)
    for _ in range(4):
        found.see([[9.0, 0.4]], {"agreement": [0.9], "confidence": [0.9], "used": [2.0], "elsewhere": [0.9]})
    assert found.is_over


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (89.0, "89 s"), (100.0, "2 min"), (3600.0, "60 min"), (7200.0, "2 h"), (7900.0, "2 h 10 min")],
)
def test_durations_are_rough(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A run of 40 updates, evaluated every second, whose groups always count as formed and whose cost never falls."""

    def report(*args: Any, **options: Any) -> grouping_report.GroupingReport:
        return grouping_report.GroupingReport(4, [0.9], [0.9], [2.0], [0.1])

    monkeypatch.setattr(loop, "grouping_report", report)
    found = config_for(write(tmp_path / "mine.npz", {"x": sensors()["x"]}))
    found = short(replace(found, model=replace(found.model, widths=(8, 4))), updates=40, lr=1e-12, patience=3)
    return replace(found, runtime=replace(found.runtime, evaluate_every=2, checkpoint_every=3))


def test_a_run_stops_early_and_can_be_made_longer(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    loud = replace(config, runtime=replace(config.runtime, progress=True))
    run = train(loud, out)
    assert (run.finished, run.done_early, run.step) == (True, True, 8)
    assert "stopped after update 8 of 40: groups have formed" in capsys.readouterr().err
    assert read_json(out / "seed-0" / "config.json")["card"]["updates"] == 8
    assert [r["step"] for r in records(out) if "loss" in r][-1] == 8
    before = records(out)
    assert train(config, out).step == 8, "the same command finds it finished"
    assert records(out) == before
    longer = train(replace(config, optimiser=replace(config.optimiser, updates=50)), out)
    assert longer.step == 16, "patience begins anew where it was made longer"
    to_the_end = replace(config, optimiser=replace(config.optimiser, updates=50, patience=0))
    assert train(to_the_end, out).step == 50
    with pytest.raises(ValueError, match="holds a run of 50 updates, more than the 40 asked for"):
        train(config, out)


def test_patience_survives_an_interruption(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of evaluations after updates 2, 4, 6 and 8 the last two come after a restart at update 5."""

    def die(*args: Any) -> None:
        raise RuntimeError("killed")

    evaluate = loop._Training.evaluate
    monkeypatch.setattr(
        loop._Training, "evaluate", lambda self: die() if self.step == 6 else evaluate(self)
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="killed"):
        train(config, tmp_path / "run")
    monkeypatch.setattr(loop._Training, "evaluate", evaluate)
    assert train(config, tmp_path / "run").step == 8
    assert [r["step"] for r in records(tmp_path / "run") if "grouping" in r] == [2, 4, 6, 8]


def test_a_run_without_groups_is_never_stopped(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    run = train(replace(config, optimiser=replace(config.optimiser, updates=12)))
    assert (run.done_early, run.step) == (False, 12)
