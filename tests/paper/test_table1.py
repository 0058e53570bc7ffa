"""Table 1 from training to records, at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper import table1
from paper.reproduce import Table1


def test_table_1_is_made_of_records_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row at toy size; a second call trains nothing."""
    drawn: list[str] = []
    monkeypatch.setattr(table1, "TITLES", {"shapes-best": ""})
    monkeypatch.setattr(table1, "run_rc", lambda config: {"modes": {}, "seeds": config.seeds})
    monkeypatch.setattr(table1, "generalisation", lambda *_, **__: {"scenes": 0})
    for figure in ("generalisation_figure", "worst_scenes_figure"):
        monkeypatch.setattr(table1, figure, lambda *arguments, **_: drawn.append(str(arguments[-1])))
    options = Table1(quick=True, results=tmp_path, runs=tmp_path / "runs", device="cpu")
    options()
    made = tmp_path / "quick" / "table1"
    first = {path.name: path.read_bytes() for path in made.iterdir()}
    assert {"shapes-best.json", "rc.json", "table1.md", "generalisation-shapes-best.json"} <= set(first)
    assert [Path(path).name for path in drawn] == ["generalisation-shapes-best", "worst-shapes-best"]
    record = json.loads(first["shapes-best.json"])
    assert set(record) == {
        "config", "environment", "seeds", "training_seconds", "seconds", "test_scenes", "coincident_share", "valid",
        "test",
    }  # fmt: skip
    assert "our best recipe" in capsys.readouterr().out
    monkeypatch.setattr(table1, "train_to_end", lambda *_: pytest.fail("its record is there"))
    options()
    assert {path.name: path.read_bytes() for path in made.iterdir()} == first
