"""Data with channels from a file to a trained model, wherever the channels are; the parts that read them on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_files import short, write

import taggernet as tn
from taggernet.cli import main
from taggernet.data import files
from taggernet.data.lazy import open_data
from taggernet.data.scenes import channels_axis_of, load
from taggernet.estimators import TaggerGrouper
from taggernet.evaluation import stack_weights
from taggernet.export import export, session
from taggernet.grouping_report import grouping_report
from taggernet.training.auto_config import config_for, look
from taggernet.training.datasets import load_split
from taggernet.training.validation import check_scenes
from taggernet.viz.figures import grouping_figure

pytestmark = pytest.mark.usefixtures("without_typecheck")
N, H, W = 40, 4, 6


def colours(n: int = N) -> dict[str, Any]:
    """Two halves of random colours, x (n, H, W, 3) from 0 to 1."""
    rng = np.random.default_rng(0)
    left = np.arange(W) < rng.integers(2, W - 1, n)[:, None]
    groups = np.broadcast_to((2 - left)[:, None], (n, H, W))
    x = rng.random((n, 2, 3))[np.arange(n)[:, None, None], groups - 1]
    return {"x": x.astype(np.float32), "groups": groups}


@pytest.mark.parametrize(
    ("shape", "groups", "given", "found"),
    [
        ((9, 8, 8, 3), None, None, "last"),
        ((9, 3, 8, 8), None, None, "first"),
        ((9, 3, 8, 3), None, None, "last"),
        ((9, 8, 8), None, None, "none"),
        ((9, 8, 8, 4), None, None, "none"),
        ((9, 3, 8), None, None, "none"),
        ((9, 8, 8, 3), (9, 8, 8, 3), None, "none"),
        ((9, 8, 4), (9, 8), None, "last"),
        ((9, 2, 8, 8), (9, 8, 8), None, "first"),
        ((9, 8, 8, 3), None, "none", "none"),
        ((9, 8, 5), None, "last", "last"),
    ],
)
def test_where_the_channels_are(shape: Any, groups: Any, given: str | None, found: str) -> None:
    assert channels_axis_of(shape, groups, given) == found


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("ending", [".npz", ".npy", ".h5"])
def test_files_give_the_same_scenes_with_channels_first_or_last(
    ending: str, mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mapped:
        monkeypatch.setattr(files, "MAPPED", 0)
    arrays = colours()
    last = write(tmp_path / f"last{ending}", arrays)
    first = write(tmp_path / f"first{ending}", arrays | {"x": np.moveaxis(arrays["x"], -1, 1)})
    for path in (last, first):
        data = open_data(path)
        assert (data.shape, data.channels, data.elements) == ((H, W), 3, H * W * 3)
        scenes = data.scenes(np.array([5, 0]))
        np.testing.assert_array_equal(scenes.x, arrays["x"][[5, 0]])
        assert (scenes.shape, scenes.channels, scenes.kind) == ((H, W), 3, "real")


def test_saved_scenes_keep_their_channels(tmp_path: Path) -> None:
    scenes = tn.data.Scenes.of(**colours())
    scenes.save(tmp_path / "scenes.npz")
    again = load(tmp_path / "scenes.npz")
    assert (again.channels, again.shape, again[3:5].channels) == (3, (H, W), 3)


@pytest.mark.parametrize("axis", ["first", "last"])
def test_from_a_file_to_groups(axis: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = colours()
    x = np.moveaxis(arrays["x"], -1, 1) if axis == "first" else arrays["x"]
    path, run = write(tmp_path / "my.npz", arrays | {"x": x}), tmp_path / "run"
    options = ["--updates", "4", "--batch", "8", "--device", "cpu", "--no-progress", "--widths", "8", "4"]
    conv = ["--mapping", "conv", "--conv-channels", "4", "4"]
    assert main(["train", str(path), "--out", str(run), *options, *conv]) == 0
    assert f"shape (4, 6) with 3 channels ({axis}), which share a mask" in capsys.readouterr().out
    model = tn.Tagger.from_pretrained(run)
    assert (model.config.channels, model.config.channels_first) == (3, axis == "first")
    out = model.group(x[:5])
    assert out.masks.shape == (5, model.groups, H, W)
    assert out.reconstructions.shape == (5, model.groups, *x.shape[1:])
    assert main(["evaluate", str(run)]) == 0
    grouped = tmp_path / "grouped.npz"
    assert main(["group", str(run), str(path), "--out", str(grouped), "--starts", "1"]) == 0
    with np.load(grouped) as found:
        np.testing.assert_array_equal(found["labels"][:5], out.labels)
        np.testing.assert_allclose(found["reconstructions"][:5], out.reconstructions, rtol=1e-4, atol=1e-5)


def test_an_axis_can_be_named_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "my.npy", colours())
    options = ["--updates", "2", "--batch", "8", "--device", "cpu", "--no-progress", "--widths", "8", "4"]
    assert main(["train", str(path), "--out", str(tmp_path / "run"), "--channels-axis", "none", *options]) == 0
    assert "shape (4, 6, 3), real" in capsys.readouterr().out
    assert tn.Tagger.from_pretrained(tmp_path / "run").config.shape == (H, W, 3)


def test_left_on_the_disk_and_permuted_gives_the_same_models(tmp_path: Path) -> None:
    path = write(tmp_path / "my.npy", {"x": np.moveaxis(colours()["x"], -1, 1)})
    config = short(config_for(path), updates=3)
    config = replace(config, data=replace(config.data, permuted=True), model=replace(config.model, widths=(8, 4)))
    whole = tn.train(config)
    disk = tn.train(replace(config, runtime=replace(config.runtime, resident=0)))
    for name, weight in whole.weights.items():
        torch.testing.assert_close(disk.weights[name], weight, rtol=0, atol=1e-6)


def test_a_permutation_moves_positions_with_their_channels(tmp_path: Path) -> None:
    path = write(tmp_path / "my.npz", colours())
    data = replace(config_for(path).data, permuted=True)
    moved, plain = load_split(data, "train"), load_split(replace(data, permuted=False), "train")
    assert not np.array_equal(moved.x, plain.x)
    for i in range(3):
        pixels = {(*x, g) for x, g in zip(plain.x[i].reshape(-1, 3).tolist(), plain.groups[i].flat, strict=True)}
        assert {
            (*x, g) for x, g in zip(moved.x[i].reshape(-1, 3).tolist(), moved.groups[i].flat, strict=True)
        } == pixels


def test_states_are_recognised_and_group(tmp_path: Path) -> None:
    """A DNA-like file: the first half of a scene from one pair of letters, the second from the other."""
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 2, (N, 12)) + 2 * (np.arange(12) >= 6)
    path = write(
        tmp_path / "dna.npz", {"x": np.eye(4)[letters], "groups": np.broadcast_to(1 + (np.arange(12) >= 6), (N, 12))}
    )
    found = look(path)
    assert (found.survey.kind, found.data.channels, found.data.shape) == ("categorical", 4, (12,))
    config = short(config_for(path), updates=3)
    assert (config.model.kind, config.model.mean, config.model.channels) == ("categorical", 0.25, 4)
    model = tn.train(replace(config, model=replace(config.model, widths=(8, 4)))).model()
    out = model.group(np.eye(4)[letters][:3])
    np.testing.assert_allclose(out.reconstructions.sum(-1), 1, rtol=1e-5)
    assert config_for(path, kind="binary").model.kind == "binary"


def models() -> list[tn.Tagger]:
    torch.manual_seed(0)
    options: list[dict[str, Any]] = [
        {"kind": "real", "offset": 0.5, "scale": 2.0},
        {"kind": "binary"},
        {"kind": "categorical"},
        {"kind": "real", "mapping": "conv", "conv_channels": (4, 6), "patch": 2},
    ]
    base = {"shape": (H, W), "widths": (8, 4), "norm": "layer", "channels": 3, "norm_eps": 1e-3}
    found = [tn.Tagger(tn.TaggerConfig(**(base | each)), groups=2, iterations=2) for each in options]
    for model in found:
        with torch.no_grad():  # a fresh combinator hands on nothing
            for name, weight in model.mapping.named_parameters():
                weight += 0.3 * torch.randn_like(weight) * name.endswith(".a")
    return found


@pytest.mark.parametrize("number", [2, 3], ids=["categorical", "conv"])
def test_onnxruntime_agrees(number: int, tmp_path: Path) -> None:
    model = models()[number]
    x = colours(3)["x"]
    if model.config.kind != "real":
        x = np.eye(3, dtype=np.float32)[x.argmax(-1)]
    out = model.group(x, 3)
    whole, _ = (session(path, 1) for path in export(model, tmp_path / "model.onnx"))
    start = model.start(3, 3, tn.Key.of(0).fold("masks")).m_pre.numpy()
    masks, z = whole.run(None, {"x": x.reshape(3, -1), "start": start})
    np.testing.assert_allclose(masks.reshape(out.masks.shape), out.masks, rtol=0, atol=1e-4)
    np.testing.assert_allclose(z.reshape(out.reconstructions.shape), out.reconstructions, rtol=0, atol=1e-3)


def test_a_report_and_a_figure_of_each_kind(tmp_path: Path) -> None:
    for model in models():
        x = colours(6)["x"] if model.config.kind == "real" else np.eye(3)[colours(6)["x"].argmax(-1)]
        scenes = tn.data.Scenes.of(x, kind=model.config.kind)
        report = grouping_report(model, stack_weights([model]), scenes, groups=2, iterations=2)
        assert 0 <= report.confidence[0] <= 1
        grouping_figure(scenes, model.group(scenes.x), tmp_path / model.config.kind)
        assert (tmp_path / f"{model.config.kind}.png").stat().st_size > 1000


def test_an_estimator_shares_masks() -> None:
    rows = colours()["x"].reshape(N, -1)
    grouper = TaggerGrouper(2, widths=(8, 4), updates=3, batch_size=10, channels=3).fit(rows)
    assert grouper.transform(rows).shape == (N, 2 * H * W)
    assert grouper.get_feature_names_out().shape == (2 * H * W,)
    assert grouper.group(rows).reconstructions.shape == (N, 2, H * W, 3)
    with pytest.raises(ValueError, match=r"72 features, which do not divide into positions of channels=5"):
        TaggerGrouper(channels=5).fit(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.zeros((3, 8)), "channels_axis": "last"}, r"shape \(3, 8\), which leaves no position: give"),
        ({"x": np.zeros((3, 8, 2)), "channels_axis": "middle"}, r"channels_axis='middle' is not known"),
        ({"x": np.zeros((3, 8, 2)), "kind": "categorical"}, r"is not one-hot: give one channel per state"),
        ({"x": np.ones((3, 8, 2)), "kind": "categorical", "channels_axis": "last"}, r"is not one-hot"),
        ({"x": np.zeros((3, 8, 8, 3)), "groups": np.ones((3, 8, 7), int)}, r"groups has shape \(3, 8, 7\), but x has"),
    ],
)
def test_bad_channels_get_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tn.data.Scenes.of(**arguments)


def test_a_model_of_other_channels_is_refused() -> None:
    model = tn.TaggerConfig(shape=(8, 8), kind="real")
    with pytest.raises(ValueError, match=r"3 channels at each of \(8, 8\) positions, but the model has channels=1"):
        check_scenes(model, (8, 8), "real", 3)
    with pytest.raises(ValueError, match=r"categorical, but the scenes are not one-hot: train with kind"):
        check_scenes(replace(model, kind="categorical", channels=3), (8, 8), "real", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "categorical"}, r"needs a channel for each state, but channels=1: set channels"),
        ({"kind": "categorical", "channels": 4, "noise": 0.75}, r"noise=0.75 is out of range: give a number from 0 to"),
        ({"channels": 0}, r"channels=0 is out of range: give an integer from 1 to"),
    ],
)
def test_a_model_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tn.TaggerConfig(**options)
