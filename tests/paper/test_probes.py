"""Probes of what a model knows: features come from the right group, and a probe reads what is there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from paper.__main__ import main
from paper.probes import group_features, probe_levels
from taggernet.config.model import TaggerConfig
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return load_split(DataConfig(name="texture-mnist-2", digits="fixture", train=60), "train")


@pytest.fixture(scope="module")
def model() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(12, 8, 6), mean=0.5))


def test_features_are_those_of_the_group_that_wins_the_digit(model: Tagger, scenes: Scenes) -> None:
    """Against a plain loop over scenes and digits."""
    found = group_features(model, scenes, groups=3, iterations=2, batch=60)
    assert {name: value.shape[1] for name, value in found.items()} == {
        "m": 784, "z": 784, "m z": 784, "level 0": 12, "level 1": 8, "level 2": 6
    }  # fmt: skip
    x = torch.from_numpy(scenes.x).flatten(1)
    with torch.no_grad():
        *_, last = model.states(x, 3, 2, Key.of(0, x.device).fold("probes"))
    assert scenes.groups is not None
    true = scenes.groups.reshape(60, -1)
    for i in range(60):
        labels = last.m[i].argmax(0).numpy()
        for digit in range(2):
            counts = np.bincount(labels[true[i] == 2 + digit], minlength=3)
            torch.testing.assert_close(found["m"][2 * i + digit], last.m[i, counts.argmax()])
    assert last.top is not None
    assert set(found["level 2"].sum(1).round(decimals=3).tolist()) == {1.0}, "the topmost level is a softmax"


def test_a_probe_reads_masks_that_tell_the_digit(
    model: Tagger, scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scenes.classes is not None
    told = torch.nn.functional.one_hot(torch.from_numpy(scenes.classes.reshape(-1).astype(np.int64)), 10).float()
    monkeypatch.setattr("paper.probes.group_features", lambda *_, **__: {"m": told, "z": torch.rand(len(told), 10)})
    errors = probe_levels(model, scenes, scenes)
    assert errors["m"] == 0
    assert errors["z"] > 0.2


def test_the_command(model: Tagger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(tmp_path / "model")
    out = tmp_path / "made" / "probes.json"
    options = [
        "--model",
        str(tmp_path / "model"),
        "--quick",
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    assert main(["probes", *options]) == 0
    record = json.loads(out.read_text())
    assert list(record["levels"]) == ["m", "z", "m z", "level 0", "level 1", "level 2"]
    assert "read from level 2" in capsys.readouterr().out
