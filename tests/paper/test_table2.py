"""Table 2 at toy size: what is trained and what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paper import quick, table2
from paper.markdown import mean_sd
from paper.table2 import reproduce_table2
from taggernet.training import Config, Run, train_to_end

FIRST, FEW, ALL = "texture-mnist-2", "texture-mnist-2-labels-1k", "texture-mnist-2-labels-50k"

QUICK = quick.quick_config


class Trained:
    """Stands in for ``train_to_end``: a few updates of tiny models, and a list of what was asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.starts: list[Any] = []
        self.weights: dict[str, Any] = {}

    def __call__(self, config: Config, out: Path | None, *, start: Any = None) -> Run:
        self.names.append(config.recipe)
        self.starts.append(start)
        run = train_to_end(config, out, start=start)
        self.weights[config.recipe] = run.weights
        return run


def tiny(config: Config) -> Config:
    small = QUICK(config)
    return replace(
        small,
        data=replace(small.data, valid=20, test=30),
        optimiser=replace(small.optimiser, updates=2),
        runtime=replace(small.runtime, progress=False, tensorboard=False, evaluate_scenes=20),
        test_iterations=2,
    )


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    found = Trained()
    monkeypatch.setattr(table2, "train_to_end", found)
    monkeypatch.setattr(quick, "quick_config", tiny)
    monkeypatch.setattr(table2, "label_curve_figure", lambda curves, out: None)
    return found


def make(results: Path, runs: Path | None, *rows: str) -> str:
    return reproduce_table2(results, runs, seeds=2, quick=True, device="cpu", rows=rows)


def test_both_label_counts_share_their_first_phase_in_memory(trained: Trained, tmp_path: Path) -> None:
    text = make(tmp_path, None, FEW, ALL)
    assert trained.names == [FIRST, FEW, ALL]
    assert trained.starts == [None, trained.weights[FIRST], trained.weights[FIRST]]
    record = json.loads((tmp_path / f"{FEW}.json").read_text())
    assert record["config"]["start_from"] == FIRST
    assert record["first_phase"]["recipe"] == FIRST
    assert record["first_phase"]["seeds"] == 2
    assert np.shape(record["test"]["error"]) == (2, 2)
    parts = np.mean([record["test"][name] for name in ("error_first", "error_second")], axis=0)
    np.testing.assert_allclose(parts, record["test"]["error"])
    assert np.shape(record["groups"]["counts"]) == (2, 4, 4)
    assert np.sum(record["groups"]["counts"]) == 2 * 30 * 4, "every group of every scene, for both seeds"
    assert np.shape(record["training_scenes"]["error"]) == (2, 2)
    assert record["training_scenes"]["scenes"] == 400
    assert text == (tmp_path / "table2.md").read_text()
    assert mean_sd([100 * row[-1] for row in record["test"]["error"]], 2) in text

    make(tmp_path, None, FEW, ALL)
    assert len(trained.names) == 3, "records are kept"
    (tmp_path / f"{FEW}.json").unlink()
    make(tmp_path, None, FEW, ALL)
    assert trained.names[3:] == [FIRST, FEW], "what is missing is made again, from a first phase made again"
    stale = json.loads((tmp_path / f"{FEW}.json").read_text())
    del stale["first_phase"]["optimiser"]["lower_rate"]
    (tmp_path / f"{FEW}.json").write_text(json.dumps(stale))
    make(tmp_path, None, FEW)
    assert len(trained.names) == 5, "a record older than a field is one with its default"
    stale["first_phase"]["optimiser"]["lr"] = 1.0
    (tmp_path / f"{FEW}.json").write_text(json.dumps(stale))
    make(tmp_path, None, FEW)
    assert trained.names[5:] == [FIRST, FEW], "a record that started from another first phase does not count"


def test_folders_keep_the_first_phase(trained: Trained, tmp_path: Path) -> None:
    make(tmp_path / "results", tmp_path / "runs", FIRST)
    assert trained.names == [FIRST]
    assert [path.name for path in (tmp_path / "results").glob("*.json")] == [f"{FIRST}.json"]
    once = {name: w.detach().clone() for name, w in trained.weights[FIRST].items()}
    make(tmp_path / "results", tmp_path / "runs", FEW)
    assert trained.names == [FIRST, FIRST, FEW], "asked for again, to read its weights"
    assert all(torch.equal(w, once[name]) for name, w in trained.weights[FIRST].items()), "and not trained again"
    assert (tmp_path / "runs" / FEW / "seed-1" / "model.safetensors").exists()


def test_a_baseline_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(tmp_path, None, "mlp-texture-mnist-1-1k")
    assert "FC MLP" in text
    assert "89.0 ± 0.2" in text
    monkeypatch.setattr(table2, "run_baseline", lambda config: pytest.fail("its record is there"))
    assert make(tmp_path, None, "mlp-texture-mnist-1-1k") == text
    path = tmp_path / "mlp-texture-mnist-1-1k.json"
    older = json.loads(path.read_text())
    del older["config"]["optimiser"]["lower_rate"], older["config"]["permuted"]
    path.write_text(json.dumps(older))
    assert make(tmp_path, None, "mlp-texture-mnist-1-1k") == text, "a record older than a field is one with its default"


def test_rows_must_name_something(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows=\['tager'\] name nothing of Table 2: choose from tagger, baselines"):
        make(tmp_path, None, "tager")
    with pytest.raises(ValueError, match=r"rows=\['permutd'\] name nothing"):
        make(tmp_path, None, "mlp-texture-mnist-1-1k", "permutd")
    assert not list(tmp_path.iterdir()), "it says so before it trains"
