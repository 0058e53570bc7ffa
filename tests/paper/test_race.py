"""Both methods at toy size, and what is read from their curves."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper import race
from paper.race import race_table, seconds_to
from taggernet.fileio import read_json, write_json


def test_both_methods_leave_curves_over_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("slot_attention", reason="needs the extra 'slots'")
    monkeypatch.setattr(race, "RACED", {"shapes": "shapes-best"})
    text = race.race(tmp_path, quick=True, device="cpu")
    assert len(text.splitlines()) == 4
    for method, steps in (("tagger", 20), ("slots", 10)):
        record = read_json(tmp_path / f"race-{method}-shapes.json")
        curve = record["curve"]
        assert [point["step"] for point in curve] == list(range(1, steps + 1))
        seconds = [point["seconds"] for point in curve]
        assert 0 < seconds[0] < seconds[-1]
        assert -0.1 < record["test"] < 1
    for name in ("tagger_curve", "slots_curve"):
        monkeypatch.setattr(race, name, lambda *_: pytest.fail("its record is there"))
    assert race.race(tmp_path, quick=True, device="cpu") == text


def test_the_first_time_at_the_goal_counts(tmp_path: Path) -> None:
    curve = [{"step": i, "seconds": 10.0 * i, "ami": ami} for i, ami in enumerate((0.2, 0.91, 0.85, 0.95))]
    assert seconds_to(curve) == 10
    assert seconds_to(curve, 0.96) is None
    write_json(tmp_path / "race-tagger-shapes.json", {"test": 0.94, "curve": curve})
    write_json(tmp_path / "race-slots-shapes.json", {"test": 0.1, "curve": curve[:1]})
    assert race_table(tmp_path).splitlines()[2:] == [
        "| shapes | Tagger | 0.940 | 10 s | 30 s |",
        "| shapes | Slot Attention | 0.100 | - | 0 s |",
    ]
    assert "../results/objects/race-tagger-shapes.json" in race_table(tmp_path, "..")
