"""Data of one's own: what is found out, what is remembered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_files import sensors, short, write

import taggernet as tn
from taggernet.cli import main
from taggernet.data import files
from taggernet.data.lazy import LazyArrays, survey
from taggernet.training.auto_config import config_for, look, model_for

pytestmark = pytest.mark.usefixtures("without_typecheck")


def test_real_data_are_scaled_and_the_model_remembers(tmp_path: Path) -> None:
    arrays = sensors()
    config = config_for(write(tmp_path / "my.npz", arrays))
    model = config.model
    assert (model.kind, model.shape, model.classes) == ("real", (5, 2), 2)
    assert model.offset == pytest.approx(arrays["x"].mean())
    assert model.scale == pytest.approx(arrays["x"].std())
    assert not model.offsets
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
        (np.eye(30).reshape(30, 5, 6), "real", "real", (1 / 30, np.eye(30).std())),
        (np.arange(60).reshape(30, 2, 1) % 256, None, "real", (29.5, np.arange(60).std())),
        (np.linspace(0, 1, 120).reshape(30, 2, 2), None, "real", (0.5, np.linspace(0, 1, 120).std())),
        (np.eye(30, dtype=bool), None, "binary", (0.0, 1.0)),
    ],
)
def test_the_kind_is_found_out_or_given(x: Any, kind: str | None, found: str, units: tuple[float, float]) -> None:
    model = config_for(tn.data.Scenes.of(x), kind).model
    assert model.kind == found
    assert (model.offset, model.scale) == pytest.approx(units)


def test_elements_of_a_row_are_scaled_each() -> None:
    x = np.random.default_rng(0).normal([0, 50, -3, 7], [1, 1e-3, 200, 0], (500, 4))
    model = config_for(tn.data.Scenes.of(x)).model
    assert (model.offset, model.scale) == (0.0, 1.0)
    assert model.offsets == pytest.approx(x.mean(0).tolist())
    assert model.scales == pytest.approx([*x[:, :3].std(0), 1.0], rel=1e-3)  # the last element never changes
    whole = config_for(tn.data.Scenes.of(x), scale_by="array").model
    assert (whole.offsets, whole.scale) == ((), pytest.approx(x.std()))
    plain = config_for(tn.data.Scenes.of(x), scale_by="none").model
    assert (plain.offsets, plain.offset, plain.scale) == ((), 0.0, 1.0)
    assert plain.noise == pytest.approx(model.noise * x.std(), rel=0.01)  # the noise follows the spread instead


def test_every_sensor_counts_whatever_its_unit_is() -> None:
    """Beside pascals, volts of a millionth are no constant; what rounding to float32 leaves is one."""
    random = np.random.default_rng(0)
    x = random.normal([1e5, 1e-5, 1.7e9 + 0.3, 0.1, 0], [1e3, 1e-6, 1e-3, 1e-16, 1e-16], (500, 5))
    scenes = LazyArrays(x)
    model = model_for(survey(scenes), scenes.shape, (16, 8), 0)
    assert model.scales[:2] == pytest.approx(x[:, :2].std(0).tolist())
    rows = torch.from_numpy(x.astype(np.float32))
    seen = tn.Tagger(model).units.to_model(rows)
    assert seen.std(0)[:2].tolist() == pytest.approx([1, 1], rel=0.01)
    assert seen[:, 2:].abs().max() < 0.1, "rounding is no signal"


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (np.random.default_rng(0).random((30, 6, 5, 4)), [], "the last dimension of a scene has size 4"),
        (np.random.default_rng(0).random((30, 6, 5, 4)), ["--channels-axis", "none"], None),
        (np.random.default_rng(0).random((30, 4, 6, 5)), [], "the first dimension of a scene has size 4"),
        (np.random.default_rng(0).random((30, 6, 5, 3)), [], None),
        (np.random.default_rng(0).random((30, 6, 5)), [], None),
        (np.random.default_rng(0).random((30, 4)), [], None),
        (np.random.default_rng(0).random((30, 4)) * [1, 1, 1, 0], [], "1 of 4 elements never change"),
        (np.random.default_rng(0).normal([0, 0, 1e9, 0], 1, (30, 4)), [], "1 of 4 elements change by too little"),
    ],
)
def test_hints_of_what_may_not_be_meant(
    x: Any, options: list[str], words: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "my.npy", {"x": x})
    short = ["--updates", "1", "--batch", "8", "--device", "cpu", "--no-progress", "--widths", "8", "4"]
    assert main(["train", str(path), "--out", str(tmp_path / "run"), *short, *options]) == 0
    hints = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint: ")]
    assert len(hints) == (words is not None)
    assert words is None or words in hints[0]


def test_units_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="more than 10,000: scale x yourself"):
        config_for(tn.data.Scenes.of(np.random.default_rng(0).random((20, 10_001))), scale_by="element")
    with pytest.raises(ValueError, match="x is binary and is not scaled"):
        config_for(tn.data.Scenes.of(np.eye(30)), scale_by="array")
    assert main(["train", "small", "--scale-by", "array", "--out", str(tmp_path)]) == 2
    assert "--scale-by is for a file of your own" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [(12,), (4, 3)])
def test_results_do_not_depend_on_units(shape: tuple[int, ...]) -> None:
    """x, 10 x - 2 and x / 255 train the same model; so do elements with units of their own."""
    random = np.random.default_rng(0)
    first = np.arange(12) < random.integers(3, 10, (300, 1))
    groups = (2 - first).reshape(300, *shape)
    x = (np.where(first, 0.2, 0.7) + random.normal(0, 0.05, (300, 12))).reshape(300, *shape)
    own = {"x": x, "x / 256": x / 256, "10 x - 2": 10 * x - 2, "x / 255": x / 255}
    if len(shape) == 1:
        own["each its own"] = x * 2.0 ** np.arange(-6, 6)
    found = {}
    for name, values in own.items():
        scenes = tn.data.Scenes.of(values.astype(np.float32), groups)
        config = short(config_for(scenes), updates=20, batch=20)
        config = replace(config, model=replace(config.model, widths=(16, 8)), iterations=2)
        found[name] = tn.train(config, scenes=scenes).metrics
    # Powers of two change no digit. Otherwise the last digits differ, and a young network makes more of them.
    for name in set(own) & {"x / 256", "each its own"}:
        assert found[name]["ami"][0] == pytest.approx(found["x"]["ami"][0], abs=1e-3), name
    for name in own:
        assert found[name]["cost"][0] == pytest.approx(found["x"]["cost"][0], abs=0.05), name


def test_sizes_follow_the_data() -> None:
    few = config_for(tn.data.Scenes.of(np.random.default_rng(0).random((40, 3))))
    many = config_for(tn.data.Scenes.of(np.random.default_rng(0).random((9000, 100))))
    assert (few.model.widths, many.model.widths) == ((64, 32, 16), (80, 40, 20))
    assert (few.optimiser.batch, many.optimiser.batch) == (10, 50)
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
    assert (model["kind"], model["norm"], len(model["scales"])) == ("real", "batch", 6)


@pytest.mark.parametrize(
    ("options", "units"), [("element", (0, 1, 10)), ("array", (None, None, 0)), ("none", (0, 1, 0))]
)
def test_the_command_takes_how_to_scale(options: str, units: tuple[Any, ...], tmp_path: Path) -> None:
    arrays = sensors()
    path = write(tmp_path / "my.npz", arrays)
    short = ["--updates", "2", "--batch", "8", "--device", "cpu", "--no-progress", "--scale-by", options]
    assert main(["train", str(path), "--out", str(tmp_path / "run"), *short]) == 0
    model = json.loads((tmp_path / "run" / "config.json").read_text())["model"]
    whole = [pytest.approx(arrays["x"].mean()), pytest.approx(arrays["x"].std())]
    expected = [w if u is None else u for w, u in zip(whole, units, strict=False)]
    assert [model["offset"], model["scale"], len(model["offsets"])] == [*expected, units[2]]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.zeros((30, 4))}, "nothing to group"),
        ({"x": np.eye(5)}, "too few"),
        ({"x": np.full((30, 4), np.nan)}, "NaN"),
        ({"x": np.tile(np.arange(4.0), (30, 1))}, "every scene of x is the same"),
        ({"x": np.eye(30)[:, :1]}, "one position in a scene"),
        ({"x": 5e30 * np.eye(30)}, "too large for float32: divide x by 5e\\+30"),
        ({"x": 5e-60 * np.eye(30)}, "too small for float32: divide x by 5e-60"),
        ({"x": 1e9 + np.eye(30)}, "float32 cannot tell apart: subtract the mean"),
        ({"x": 1e9 + np.eye(30).reshape(30, 5, 6)}, "float32 cannot tell apart: subtract the mean"),
        ({"x": np.eye(30), "classes": np.zeros(30, int)}, "class 0 alone"),
        ({"x": np.eye(30), "classes": np.ones((30, 3), int)}, "one or two classes"),
        ({"x": np.eye(30), "classes": np.eye(2, dtype=int)[np.arange(30) % 2]}, "every scene shows both.*argmax"),
        ({"x": np.eye(30), "classes": 100_000 * np.arange(30)}, "holds 2,900,000, expected .* without gaps"),
        ({"x": np.eye(30), "groups": np.zeros((30, 30), int)}, "groups holds 0 alone"),
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


def test_arrays_are_told_to_become_scenes() -> None:
    with pytest.raises(TypeError, match=r"data is of type ndarray: .* Scenes\.of\(x\)"):
        config_for(sensors()["x"])  # type: ignore[arg-type]
    scenes = tn.data.Scenes.of(sensors()["x"])
    with pytest.raises(TypeError, match=r"x is of type Scenes: .* of Scenes their x"):
        tn.Tagger(config_for(scenes).model).group(scenes)


def test_scenes_in_memory_are_not_kept(tmp_path: Path) -> None:
    scenes = tn.data.Scenes.of(sensors()["x"])
    tn.train(short(config_for(scenes)), tmp_path / "run", scenes)
    with pytest.raises(ValueError, match="does not keep"):
        tn.evaluate(tmp_path / "run")
