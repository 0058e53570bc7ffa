"""Sprites against their description, brute force, and the streams they are drawn from."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
import torch

from taggernet.data import Scenes, fresh_sprites, sprites, texture_bank
from taggernet.data.sprites import KINDS, sprite_mask
from taggernet.rng import Key


def owners_by_hand(scenes: Scenes, i: int) -> np.ndarray:
    size = scenes.shape[0]
    seen = np.zeros((size, size), int)
    for j in range(scenes.details["counts"][i]):
        kind, scale, angle, row, col = (
            scenes.details[name][i, j] for name in ("kinds", "scales", "angles", "rows", "cols")
        )
        mask = sprite_mask(KINDS[kind], 0.5 + 0.1 * scale, 2 * math.pi * angle / 40, size)
        seen[row : row + mask.shape[0], col : col + mask.shape[1]][mask > 0] = j + 1
    return seen


@pytest.mark.parametrize(("kind", "area"), [("square", 0.28**2), ("ellipse", math.pi * 0.2 * 0.11)])
def test_area_grows_with_the_square_of_the_scale_and_not_with_the_angle(kind: str, area: float) -> None:
    for scale in (0.5, 1.0):
        for angle in (0.0, 0.4, 1.1):
            assert sprite_mask(kind, scale, angle, 256).sum() == pytest.approx(area * (scale * 256) ** 2 / 2, rel=0.06)


def test_heart_is_symmetric_and_points_down() -> None:
    heart = sprite_mask("heart", 1.0, 0.0, 256)
    assert np.array_equal(heart, heart[:, ::-1])
    widths, middle = heart.sum(1), heart.shape[1] // 2
    assert widths[-1] < 0.25 * widths.max()
    assert heart[0, middle] == 0  # the notch
    assert heart[0].any()
    upside_down = sprite_mask("heart", 1.0, math.pi, 256)
    assert np.mean(upside_down == heart[::-1]) > 0.99


@pytest.mark.parametrize(("variant", "size"), [("colour", 64), ("one-colour", 32), ("texture", 16)])
def test_scenes_equal_brute_force(variant: str, size: int) -> None:
    scenes = sprites(60, seed=3, size=size, variant=variant)
    assert (scenes.x.shape, scenes.x.dtype) == ((60, size, size, 3), np.float32)
    assert (scenes.shape, scenes.channels, scenes.kind, scenes.background) == ((size, size), 3, "real", 0)
    assert scenes.x.min() >= 0
    assert scenes.x.max() <= 1
    bank = texture_bank().numpy()
    for i in range(60):
        seen = owners_by_hand(scenes, i)
        assert np.array_equal(scenes.groups[i], seen)
        ground = np.unique(scenes.x[i][seen == 0], axis=0)
        assert ground.shape == (1, 3)
        assert len(np.unique(ground)) == 1  # grey
        colours = [np.unique(scenes.x[i][seen == j], axis=0) for j in np.unique(seen[seen > 0])]
        if variant == "texture":
            assert np.ptp(scenes.x[i], axis=-1).max() == 0
            found = [texture_of(scenes.x[i, :, :, 0], seen == j, bank) for j in np.unique(seen[seen > 0])]
            assert all(found)
            if all(len(textures) == 1 for textures in found):
                assert len(set.union(*found)) == len(found)  # each has its own
        else:
            assert all(len(colour) == 1 for colour in colours)
            assert len(np.unique(np.concatenate(colours), axis=0)) == (len(colours) if variant == "colour" else 1)


def texture_of(x: np.ndarray, mask: np.ndarray, bank: np.ndarray) -> set[int]:
    """Textures of the bank that, at some shift, have these values where the mask is."""
    rows, cols = np.nonzero(mask)
    found = set()
    for number, texture in enumerate(bank):
        down, right = np.nonzero(np.isclose(texture, x[rows[0], cols[0]]))
        shifted = texture[
            (rows + (down - rows[0])[:, None]) % len(texture), (cols + (right - cols[0])[:, None]) % len(texture)
        ]
        if np.isclose(shifted, x[rows, cols]).all(1).any():
            found.add(number)
    return found


def test_numbers_of_objects_and_their_choices_are_uniform() -> None:
    scenes = sprites(3000, size=16)
    share = np.bincount(scenes.details["counts"], minlength=6)[2:] / 3000
    assert abs(share - 0.25).max() < 0.035
    for name, choices in (("kinds", 3), ("scales", 6), ("angles", 40)):
        share = np.bincount(scenes.details[name].ravel(), minlength=choices) / scenes.details[name].size
        assert abs(share - 1 / choices).max() < 4 * (1 / choices / scenes.details[name].size) ** 0.5


def test_splits_seeds_and_lengths() -> None:
    drawn = {split: sprites(50, 3, size=16, split=split).x for split in ("train", "valid", "test")}
    assert len({row.tobytes() for x in drawn.values() for row in x}) == 150
    assert np.array_equal(sprites(200, 3, size=16).x[:50], drawn["train"])
    assert not np.array_equal(sprites(50, 4, size=16).x, drawn["train"])


@pytest.mark.parametrize("variant", ["colour", "one-colour", "texture"])
def test_a_batch_of_seeds_and_an_offset_equal_each_seed_alone(variant: str) -> None:
    key = Key.of([5, 6]).fold("sprites", "train")
    together = fresh_sprites(key, 7, 4, 16, torch.tensor(30), min_objects=1, variant=variant)
    for row, seed in enumerate((5, 6)):
        alone = sprites(37, seed, 4, 16, min_objects=1, variant=variant)
        assert np.array_equal(together[0][row].numpy(), alone.x[30:].reshape(7, 256, 3))
        assert np.array_equal(together[1][row].numpy(), alone.groups[30:].reshape(7, 256))


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 is out of range"),
        ({"n": 1, "objects": 17}, "objects=17 is out of range: give an integer from 1 to 16"),
        ({"n": 1, "objects": 2, "min_objects": 3}, "min_objects=3 is out of range: give an integer from 1 to 2"),
        ({"n": 1, "size": 8}, "size=8 is out of range: give an integer from 16 to 256"),
        ({"n": 1, "variant": "red"}, "variant='red' is not known"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sprites(**arguments)


GOLDEN = {
    "colour": "d6bdf81e8c28588b9dca30bc78990b1a",
    "one-colour": "0db940e81ae04dd88765077b22fde185",
    "texture": "a6874be241e2ba1083a7a5fc9756a652",
}


@pytest.mark.parametrize("variant", GOLDEN)
def test_golden_checksums(variant: str) -> None:
    scenes = sprites(50, variant=variant)
    assert hashlib.md5(scenes.x.tobytes() + scenes.groups.tobytes()).hexdigest() == GOLDEN[variant]
