"""A finished run is evaluated with its own settings, or with others."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from toys import records, toy

import taggernet
from taggernet import run_evaluation
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights
from taggernet.fileio import read_json
from taggernet.run_evaluation import _data, _Subject, _subject
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split
from taggernet.training.finetune import start_weights
from taggernet.training.loop import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two seeds."""
    return taggernet.train(toy(seeds=2), tmp_path_factory.mktemp("run") / "run")


def folder(run: Run) -> Path:
    assert run.folder is not None
    return run.folder


def test_the_validation_split_gives_what_training_recorded(run: Run) -> None:
    found = taggernet.evaluate(folder(run), split="valid", device="cpu")
    assert (found["groups"], found["iterations"], found["objects"]) == (3, 2, 2)
    assert found["seeds"] == ["seed-0", "seed-1"]
    assert json.loads(json.dumps(found["config"])) == read_json(folder(run) / "config.json")
    last = records(folder(run))[-1]["valid"]
    assert set(found["figures"]) == set(last)
    for name, values in found["figures"].items():
        np.testing.assert_allclose(values, last[name], rtol=1e-5, atol=1e-6)
    assert taggernet.evaluate(folder(run), device="cpu")["figures"] != found["figures"], "the test split is another"


def test_other_groups_iterations_and_objects(run: Run) -> None:
    found = taggernet.evaluate(folder(run), groups=2, iterations=3, objects=1, device="cpu")
    assert (found["groups"], found["iterations"], found["objects"]) == (2, 3, 1)
    scenes: Scenes = load_split(replace(run.config.data, objects=1), "test")
    model = Tagger(run.config.model)
    expected = evaluate_weights(model, run.weights, scenes, groups=2, iterations=3, batch=10).metrics()
    for name, values in expected.items():
        np.testing.assert_allclose(found["figures"][name], values, rtol=1e-5, atol=1e-6)


def test_a_folder_without_a_finished_model_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((folder(run) / "config.json").read_bytes())
    with pytest.raises(ValueError, match="holds no finished model: run 'taggernet train' on it until it ends"):
        taggernet.evaluate(tmp_path, device="cpu")


def test_a_number_of_objects_takes_the_place_of_a_random_one() -> None:
    random = DataConfig(objects=5, min_objects=1)
    found = _data(_Subject("any", [], random), "any", None, 3)
    assert (found.objects, found.min_objects) == (3, 0)
    pieces = _data(_Subject("any", [], DataConfig(name="tetrominoes", size=14)), "any", None, 2)
    assert pieces.objects == 2
    with pytest.raises(ValueError, match="texture-mnist-1 scenes have no such choice"):
        _data(_Subject("any", [], DataConfig(name="texture-mnist-1")), "any", None, 2)


@pytest.mark.parametrize("name", ["groups", "iterations", "objects"])
def test_numbers_below_one_are_refused(name: str, run: Run) -> None:
    with pytest.raises(ValueError, match=f"{name}=0"):
        taggernet.evaluate(folder(run), device="cpu", **{name: 0})


def test_a_split_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="split='tests' is not known: choose one of 'train', 'valid', 'test', 'all'"):
        taggernet.evaluate(folder(run), split="tests", device="cpu")
    with pytest.raises(ValueError, match="split='all' was given, but shapes has splits of its own"):
        taggernet.evaluate(folder(run), data="shapes", split="all", device="cpu")
    load_split(run.config.data, "test")[:9].save(tmp_path / "nine.npz")
    with pytest.raises(ValueError, match=r"nine\.npz has too few scenes for a test split: set split to 'all'"):
        taggernet.evaluate(folder(run), data=tmp_path / "nine.npz", split="test", device="cpu")


def test_a_built_in_data_set_may_be_named(run: Run) -> None:
    found = taggernet.evaluate(folder(run), data="shapes", device="cpu")
    assert (found["split"], found["figures"]) == ("test", taggernet.evaluate(folder(run), device="cpu")["figures"])


