"""Distorted pictures against SciPy's interpolation, and what a distortion must leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from taggernet.data import fixture_digits
from taggernet.nets import distortion
from taggernet.nets.distortion import distort
from taggernet.rng import Key


def pictures(*shape: int) -> torch.Tensor:
    images = torch.from_numpy(fixture_digits()[0]).float() / 255
    return images[torch.arange(math.prod(shape))].reshape(*shape, 28, 28)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setattr(distortion, name, 0.0)


def test_strength_nought_changes_nothing() -> None:
    given = pictures(2, 3)[..., :20]
    torch.testing.assert_close(distort(Key.of([0, 1]), given, 0.0), given, atol=1e-5, rtol=0)


def test_turns_stretches_and_slants_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One map of places around the middle, values between elements by bilinear interpolation."""
    without(monkeypatch, "BEND")
    key, given, strength = Key.of(3), pictures(30), 0.7
    found = distort(key, given, strength).numpy()
    each = distortion._matrices(key, 30, strength, 0).double().numpy()
    angles = np.arctan2(each[:, 1, 0], each[:, 0, 0])
    stretches = np.log(np.linalg.norm(each[:, :, 0], axis=-1))  # the slant is in the second column
    for drawn, most in ((angles, distortion.TURN), (stretches, distortion.STRETCH)):
        assert np.abs(drawn).max() < strength * most < 1.3 * np.abs(drawn).max()
    middle = np.array([13.5, 13.5])
    for picture, matrix, expected in zip(given.numpy(), each, found, strict=True):
        by_rows = matrix[::-1, ::-1]  # SciPy counts (row, column)
        seen = ndimage.affine_transform(picture, by_rows, offset=middle - by_rows @ middle, order=1, mode="nearest")
        np.testing.assert_allclose(expected, seen, atol=1e-4)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_bumps_move_places_smoothly_by_about_their_height(monkeypatch: pytest.MonkeyPatch, strength: float) -> None:
    """Pictures that hold each element's own column, or row, show where they were read."""
    without(monkeypatch, "TURN", "STRETCH", "SLANT")
    columns = torch.arange(40.0).expand(200, 28, 40)
    rows = torch.arange(28.0)[:, None].expand(200, 28, 40)
    moved = [(distort(Key.of(0), of, strength) - of)[..., 8:20, 12:28] for of in (columns, rows)]
    for along, apart in zip(moved, (-1, -2), strict=True):
        assert abs(float(along.mean())) < 0.2
        assert 0.3 < float(along.std()) / (strength * distortion.BEND) < 1
        assert float(along.diff(dim=apart).std()) < 0.3 * float(along.std()), "smooth"
    assert abs(float((moved[0] * moved[1]).mean())) < 0.1 * float(moved[0].std() * moved[1].std()), "independent"


def test_a_part_of_a_batch_is_distorted_as_in_the_whole() -> None:
    key, given = Key.of([5, 6]), pictures(2, 6)
    whole = distort(key, given)
    torch.testing.assert_close(distort(key, given[:, 4:], first=4), whole[:, 4:])
    torch.testing.assert_close(distort(Key.of(6), given[1]), whole[1])
    same = distort(key, given[:, :1].expand_as(given))
    assert (same[:, 1:] - same[:, :-1]).abs().mean((-1, -2)).min() > 0.01, "each in its own way"


def test_masks_of_a_scene_still_sum_to_one_where_they_move_together() -> None:
    masks = torch.softmax(torch.randn(4, 20, 20), dim=0)
    key = Key(Key.of(0).word.expand(4))  # four streams that are one
    torch.testing.assert_close(distort(key, masks[:, None]).sum(0), torch.ones(1, 20, 20))
