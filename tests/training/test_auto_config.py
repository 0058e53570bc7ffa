"""Data of one's own: what is found out, what is remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import sensors, short, write

import taggernet as tn
from taggernet.cli import main
from taggernet.data import files
from taggernet.training.auto_config import config_for, look

pytestmark = pytest.mark.usefixtures("without_typecheck")


def test_real_data_are_scaled_and_the_model_remembers(tmp_path: Path) -> None:
    arrays = sensors()
    config = config_for(write(tmp_path / "my.npz", arrays))
    model = config.model
    assert (model.kind, model.shape, model.classes) == ("real", (5, 2), 2)
    assert model.offset == pytest.approx(arrays["x"].mean())
    assert model.scale == pytest.approx(arrays["x"].std())
    assert (config.groups, config.class_cost > 0) == (2, True)
    run = tn.train(short(config), tmp_path / "run")
    loaded = tn.Tagger.from_pretrained(tmp_path / "run")
    assert (loaded.config.offset, loaded.config.scale) == (model.offset, model.scale)
    assert 50 < loaded.group(arrays["x"]).denoised.mean() < 150  # in the user's units
    assert {"cost", "ami", "error"} <= set(run.metrics)
    assert {"cost", "ami", "error"} <= set(tn.evaluate(tmp_path / "run")["figures"])


@pytest.mark.parametrize(
    ("x", "kind", "found", "units"),
    [
        (np.eye(30), None, "binary", (0.0, 1.0)),
        (np.eye(30), "real", "real", (0.0, 1.0)),
        (np.arange(60).reshape(30, 2) % 256, None, "real", (29.5, np.arange(60).std())),
        (np.random.default_rng(0).random((30, 4)), None, "real", (0.0, 1.0)),
        (np.eye(30, dtype=bool), None, "binary", (0.0, 1.0)),
    ],
)
def test_the_kind_is_found_out_or_given(x: Any, kind: str | None, found: str, units: tuple[float, float]) -> None:
    model = config_for(tn.data.Scenes.of(x), kind).model
    assert model.kind == found
    assert (model.offset, model.scale) == pytest.approx(units)


def test_sizes_follow_the_data() -> None:
    few = config_for(tn.data.Scenes.of(np.random.default_rng(0).random((40, 3))))
    many = config_for(tn.data.Scenes.of(np.random.default_rng(0).random((9000, 100))))
    assert max(few.model.widths) < 20 < 400 < max(many.model.widths)
    assert (few.optimiser.batch, many.optimiser.batch) == (10, 100)
    assert few.optimiser.updates < many.optimiser.updates


def test_the_command_says_what_it_found_and_evaluates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = write(tmp_path / "my.h5", sensors()), tmp_path / "run"
    options = ["--updates", "4", "--batch", "8", "--device", "cpu", "--no-progress", "--widths", "16", "8"]
    assert main(["train", str(path), "--out", str(run), *options]) == 0
    shown = capsys.readouterr().out
    assert "60 scenes of shape (5, 2), real" in shown
    assert "20 scenes labelled" in shown
    assert json.loads((run / "config.json").read_text())["model"]["widths"] == [16, 8]
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert "error" in capsys.readouterr().out


def test_the_command_takes_the_kind(tmp_path: Path) -> None:
    path = write(tmp_path / "my.npz", {"x": np.random.default_rng(0).integers(0, 2, (40, 6))})
    options = ["--updates", "2", "--batch", "8", "--device", "cpu", "--no-progress", "--kind", "real"]
    assert main(["train", str(path), "--out", str(tmp_path / "run"), *options]) == 0
    model = json.loads((tmp_path / "run" / "config.json").read_text())["model"]
    assert (model["kind"], model["norm"]) == ("real", "layer")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.zeros((30, 4))}, "nothing to group"),
        ({"x": np.eye(5)}, "too few"),
        ({"x": np.full((30, 4), np.nan)}, "NaN"),
        ({"x": np.eye(30), "classes": np.zeros(30, int)}, "class 0 alone"),
        ({"x": np.eye(30), "classes": np.ones((30, 3), int)}, "one or two classes"),
        ({"x": np.eye(30), "groups": np.ones((30, 3), int)}, "groups"),
        ({"x": np.eye(30), "groups": np.full((30, 30), -1)}, "groups holds -1"),
        ({"x": np.arange(30)}, "expected \\(n, ...\\)"),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_bad_files_get_one_sentence(
    arrays: dict[str, Any], words: str, mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if mapped:
        monkeypatch.setattr(files, "MAPPED", 0)
    path = write(tmp_path / "my.npz", arrays)
    with pytest.raises((ValueError, TypeError), match=words):
        look(path)
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "my.npz" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_scenes_in_memory_are_not_kept(tmp_path: Path) -> None:
    scenes = tn.data.Scenes.of(sensors()["x"])
    tn.train(short(config_for(scenes)), tmp_path / "run", scenes)
    with pytest.raises(ValueError, match="does not keep"):
        tn.evaluate(tmp_path / "run")