def test_one_model_by_its_folder_is_one_seed_of_the_run(run: Run, tmp_path: Path) -> None:
    """Also where the model was copied out of its run: then only --data can say what to evaluate on."""
    both = taggernet.evaluate(folder(run), device="cpu")
    one = taggernet.evaluate(folder(run) / "seed-1", device="cpu")
    assert one["seeds"] == ["seed-1"]
    np.testing.assert_allclose(one["figures"]["ami"][0], both["figures"]["ami"][1], rtol=1e-5, atol=1e-6)
    alone = Tagger.load(folder(run) / "seed-1").save(tmp_path / "alone")
    with pytest.raises(ValueError, match="alone does not say which data it was trained on: add --data FILE"):
        taggernet.evaluate(alone, device="cpu")
    load_split(run.config.data, "test").save(tmp_path / "file.npz")
    found = taggernet.evaluate(alone, data=tmp_path / "file.npz", device="cpu")
    assert (found["groups"], found["iterations"], found["split"]) == (3, 2, "all")
    np.testing.assert_allclose(found["figures"]["ami"], one["figures"]["ami"], rtol=1e-5, atol=1e-6)


def test_a_shipped_model_is_evaluated_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the split that its card describes, here cut short."""
    load = run_evaluation.load_split
    monkeypatch.setattr(run_evaluation, "load_split", lambda *of: load(*of)[:50])
    found = taggernet.evaluate("shapes", device="cpu")
    assert (found["recipe"], found["groups"], found["iterations"]) == ("shapes-any-refined", 6, 8)
    assert found["figures"]["ami"][0][-1] > 0.9


def test_a_run_is_found_by_one_rule(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~ is the home folder, and the name of a shipped model comes before a folder of that name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("mine", "shapes"):
        shutil.copytree(folder(run), tmp_path / name)
    assert len(taggernet.evaluate("~/mine", device="cpu")["seeds"]) == 2
    config = replace(run.config, start_from="~/mine")
    started = start_weights(config, torch.device("cpu"))
    for name, weight in run.weights.items():
        torch.testing.assert_close(started[name], weight)
    monkeypatch.chdir(tmp_path)
    assert _subject("shapes").recipe == "shapes-any-refined"


def test_a_moved_file_is_named_with_data(tmp_path: Path) -> None:
    scenes = taggernet.data.shapes(60, 0, 2, 8, style="small")
    scenes.save(tmp_path / "mine.npz")
    config = taggernet.config_for(tmp_path / "mine.npz")
    config = replace(toy(updates=2), data=config.data, evaluation_batch=100)
    taggernet.train(config, tmp_path / "run")
    before = taggernet.evaluate(tmp_path / "run", device="cpu")["figures"]
    (tmp_path / "mine.npz").rename(tmp_path / "moved.npz")
    with pytest.raises(
        FileNotFoundError, match=r"mine\.npz does not exist: if it was moved, add --data FILE --split test"
    ):
        taggernet.evaluate(tmp_path / "run", device="cpu")
    moved = taggernet.evaluate(tmp_path / "run", data=tmp_path / "moved.npz", split="test", device="cpu")
    assert moved["figures"] == before
    whole = taggernet.evaluate(tmp_path / "run", data=tmp_path / "moved.npz", device="cpu")
    assert whole["figures"] != before, "all 60 scenes, not the 6 of the test split"
    taggernet.data.shapes(30, 0, 2, 9, style="small").save(tmp_path / "other.npz")
    words = r"the scenes have shape \(9, 9\), but the model's inputs have \(8, 8\): give scenes of that shape"
    with pytest.raises(ValueError, match=words):
        taggernet.evaluate(tmp_path / "run", data=tmp_path / "other.npz", device="cpu")
    turned = np.zeros((30, 4, 16), np.uint8)  # as many positions
    np.savez(tmp_path / "turned.npz", x=turned)
    with pytest.raises(ValueError, match=r"the scenes have shape \(4, 16\), but the model's inputs have \(8, 8\)"):
        taggernet.evaluate(tmp_path / "run", data=tmp_path / "turned.npz", device="cpu")
