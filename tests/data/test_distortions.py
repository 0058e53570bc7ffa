"""Distorted pictures against SciPy's interpolation, and what a distortion must leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from taggernet.data import distortions, fixture_digits, fresh_texture_mnist, texture_bank
from taggernet.data.distortions import distort
from taggernet.rng import Key


def pictures(*shape: int) -> torch.Tensor:
    images = torch.from_numpy(fixture_digits()[0]).float() / 255
    return images[torch.arange(math.prod(shape))].reshape(*shape, 28, 28)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setattr(distortions, name, 0.0)


def test_nothing_moves_where_nothing_may(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "TURN", "STRETCH", "SLANT", "BEND")
    given = pictures(2, 3, 2)
    torch.testing.assert_close(distort(Key.of([0, 1]), given), given, atol=1e-5, rtol=0)


def test_turns_stretches_and_slants_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One map of places (column, row) around the middle, values between elements by bilinear interpolation."""
    without(monkeypatch, "BEND")
    key, given = Key.of(3), pictures(20, 1)
    found = distort(key, given)[:, 0].numpy()
    each = distortions._matrices(key, 20, 1, 1.0, 0)[:, 0].double().numpy()
    stretches = np.linalg.norm(each[:, :, 0], axis=-1)  # the slant is in the second column
    angles = np.arctan2(each[:, 1, 0], each[:, 0, 0])
    assert np.abs(angles).max() < distortions.TURN < 1.3 * np.abs(angles).max()
    assert np.abs(np.log(stretches)).max() < distortions.STRETCH < 1.3 * np.abs(np.log(stretches)).max()
    middle = np.array([13.5, 13.5])
    for picture, matrix, expected in zip(given[:, 0].numpy(), each, found, strict=True):
        by_rows = matrix[::-1, ::-1]  # SciPy counts (row, column)
        seen = ndimage.affine_transform(
            picture, by_rows, offset=middle - by_rows @ middle, order=1, mode="grid-constant"
        )
        np.testing.assert_allclose(expected, seen, atol=1e-4)


def test_bumps_move_places_smoothly_by_about_their_height(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that hold each element's own column show where they were read."""
    without(monkeypatch, "TURN", "STRETCH", "SLANT")
    columns = torch.arange(28.0).expand(200, 1, 28, 28)
    moved = (distort(Key.of(0), columns) - columns)[..., 8:20, 8:20]
    assert abs(float(moved.mean())) < 0.2
    assert 0.3 * distortions.BEND < float(moved.std()) < distortions.BEND
    assert float(moved.diff(dim=-1).abs().max()) < 1.5
    assert float(moved.diff(dim=-1).std()) < 0.3 * float(moved.std())


def test_a_part_of_a_batch_is_distorted_as_in_the_whole() -> None:
    key, given = Key.of([5, 6]), pictures(2, 6, 2)
    whole = distort(key, given)
    torch.testing.assert_close(distort(key, given[:, 4:], start=4), whole[:, 4:])
    torch.testing.assert_close(distort(Key.of(6), given[1]), whole[1])
    assert float(whole.min()) >= 0
    assert float(whole.max()) <= 1 + 1e-6
    again = distort(key, given[:, :1].expand_as(given))
    assert (again[:, 1:] - again[:, :-1]).abs().mean((-1, -2)).min() > 0.01, "each in its own way"


@pytest.mark.parametrize("digits", [1, 2])
def test_scenes_of_distorted_digits_keep_their_classes_and_textures(digits: int) -> None:
    images, labels = (torch.from_numpy(a) for a in fixture_digits())
    bank, key = texture_bank(), Key.of([1, 2])
    (x, groups, classes), (plain, before, same) = (
        fresh_texture_mnist(key, images, labels, bank, 50, digits, distortion=strength) for strength in (1.0, 0.0)
    )
    assert torch.equal(classes, same)
    background = (groups == 1) & (before == 1)
    torch.testing.assert_close(x[background], plain[background], atol=0.1, rtol=0)
    assert 0.6 < float(background.float().mean()) / float((before == 1).float().mean()) < 0.99
