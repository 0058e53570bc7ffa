"""Where the loop begins: patches that start alike."""

from __future__ import annotations

import itertools

import pytest
import torch

from taggernet import Tagger, TaggerConfig
from taggernet.rng import Key
from taggernet.tag import start
from taggernet.tag.start import first_of_patch


@pytest.mark.parametrize(("shape", "side"), [((7,), 3), ((4, 6), 2), ((5, 7), 3), ((2, 3, 4), 2), ((3, 3), 9)])
def test_a_position_shares_the_number_of_its_patch(shape: tuple[int, ...], side: int) -> None:
    """Against a loop over all positions."""
    found = first_of_patch(shape, side).reshape(shape)
    numbers = torch.arange(found.numel()).reshape(shape)
    for at in itertools.product(*map(range, shape)):
        assert found[at] == numbers[tuple(i - i % side for i in at)]


def test_patches_of_one_position_change_nothing() -> None:
    assert torch.equal(first_of_patch((4, 5), 1), torch.arange(20))


def test_masks_start_in_patches_and_groups_differ() -> None:
    model = Tagger(TaggerConfig((5, 6), widths=(8, 4), start_patch=3))
    masks = model.start(2, 3, Key.of(0)).m.reshape(2, 3, 5, 6)
    plain = start(2, 3, torch.full((30,), 0.5), Key.of(0)).m.reshape(2, 3, 5, 6)
    for row, column in itertools.product((0, 3), (0, 3)):
        patch = masks[..., row : row + 3, column : column + 3]
        torch.testing.assert_close(patch, plain[..., row, column, None, None].expand_as(patch))
    assert masks.std(1).min() > 1e-3
    torch.testing.assert_close(masks.sum(1), torch.ones(2, 5, 6))


def test_patches_of_a_start_again_are_the_same() -> None:
    """So that a start from elsewhere, as in an ONNX file, may be given with or without patches."""
    patches = first_of_patch((5, 6), 2)
    assert torch.equal(patches[patches], patches)
