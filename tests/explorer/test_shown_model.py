"""A model as the page gets it: which scenes fit it, and BatchNorm frozen where it was not."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as read_arrays

import taggernet as tn
from taggernet import Tagger, TaggerConfig, data
from taggernet.data import Scenes
from taggernet.explorer.bundle import bundle
from taggernet.explorer.shown_model import shown_model
from taggernet.fileio import write_json
from taggernet.pretrained import SHIPPED
from taggernet.recipes import RECIPES
from taggernet.training.datasets import load_split

pytestmark = pytest.mark.usefixtures("without_typecheck")
SMALL = TaggerConfig(shape=(10, 10), widths=(20, 10), norm="layer")


@pytest.mark.parametrize(("name", "world", "objects"), [("shapes", "shapes", 5), ("texture-mnist-2", "textures", 2)])
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
    with pytest.raises(ValueError, match=r"scenes have shape \(10, 10\), but the model's inputs have shape \(4, 4\):"):
        shown_model(Tagger(replace(SMALL, shape=(4, 4))), scenes)
    with pytest.raises(ValueError, match=r"inputs have shape \(10, 10\) with 3 channels"):
        shown_model(Tagger(replace(SMALL, channels=3)), scenes)
    grey = Scenes.of(scenes.x + 0.5)
    with pytest.raises(ValueError, match="the scenes are real, but the model's inputs are binary"):
        shown_model(Tagger(SMALL), grey)


@pytest.mark.parametrize(
    ("config", "world"),
    [
        (SMALL, "shapes"),
        (replace(SMALL, shape=(5, 9)), "own"),
        (replace(SMALL, kind="real", shape=(28, 28)), "textures"),
        (replace(SMALL, kind="real", shape=(16, 16), channels=3), "sprites"),
        (replace(SMALL, shape=(14, 14), channels=3), "tetrominoes"),
        (replace(SMALL, channels=3), "own"),
        (replace(SMALL, channels=4, kind="categorical"), "own"),
    ],
)
def test_the_input_says_which_scenes_fit(config: TaggerConfig, world: str) -> None:
    assert shown_model(Tagger(config)).world == world


@pytest.mark.parametrize("shape", [(16,), (3, 4, 5), (129, 3)])
def test_what_is_no_picture_is_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the page shows"):
        shown_model(Tagger(replace(SMALL, shape=shape)))


def test_a_card_says_which_sprites_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shipped model of sprites would be listed, with scenes like those it was trained on."""
    config = tn.recipe("sprites-one-colour")
    model = Tagger(replace(config.model, shape=(16, 16), conv_channels=(4, 6), widths=(8, 4)), groups=6)
    noted = asdict(replace(config.data, size=16, objects=4, min_objects=3))
    model.save(tmp_path / "sprites", {"recipe": config.recipe, "data": noted})
    monkeypatch.setattr("taggernet.pretrained.SHIPPED", tmp_path)
    monkeypatch.setattr("taggernet.explorer.shown_model.SHIPPED", tmp_path)
    shown = shown_model("sprites")
    assert (shown.name, shown.world, shown.objects, shown.scenes) == ("sprites", "sprites", 4, None)
    assert shown.details == {"fewest": 3, "one_colour": True, "draws": True, "background": None}
    assert shown.weights == tmp_path / "sprites" / "model.safetensors"
    (entry,) = json.loads(bundle("sprites").read("models.json") or b"")["models"]
    assert (entry["world"], entry["objects"], entry["fewest"], entry["one_colour"]) == ("sprites", 4, 3, True)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [("shapes-any", ("shapes", 5, 1)), ("texture-mnist-1", ("textures", 1, 1)), ("no such one", ("shapes", 3, 3))],
)
def test_a_model_copied_out_of_its_run_is_known_by_its_recipe(
    recipe: str, expected: tuple[str, int, int], tmp_path: Path
) -> None:
    model = replace(tn.recipe(recipe).model, norm="layer", widths=(8, 4)) if recipe in RECIPES else SMALL
    shown = shown_model(Tagger(model).save(tmp_path / "copied", {"recipe": recipe}))
    assert (shown.world, shown.objects, shown.details["fewest"]) == expected


def test_what_the_page_cannot_draw_are_scenes_of_the_run(tmp_path: Path) -> None:
    """Sprites with textures, and pictures whose elements are shuffled."""
    config = tn.recipe("sprites-texture")
    model = replace(
        config.model, shape=(16, 16), conv_channels=(4, 6), widths=(8, 4), mapping="ladder", decoder="mirror"
    )
    for permuted in (False, True):
        source = replace(config.data, size=16, valid=7, permuted=permuted)
        folder = Tagger(model).save(tmp_path / str(permuted) / "seed-0")
        write_json(folder.parent / "config.json", asdict(replace(config, model=model, data=source)))
        shown = shown_model(folder)
        assert (shown.world, shown.details["draws"], shown.details["background"]) == ("own", not permuted, 0)
        assert shown.scenes is not None
        np.testing.assert_array_equal(read_arrays(shown.scenes)["x"], load_split(source, "valid").x)


def test_a_batchnorm_model_in_colour_is_frozen_on_scenes_of_its_kind() -> None:
    for config in (
        replace(SMALL, norm="batch", channels=3, kind="real", shape=(16, 16)),
        replace(SMALL, norm="batch", channels=3, shape=(7, 7)),
    ):
        shown = shown_model(Tagger(config, groups=2, iterations=1))
        assert isinstance(shown.card, bytes)
        assert json.loads(shown.card)["model"]["frozen_iterations"] == 1


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


def test_a_model_whose_masks_start_from_the_scene_comes_with_its_parts(tmp_path: Path) -> None:
    config = replace(SMALL, start="parts", tie=0.5)
    for model in (Tagger(config), Tagger(replace(config, norm="batch"), groups=2, iterations=1)):
        shown = shown_model(model)
        assert isinstance(shown.card, bytes)
        assert isinstance(shown.weights, bytes)
        card = json.loads(shown.card)["model"]
        assert (card["start"], card["tie"]) == ("parts", 0.5)
        assert {"start_quiet", "start_shapes", "start_together"} <= set(read_arrays(shown.weights))
    folder = Tagger(config).save(tmp_path / "model")
    assert shown_model(folder).weights == folder / "model.safetensors"
