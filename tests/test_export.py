"""Exported models give onnxruntime what torch computes, for any batch, K and T."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taggernet import export as export_module
from taggernet._version import __version__
from taggernet.cli import main
from taggernet.data import Scenes, shapes
from taggernet.export import Step, export, session
from taggernet.metrics import adjusted_mutual_information
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import train
from taggernet.training.auto_config import config_for
from taggernet.training.seeds import one_seed

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("without_typecheck")  # torch.export cannot trace it

KEY = Key.of(0).fold("masks")
"""The stream from which ``Tagger.group`` draws its first masks for seed 0."""


@cache
def model_of(kind: str, norm: str, classes: int = 0, **options: Any) -> Tagger:
    """Trained a little, as the combinators of a fresh Ladder are zero, and so is all that follows.

    LayerNorm's masks are still nearly flat by then, so its weights are shaken and its masks sharpened.
    """
    scenes = Scenes.of(inputs(kind, 200), classes=np.arange(200) % 3)
    config = config_for(scenes)
    units = {"offset": 3.0, "scale": 2.0, "offsets": (), "scales": ()} if kind == "real" else {}
    config = replace(
        config,
        model=replace(config.model, shape=(4, 5), widths=(32, 16), norm=norm, classes=classes, **units, **options),
        optimiser=replace(config.optimiser, updates=60, batch=50, lr=5e-3, warmup=0),
        runtime=replace(config.runtime, progress=False, device="cpu"),
        class_cost=0.5 if classes else 0.0,
        iterations=2,
    )
    model = one_seed(config.model, train(config, scenes=scenes).weights, 0)  # its statistics are not frozen
    if norm == "layer":
        torch.manual_seed(0)
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.3 * torch.randn_like(weight)
            model.mapping.m_scale *= 4
    return model


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, unchecked: Any) -> Callable[[Tagger], tuple[Any, Any]]:
    """Sessions of a model's loop and of its step; exporting takes seconds, so each model is exported once."""

    @cache
    def sessions(model: Tagger) -> tuple[Any, Any]:
        with unchecked():
            whole, single = export(model, tmp_path_factory.mktemp("new") / "folder" / "model.onnx")
        return session(whole, 1), session(single, 1)

    return sessions


@pytest.fixture(scope="module")
def shipped() -> Tagger:
    return Tagger.from_pretrained("shapes")


def inputs(kind: str, batch: int) -> Any:
    rng = np.random.default_rng(batch)
    x = rng.normal(3, 2, (batch, 20)) if kind == "real" else rng.random((batch, 20)) > 0.6
    return x.astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "norm", "classes", "options"),
    [("binary", "layer", 0, {}), ("binary", "batch", 3, {}), ("real", "layer", 3, {}), ("real", "batch", 0, {}),
     ("real", "batch", 3, {"class_widths": (12, 6), "class_input": "masks"}),
     ("real", "batch", 3, {"class_widths": (12,), "class_input": "masks", "class_conv_channels": (4,)}),
     ("binary", "layer", 0, {"group_attention": 4, "masks": "posterior"}),
     ("real", "layer", 0, {"masks": "posterior", "start_patch": 3}),
     ("real", "layer", 3, {"masks": "posterior-result", "origin": "scene"}),
     ("binary", "layer", 0, {"masks": "posterior-result"})],
)  # fmt: skip
def test_onnxruntime_agrees(kind: str, norm: str, classes: int, options: dict[str, Any], exported: Any) -> None:
    model = model_of(kind, norm, classes, **options)
    whole, single = exported(model)
    for batch, groups, iterations in ((7, 2, 5), (100, 4, 5), (2, 5, 1), (3, 3, 8)):
        x = inputs(kind, batch)
        out = model.group(x, groups, iterations)
        assert np.ptp(out.masks) > 0.05  # a constant would prove nothing
        start = KEY.normal(batch, groups, 20).numpy()
        fed = {"x": x, "start": start} | ({} if iterations == 5 else {"iterations": np.array(iterations)})
        masks, reconstructions, *more = whole.run(None, fed)
        np.testing.assert_allclose(masks, out.masks, rtol=0, atol=1e-4)
        np.testing.assert_allclose(reconstructions, out.reconstructions, rtol=0, atol=1e-3)
        if classes:
            np.testing.assert_allclose(more[0], model.predict(x, groups, iterations), rtol=0, atol=1e-4)

        rows = model.units.to_model(torch.from_numpy(x))
        state = model.start(batch, groups, KEY, seen=rows)
        names = ("x", "z", "fed", "m")
        tensors = (rows, state.z, state.fed, state.m)
        stepped = single.run(None, {name: t.numpy() for name, t in zip(names, tensors, strict=True)})
        with torch.no_grad():
            for ours, theirs in zip(stepped, Step(model)(*tensors), strict=True):
                np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("kind", "classes", "options"), [("binary", 0, {}), ("real", 3, {"class_widths": (12, 6)})])
