"""Scenes for the page: picked, made at random, drawn; and models it cannot show."""

from __future__ import annotations

import numpy as np
import pytest

from taggernet import TaggerConfig, data
from taggernet.data import Scenes
from taggernet.explorer import scenes
from taggernet.explorer.scenes import ShapeScenes, TextureScenes, source_for

SMALL = TaggerConfig(shape=(10, 10), widths=(20, 10))
TEXTURE = TaggerConfig(shape=(28, 28), kind="real", widths=(20, 10), classes=10)


@pytest.fixture(scope="module")
def shapes() -> ShapeScenes:
    return ShapeScenes(10)


@pytest.fixture(scope="module")
def textures() -> TextureScenes:
    return TextureScenes(2, *data.fixture_digits("test"))


def test_a_picked_scene_is_that_of_the_test_split(shapes: ShapeScenes) -> None:
    expected = data.shapes(8, 0, 2, 10, style="small", split="test")
    scene = scenes.picked(shapes, 7)
    assert expected.groups is not None
    assert scene.groups is not None
    assert (scene.x == expected.x[7]).all()
    assert (scene.groups == expected.groups[7]).all()


@pytest.mark.parametrize("objects", [1, 2, 3, 4, 5])
def test_a_random_scene_of_shapes_has_as_many_objects_as_asked(shapes: ShapeScenes, objects: int) -> None:
    most = max(int(scenes.made(shapes, objects, seed).groups.max()) for seed in range(20))  # type: ignore[union-attr]
    assert most == objects


@pytest.mark.parametrize("objects", [1, 2, 5])
def test_a_random_scene_of_digits_has_as_many_layers_as_asked(textures: TextureScenes, objects: int) -> None:
    found = [scenes.made(textures, objects, seed) for seed in range(20)]
    assert max(int(scene.groups.max()) for scene in found) == objects + 1  # type: ignore[union-attr]
    assert all(len(scene.classes) == objects for scene in found)
    assert all(scene.x.min() >= 0 and scene.x.max() <= 1 for scene in found)


def test_a_random_scene_is_its_seed(textures: TextureScenes) -> None:
    first, second, other = (scenes.made(textures, 3, seed) for seed in (5, 5, 6))
    assert (first.x == second.x).all()
    assert (first.x != other.x).any()


def test_a_drawing_is_the_scene(shapes: ShapeScenes) -> None:
    x = scenes.picked(shapes, 3).x
    scene = scenes.drawn(shapes, (10, 10), scenes.as_cells(x), 0)
    assert (scene.x == x).all()
    assert scene.groups is None


def test_a_drawn_digit_gets_a_texture_of_its_own(textures: TextureScenes) -> None:
    cells = np.zeros((28, 28), int)
    cells[4:10, 4:10], cells[15:20, 15:20] = 1, 2
    scene = scenes.drawn(textures, (28, 28), "".join(map(str, cells.flatten())), 0)
    assert scene.groups is not None
    assert (scene.groups == cells + 1).all()


@pytest.mark.parametrize(
    "text", ["", "0" * 99, "0" * 101, "2" + "0" * 99, "x" * 100, "1" * 10**6, None, 7, ["0"] * 100]
)
def test_a_drawing_that_is_none_is_refused(shapes: ShapeScenes, text: object) -> None:
    with pytest.raises(ValueError, match="the drawing must be 100 characters of 01"):
        scenes.drawn(shapes, (10, 10), text, 0)


@pytest.mark.parametrize("objects", [0, 6, -1, 10**6])
def test_random_scenes_have_one_to_five_objects(shapes: ShapeScenes, objects: int) -> None:
    with pytest.raises(ValueError, match="give an integer from 1 to 5"):
        scenes.made(shapes, objects, 0)


@pytest.mark.parametrize("index", [-1, 1000])
def test_a_scene_beyond_the_test_set_is_refused(shapes: ShapeScenes, index: int) -> None:
    with pytest.raises(ValueError, match="give an integer from 0 to 999"):
        scenes.picked(shapes, index)


def test_the_scenes_fit_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TAGGERNET_DATA", raising=False)
    assert source_for(SMALL).name == "Shapes, 10 × 10"
    assert len(source_for(TaggerConfig(widths=(20, 10))).stamps) == 3
    assert source_for(TEXTURE).name == "TextureMNIST2, the package's own digits"
    assert source_for(TEXTURE, digits=1).name.startswith("TextureMNIST1")
    oblong = source_for(TaggerConfig(shape=(6, 9), widths=(20, 10)))
    assert (oblong.test, oblong.pens) == (None, ("Pen",))


def test_own_scenes_are_shown() -> None:
    own = Scenes.of(np.random.default_rng(0).random((4, 5, 6)))
    source = source_for(TaggerConfig(shape=(5, 6), kind="real", widths=(20, 10)), own)
    assert (scenes.picked(source, 2).x == own.x[2]).all()
    with pytest.raises(ValueError, match="cannot be made"):
        scenes.made(source, 2, 0)
    with pytest.raises(ValueError, match="cannot be drawn"):
        scenes.drawn(source, (5, 6), "0" * 30, 0)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (TaggerConfig(shape=(100,), widths=(20, 10)), "the page shows pictures"),
        (TaggerConfig(shape=(4, 4, 3), widths=(20, 10)), "the page shows pictures"),
        (TaggerConfig(shape=(200, 10), widths=(20, 10)), "at most 128 a side"),
        (TaggerConfig(shape=(9, 9), kind="real", widths=(20, 10)), "give scenes of your own"),
    ],
)
def test_a_model_without_pictures_is_refused(config: TaggerConfig, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        source_for(config)


def test_scenes_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="but the model's inputs have"):
        source_for(SMALL, data.shapes(2))
