"""From a trained run to a shipped model, and the shipped models themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from paper.shipping import LIMITS, VERSIONS, Ship, ship
from taggernet import pretrained
from taggernet.config.run import DataConfig
from taggernet.demo import held_out
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import read_json, read_tensors
from taggernet.model_io import CARD, WEIGHTS, read_card
from taggernet.recipes import RECIPES, recipe
from taggernet.tagger import Tagger
from taggernet.training import train
from taggernet.training.datasets import load_split

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, unchecked: Callable[[], AbstractContextManager[None]]) -> Path:
    """A short run of two seeds."""
    folder = tmp_path_factory.mktemp("shipping") / "run"
    config = recipe("small")
    config = replace(
        config,
        model=replace(config.model, widths=(32, 16)),
        data=replace(config.data, test=100),
        optimiser=replace(config.optimiser, updates=5),
        runtime=replace(config.runtime, device="cpu", progress=False, tensorboard=False, evaluate_every=0),
        start_from="",
        seeds=2,
    )
    with unchecked():
        train(config, folder)
    return folder


@pytest.mark.parametrize("bits", [16, 8])
def test_the_card_holds_the_figures_of_the_stored_weights(bits: Literal[16, 8], run: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text("{}")
    options = Ship(run / "seed-1", "mine", record=record, to=tmp_path / "weights", bits=bits, device="cpu")
    folder = ship(options)
    assert folder == tmp_path / "weights" / "mine"
    assert sorted(p.name for p in folder.parent.iterdir()) == ["mine"], "nothing half made is left behind"
    assert sorted(p.name for p in folder.iterdir()) == [CARD, WEIGHTS]
    stored = read_tensors(folder / WEIGHTS)
    assert {t.dtype for t in stored.values() if t.numel() > 1000} == {torch.float16 if bits == 16 else torch.int8}
    card = read_json(folder / CARD)["card"]
    assert (card["name"], card["recipe"], card["seed"]) == ("mine", "small", 1)
    assert card["date"] == np.datetime64("today").astype(str)
    assert {"taggernet", "commit", "python", "torch", "numpy"} <= set(card["versions"])
    assert card["configuration"]["optimiser"]["updates"] == 5
    assert card["record"].endswith("record.json")
    assert str(tmp_path) not in json.dumps(card)
    model = Tagger.load(folder)
    scenes = load_split(DataConfig(**card["data"]), "test")
    assert len(scenes) == card["test"]["scenes"] == 100
    found = evaluate_weights(model, stack_weights([model]), scenes, groups=3, iterations=5, batch=100).metrics()
    for name in ("cost", "ami", "ami_arithmetic", "ari"):
        np.testing.assert_allclose(card["test"]["figures"][name], found[name][0], atol=1e-5)
    assert card["test"]["weights"] == ("float16" if bits == 16 else "int8")


def test_a_shipped_model_is_replaced_only_on_request(run: Path, tmp_path: Path) -> None:
    options = Ship(run / "seed-0", "mine", to=tmp_path, test=10, device="cpu")
    folder = ship(options)
    before = (folder / WEIGHTS).read_bytes()
    with pytest.raises(FileExistsError, match=r"exists: choose another --name, or add --overwrite"):
        ship(replace(options, run=run / "seed-1"))
    assert (folder / WEIGHTS).read_bytes() == before
    ship(replace(options, run=run / "seed-1", overwrite=True))
    assert (folder / WEIGHTS).read_bytes() != before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../elsewhere"}, "is not a name"),
        ({"record": Path("nowhere.json")}, "the record nowhere.json does not exist"),
        ({"run": Path("no/such/place")}, "does not exist"),
    ],
)
def test_a_mistake_is_named_and_leaves_nothing(changes: dict[str, Any], words: str, run: Path, tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError), match=words):
        ship(replace(Ship(run, "mine", to=tmp_path / "weights"), **changes))
    assert not (tmp_path / "weights").exists()


def test_a_model_that_is_too_large_is_refused(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "mine", 0.001)
    with pytest.raises(ValueError, match=r"more than 0\.001 MB: train one with smaller widths"):
        ship(Ship(run / "seed-0", "mine", to=tmp_path, device="cpu"))
    assert not list(tmp_path.iterdir())


def test_a_wheel_contains_what_is_shipped(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, source)
    Tagger(recipe("small").model).save(source / "src" / "taggernet" / "weights" / "another", bits=16)
    code = f"import hatchling.build as b; print(b.build_wheel({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        for name in ("another", *pretrained.shipped()):
            for file in (WEIGHTS, CARD):
                there = source / "src" / "taggernet" / "weights" / name / file
                assert content.read(f"taggernet/weights/{name}/{file}") == there.read_bytes()


# --- the models in this repository --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LIMITS if name in pretrained.shipped()])
def test_a_shipped_model_is_as_good_and_as_small_as_its_card_says(name: str) -> None:
    folder = pretrained.locate(name)
    assert folder == pretrained.SHIPPED / name
    assert (folder / WEIGHTS).stat().st_size <= LIMITS[name] * 1e6
    card = read_card(folder)
    assert {"recipe", "data", "configuration", "test", "date", "versions"} <= set(card)
    assert card["recipe"] in RECIPES
    assert isinstance(card["seed"], int)
    assert all(card[with_what][part] for with_what in ("versions", "trained_with") for part in VERSIONS)
    assert (ROOT / card["record"]).is_file()
    test = card["test"]
    assert test["scenes"] == card["data"]["test"]
    assert test["weights"] == ("float16" if name == "sprites" else "int8")
    model = Tagger.from_pretrained(name)
    scenes, _ = held_out(card["data"], 40 if name == "sprites" else 200)
    found = evaluate_weights(
        model,
        stack_weights([model]),
        scenes,
        groups=test["groups"],
        iterations=test["iterations"],
        batch=test["batch"],
    ).metrics()
    few = {"cost": 0.1, "ami": 0.06, "error": 0.06}  # what 200 scenes of few digits may differ by
    assert ("error" in found) == (name == "texture-mnist-2")
    for figure in found.keys() & few.keys():
        assert abs(found[figure][0][-1] - test["figures"][figure][-1]) < few[figure], figure