def test_a_frozen_model_has_its_iterations(kind: str, classes: int, options: dict[str, Any], exported: Any) -> None:
    """Single scenes and batches, T beyond the frozen ones, and the step, which is told the iteration."""
    model = deepcopy(model_of(kind, "batch", classes, **options)).freeze_statistics(inputs(kind, 300), 3, 3)
    whole, single = exported(model)
    x, start = inputs(kind, 50), model.start(50, 3, KEY)
    for iterations in (1, 3, 6):
        out = model.group(x, 3, iterations)
        assert np.ptp(out.masks) > 0.05
        fed = {"x": x, "start": start.m_pre.numpy(), "iterations": np.array(iterations)}
        masks, reconstructions, *more = whole.run(None, fed)
        np.testing.assert_allclose(masks, out.masks, rtol=0, atol=5e-4)
        np.testing.assert_allclose(reconstructions, out.reconstructions, rtol=0, atol=5e-3)
        if classes:
            np.testing.assert_allclose(more[0], model.predict(x, 3, iterations), rtol=0, atol=5e-4)
        alone = whole.run(None, {"x": x[:1], "start": fed["start"][:1], "iterations": fed["iterations"]})[0]
        np.testing.assert_allclose(alone, masks[:1], rtol=0, atol=5e-4)
    rows = model.units.to_model(torch.from_numpy(x)).numpy()
    z, fed_back, m = (t.numpy() for t in (start.z, start.fed, start.m))
    for i in range(1, 7):
        state = {"x": rows, "z": z, "fed": fed_back, "m": m, "iteration": np.array(i)}
        z, fed_back, m = single.run(None, state)[:3]
    np.testing.assert_allclose(m, masks, rtol=0, atol=5e-4)


def test_steps_make_the_loop(exported: Any) -> None:
    model = model_of("binary", "layer", 0)
    whole, single = exported(model)
    x, state = inputs("binary", 4), model.start(4, 3, KEY)
    z, fed, m = (t.numpy() for t in (state.z, state.fed, state.m))
    for _ in range(5):  # the model's own T
        z, fed, m = single.run(None, {"x": x, "z": z, "fed": fed, "m": m})
    np.testing.assert_allclose(whole.run(None, {"x": x, "start": state.m_pre.numpy()})[0], m, rtol=0, atol=1e-5)


