"""Data of one's own: what is found out, what is remembered, and that staying on the disk changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import taggernet as tn
from taggernet.cli import main
from taggernet.config.run import Config
from taggernet.data import files
from taggernet.data.lazy import open_data, survey
from taggernet.training.auto_config import config_for, look
from taggernet.training.datasets import own_rows, source, split, training_set
from taggernet.training.sources import Part
from taggernet.training.streaming import StreamedSource

pytestmark = pytest.mark.usefixtures("without_typecheck")


def sensors(n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Two steps of different heights around 100, which of the two first, and a label for some."""
    rng = np.random.default_rng(seed)
    cut, kind = rng.integers(2, 8, n), rng.integers(0, 2, n)
    first = np.arange(10) < cut[:, None]
    x = np.where(first == kind[:, None], 90.0, 120.0) + rng.normal(0, 2, (n, 10))
    classes = np.where(np.arange(n) % 3 == 0, kind, -1)
    return {"x": x.reshape(n, 5, 2), "groups": (2 - first).reshape(n, 5, 2), "classes": classes}


def write(path: Path, arrays: dict[str, Any]) -> Path:
    if path.suffix == ".npy":
        np.save(path, arrays["x"])
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array)
    return path


def short(config: Config, **optimiser: Any) -> Config:
    return replace(
        config,
        optimiser=replace(config.optimiser, **{"updates": 6, "batch": 8, "warmup": 0} | optimiser),
        runtime=replace(
            config.runtime, progress=False, device="cpu", evaluate_every=0, checkpoint_every=2, log_every=1
        ),
    )


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
    assert {"cost", "ami", "error"} <= set(run.figures)
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


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
def test_left_on_the_disk_gives_the_same_batches_and_models(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = sensors() if ending != ".npy" else {"x": sensors()["x"]}
    path = write(tmp_path / f"my{ending}", arrays)
    config = replace(short(config_for(path)), seeds=2)
    whole, values = tn.train(config), survey(open_data(path))
    monkeypatch.setattr(files, "MAPPED", 0)
    data = open_data(path)
    assert not isinstance(data.x, np.ndarray) or isinstance(data.x, np.memmap)
    assert survey(data)[1:] == pytest.approx(values[1:])
    disk = replace(config, runtime=replace(config.runtime, resident=0))
    part = Part.of(8)
    train = training_set(disk)
    assert isinstance(source(disk, torch.device("cpu"), [0, 1], part, train), StreamedSource)
    mapped = tn.train(disk)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(mapped.weights[name], weight, rtol=0, atol=1e-6)


def test_an_interrupted_run_from_the_disk_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAPPED", 0)
    config = short(config_for(write(tmp_path / "my.npz", sensors())))
    config = replace(config, runtime=replace(config.runtime, resident=0))
    straight = tn.train(config, tmp_path / "straight")

    def stop(*args: Any) -> Any:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        from taggernet.training.step import Update

        advance = Update.advance
        patch.setattr(Update, "advance", lambda self, n: stop() if self.state.step == 5 else advance(self, n))
        with pytest.raises(RuntimeError, match="power cut"):
            tn.train(config, tmp_path / "cut")
    again = tn.train(config, tmp_path / "cut")
    assert all(torch.equal(again.weights[name], weight) for name, weight in straight.weights.items())


def test_splits_are_apart_and_whole(tmp_path: Path) -> None:
    config = config_for(write(tmp_path / "my.npz", sensors())).data
    parts = [own_rows(config, name).rows for name in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [48, 6, 6]
    assert sorted(np.concatenate(parts)) == list(range(60))
    held = split(config, "test")
    np.testing.assert_array_equal(held.x, sensors()["x"][parts[2]].astype(np.float32))


def test_unlabelled_scenes_do_not_count_as_errors(tmp_path: Path) -> None:
    arrays = sensors()
    scenes = tn.data.Scenes.of(**arrays)
    config = short(config_for(scenes))
    model = tn.train(config, scenes=scenes).model()
    from taggernet.evaluation import evaluate_weights, stacked

    both = [evaluate_weights(model, stacked([model]), part, batch=1000) for part in (scenes, scenes[scenes.labelled])]
    assert both[0].error is not None
    assert both[0].error.shape[-1] == scenes.labelled.sum() == 20
    without = replace(scenes, classes=np.full(60, -1))
    assert evaluate_weights(model, stacked([model]), without).error is None


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


def test_a_damaged_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAPPED", 0)
    path = write(tmp_path / "my.npy", sensors())
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cut short"):
        look(path)


def test_scenes_in_memory_are_not_kept(tmp_path: Path) -> None:
    scenes = tn.data.Scenes.of(sensors()["x"])
    tn.train(short(config_for(scenes)), tmp_path / "run", scenes)
    with pytest.raises(ValueError, match="does not keep"):
        tn.evaluate(tmp_path / "run")
