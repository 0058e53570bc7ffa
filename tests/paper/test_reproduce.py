"""Tables and figures from data to the finished file, at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from paper import figure5, reproduce, table1
from paper.reproduce import Figure4, Figure5, Table1, Table2
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.seeds import initial_weights, one_seed

FIRST = "texture-mnist-2"


def test_seeds_are_the_papers_unless_given() -> None:
    assert [made().seed_count for made in (Table1, Table2, Figure4, Figure5)] == [20, 5, 5, 5]
    assert [Table1(seeds=3).seed_count, Table1(seeds=3, quick=True).seed_count, Table2(seeds=1).seed_count] == [3, 2, 1]


def test_table_2_writes_toy_results_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Table2(quick=True, results=tmp_path, runs=tmp_path / "runs", device="cpu", rows=(FIRST,))()
    said = capsys.readouterr().out
    assert "Phase 1, without labels" in said
    assert "records, table2.md are in" in said  # one row makes no curve
    found = json.loads((tmp_path / "quick" / "table2" / f"{FIRST}.json").read_text())
    assert found["seeds"] == [0, 1]
    assert (tmp_path / "runs" / "quick" / "table2" / FIRST / "config.json").exists()


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


def test_figure_4_is_drawn_though_only_the_record_of_its_row_is_there(
    tmp_path: Path, drawn: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone has the records but not the weights: they are trained, here at toy size, and not again."""
    animated: list[Tagger] = []
    monkeypatch.setattr(reproduce, "animation", lambda model, out: animated.append(model))
    options = Figure4(quick=True, results=tmp_path, runs=tmp_path / "runs", device="cpu")
    options()
    made = tmp_path / "quick" / "table1"
    assert {p.name for p in made.iterdir()} == {"figure4.pdf", "figure4.png", "figure4.json"}
    monkeypatch.setattr(reproduce, "figure4", lambda model, out, scenes: {})
    monkeypatch.setattr(reproduce, "train_to_end", lambda *_: pytest.fail("its run is there"))
    options()
    first, second = (dict(model.named_parameters()) for model in animated)
    assert all(torch.equal(w, second[name]) for name, w in first.items())


def test_figure_5_is_drawn_of_a_given_model(
    tmp_path: Path, drawn: list[Figure], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure5, "CANDIDATES", 3)
    config = TaggerConfig(shape=(28, 28), kind="real", widths=(16, 8), classes=10)
    model: Tagger = one_seed(config, initial_weights(config, [0], "cpu"), 0)
    model.save(tmp_path / "mine")
    Figure5(quick=True, model=str(tmp_path / "mine"), results=tmp_path, runs=tmp_path / "runs")()
    folder = tmp_path / "quick" / "table2"
    assert str(folder) in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"figure5.pdf", "figure5.png", "figure5.json"}
    assert not (tmp_path / "runs").exists()