def test_the_command_exports_and_never_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files say what a user must know of the model."""
    config = TaggerConfig((4, 5), "real", (16, 8), norm="layer", offset=3.0, scale=2.0, classes=3)
    Tagger(config, groups=2, iterations=7).save(tmp_path / "run" / "seed-0")
    target = tmp_path / "model.onnx"
    traced = cache(lambda _: trace(Tagger.load(tmp_path / "run" / "seed-0")))  # once for both times
    trace = export_module._traced_step
    monkeypatch.setattr(export_module, "_traced_step", lambda model: traced(None))
    command = ["export", str(tmp_path / "run"), "--to", str(target)]
    assert main([*command, "--iterations", "2"]) == 0
    assert "model.step.onnx" in capsys.readouterr().out
    before = target.read_bytes()
    assert main(command) == 2
    assert "model.onnx exists: choose another name for --to, or add --overwrite" in capsys.readouterr().err
    assert target.read_bytes() == before
    assert session(target, 1).get_modelmeta().custom_metadata_map["iterations"] == "2"
    assert main([*command, "--overwrite"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "model.step.onnx", "run"]
    for path in (target, tmp_path / "model.step.onnx"):
        found = session(path, 1).get_modelmeta().custom_metadata_map
        assert (found["shape"], found["kind"], found["classes"]) == ("[4, 5]", "real", "3")
        assert (found["groups"], found["iterations"]) == ("2", "7")
        assert (float(found["offset"]), float(found["scale"])) == (3.0, 2.0)
        assert found["taggernet"] == __version__


@pytest.mark.parametrize(
    ("target", "iterations", "kind", "words"),
    [
        ("model.bin", 5, ValueError, "does not end in .onnx"),
        ("file/model.onnx", 5, OSError, "file cannot be written"),
        ("model.onnx", 0, ValueError, "out of range"),
    ],
)
def test_bad_targets_get_one_sentence(
    target: str, iterations: int, kind: type[Exception], words: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(kind, match=words):
        export(model_of("binary", "layer", 0), tmp_path / target, iterations)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_onnxruntime_agrees_on_the_shipped_model(shipped: Tagger, exported: Any) -> None:
    """Trained in earnest: five iterations may carry the rounding of the first beyond 1e-4 here and there."""
    model, (whole, _) = shipped, exported(shipped)
    x = shapes(12, 0, split="test").x
    out = model.group(x, 4, 5)
    start = model.start(12, 4, KEY).m_pre.numpy()
    fed = {"x": x.reshape(12, -1).astype(np.float32), "start": start}
    masks = whole.run(None, fed | {"iterations": np.array(5)})[0].reshape(out.masks.shape)
    assert np.mean(np.abs(masks - out.masks) > 1e-4) < 0.01
    np.testing.assert_allclose(masks, out.masks, rtol=0, atol=2e-3)
    first = whole.run(None, fed | {"iterations": np.array(1)})[0]
    np.testing.assert_allclose(first.reshape(out.masks.shape), model.group(x, 4, 1).masks, rtol=0, atol=1e-5)


def test_a_start_of_zeros_is_replaced_by_a_random_one(shipped: Tagger, exported: Any) -> None:
    """Groups that start alike would stay alike for ever."""
    whole, _ = exported(shipped)
    scenes = shapes(8, split="test")
    x = scenes.x.reshape(8, -1).astype(np.float32)
    masks = whole.run(["masks"], {"x": x, "start": np.zeros((8, 4, 400), np.float32)})[0]
    assert scenes.groups is not None
    ami = adjusted_mutual_information(scenes.groups.reshape(8, -1).astype(np.int64), masks.argmax(1))
    assert ami.mean() > 0.8


@pytest.mark.parametrize(
    ("options", "tie"),
    [
        ({"start": "values"}, 1.0),
        ({"start": "parts", "norm": "batch"}, 0.5),
        ({"start": "places", "norm": "layer"}, 1.0),
        ({"start": "places", "norm": "layer", "place_weight": 5.0, "start_apart": 0.4}, 0.0),
        ({"start": "places", "norm": "layer", "start_smooth": 3}, 1.0),
        ({"start": "places", "norm": "layer", "start_sizes": True}, 1.0),
    ],
    ids=["values", "parts", "places", "apart", "smooth", "sizes"],
)
def test_masks_that_start_from_the_scene(options: dict[str, Any], tie: float, tmp_path: Path, unchecked: Any) -> None:
    """A third file makes the start, for the model's own K; the loop ties the masks to it."""
    torch.manual_seed(0)
    config = TaggerConfig(shape=(20,), kind="real", widths=(12, 6), offset=1.0, scale=2.0, tie=tie, **options)
    model = Tagger(config, groups=3, iterations=4)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights += 0.3 * (torch.rand_like(weights) if name == "start_shapes" else torch.randn_like(weights))
    x = inputs("real", 9)
    if config.norm == "batch":
        model.freeze_statistics(inputs("real", 100), 3, 4)
    with unchecked():
        whole, single, first = (session(path, 1) for path in export(model.eval(), tmp_path / "model.onnx"))
    random = KEY.normal(9, 3, 20).numpy()
    start = first.run(None, {"x": x, "random": random})[0]
    out = model.group(x)
    np.testing.assert_allclose(start, out.history[0].m_pre.numpy(), rtol=1e-3, atol=2e-3)
    masks = whole.run(None, {"x": x, "start": start})[0]
    np.testing.assert_allclose(masks, out.masks, rtol=0, atol=2e-3)
    assert np.ptp(masks.argmax(1)) > 0
    assert ("prior" in {one.name for one in single.get_inputs()}) == (tie > 0)


@pytest.mark.parametrize(("kind", "norm"), [("binary", "layer"), ("real", "batch")])
def test_onnxruntime_warns_of_nothing_but_the_default(
    kind: str, norm: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A session as the documentation opens it; the one line that remains is explained and silenced there."""
    import onnxruntime

    files = export(model_of(kind, norm, 3), tmp_path / "model.onnx")
    capfd.readouterr()
    for path in files:
        onnxruntime.InferenceSession(str(path))
    warnings = [line for line in capfd.readouterr().err.splitlines() if "onnxruntime" in line]
    assert len(warnings) == 1
    assert "Initializer iterations" in warnings[0]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for path in files:
        onnxruntime.InferenceSession(str(path), options)
    assert "onnxruntime" not in capfd.readouterr().err


def test_the_default_t_is_that_of_the_documentation(shipped: Tagger, tmp_path: Path) -> None:
    import onnx

    page = (Path(__file__).parents[1] / "docs" / "export.md").read_text()
    known = {e.key: e.value for e in onnx.load(export(shipped, tmp_path / "shapes.onnx")[0]).metadata_props}
    assert f"# T = {known['iterations']}, the model's own" in page


@pytest.mark.parametrize(
    ("module", "call"), [("onnx", export_module._onnx), ("onnxruntime", lambda: session("a.onnx"))]
)
def test_what_is_missing_is_installed_as_in_the_documentation(
    module: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the clone and into it: the package is on no index, and a copy would take the place of the clone."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OSError, match=r"pip install -e '\.\[onnx\]' in a clone") as caught:
        call()
    command = str(caught.value).partition(": ")[2].removesuffix(" in a clone of taggernet")
    assert command in (Path(__file__).parents[1] / "docs" / "export.md").read_text()
