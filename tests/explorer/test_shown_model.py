"""A model as the page gets it: which scenes fit it, and BatchNorm frozen where it was not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as read_arrays

import taggernet as tn
from taggernet import Tagger, TaggerConfig, data
from taggernet.data import Scenes
from taggernet.explorer.shown_model import shown_model
from taggernet.pretrained import SHIPPED
from taggernet.training.datasets import load_split

pytestmark = pytest.mark.usefixtures("without_typecheck")
SMALL = TaggerConfig(shape=(10, 10), widths=(20, 10), norm="layer")


@pytest.mark.parametrize(("name", "world", "objects"), [("shapes", "shapes", 3), ("texture-mnist-2", "textures", 2)])
def test_shipped_models_are_handed_out_as_they_are(name: str, world: str, objects: int) -> None:
    shown = shown_model(name)
    assert (shown.name, shown.world, shown.objects, shown.scenes) == (name, world, objects, None)
    assert shown.weights == SHIPPED / name / "model.safetensors"
    assert shown.card == SHIPPED / name / "config.json"


def test_a_batchnorm_model_is_frozen_on_the_way() -> None:
    model = Tagger(replace(SMALL, norm="batch"), groups=3, iterations=2)
    shown = shown_model(model)
    assert isinstance(shown.card, bytes)
    assert json.loads(shown.card)["model"]["frozen_iterations"] == 2
    assert isinstance(shown.weights, bytes)
    assert any(name.endswith(".variance") for name in read_arrays(shown.weights))


def test_a_run_on_ones_own_file_shows_its_validation_scenes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, (60, 4, 6)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, groups=rng.integers(0, 3, x.shape))
    config = tn.recipe("small")
    config = replace(
        config,
        model=replace(config.model, shape=(4, 6), kind="real", widths=(12, 8)),
        data=replace(config.data, name=str(tmp_path / "mine.npz"), mode="fixed", train=40, valid=6, test=6),
        optimiser=replace(config.optimiser, updates=2, batch=10),
        runtime=replace(config.runtime, device="cpu", progress=False, tensorboard=False, evaluate_every=0),
    )
    tn.train(config, tmp_path / "run")
    shown = shown_model(tmp_path / "run")
    assert (shown.world, shown.objects) == ("own", 0)
    assert shown.scenes is not None
    arrays = read_arrays(shown.scenes)
    valid = load_split(config.data, "valid")
    np.testing.assert_array_equal(arrays["x"], valid.x)
    np.testing.assert_array_equal(arrays["groups"], valid.groups)
    (tmp_path / "mine.npz").unlink()
    with pytest.raises(ValueError, match=r"no scenes of shape \(4, 6\) are known: give scenes of your own"):
        shown_model(tmp_path / "run")


def test_scenes_that_are_given_are_shown() -> None:
    scenes = data.shapes(5, size=10, objects=2, style="small")
    shown = shown_model(Tagger(SMALL), scenes)
    assert shown.world == "own"
    assert shown.scenes is not None
    np.testing.assert_array_equal(read_arrays(shown.scenes)["x"], scenes.x)
    with pytest.raises(ValueError, match=r"the scenes have shape \(10, 10\), but the model's inputs have \(4, 4\)"):
        shown_model(Tagger(replace(SMALL, shape=(4, 4))), scenes)


@pytest.mark.parametrize(
    ("config", "world"),
    [
        (SMALL, "shapes"),
        (replace(SMALL, shape=(5, 9)), "own"),
        (replace(SMALL, kind="real", shape=(28, 28)), "textures"),
    ],
)
def test_the_input_says_which_scenes_fit(config: TaggerConfig, world: str) -> None:
    assert shown_model(Tagger(config)).world == world


@pytest.mark.parametrize("shape", [(16,), (3, 4, 5), (129, 3)])
def test_what_is_no_picture_is_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the page shows"):
        shown_model(Tagger(replace(SMALL, shape=shape)))


def test_colours_and_convolutions_are_one_sentence() -> None:
    with pytest.raises(ValueError, match="3 channels: the page shows pictures of one"):
        shown_model(Tagger(replace(SMALL, channels=3)))
    with pytest.raises(ValueError, match="the page runs the Ladder only"):
        shown_model(Tagger(replace(SMALL, shape=(16, 16), mapping="conv")))
    with pytest.raises(ValueError, match="groups talk"):
        shown_model(Tagger(replace(SMALL, group_attention=4)))


def test_a_damaged_or_missing_model_is_one_sentence(tmp_path: Path) -> None:
    folder = Tagger(SMALL).save(tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises((ValueError, OSError)) as caught:
        shown_model(folder)
    assert "model.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        shown_model(str(tmp_path / "nothing" / "here"))


def test_a_batchnorm_model_without_scenes_is_one_sentence() -> None:
    model = Tagger(replace(SMALL, norm="batch", shape=(5, 9)))
    with pytest.raises(ValueError, match="call freeze_statistics"):
        shown_model(model)
    x = np.random.default_rng(0).integers(0, 2, (8, 5, 9)).astype(np.uint8)
    assert isinstance(shown_model(model, Scenes.of(x)).card, bytes)
