"""Where the loop begins: patches that start alike, positions that vary together, levels of the groups."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from taggernet import Tagger, TaggerConfig
from taggernet.rng import Key
from taggernet.tag import start
from taggernet.tag.start import correlated_masks, first_of_patch


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


@pytest.mark.parametrize("side", [1, 2])
def test_groups_may_start_at_levels_of_their_own(side: int) -> None:
    """One number for all elements of a group, centred over the groups; masks and the mean are as without."""
    options: dict[str, Any] = {"kind": "real", "channels": 2, "widths": (8, 4), "start_patch": side, "mean": 0.3}
    plain, levels = (
        Tagger(TaggerConfig((4, 6), levels=spread, **options)).start(2_000, 3, Key.of(0)) for spread in (0.0, 2.0)
    )
    assert torch.equal(plain.m, levels.m)
    level = levels.z - plain.z
    torch.testing.assert_close(level, level[..., :1].expand_as(level))
    torch.testing.assert_close(level.mean(1), torch.zeros(2_000, 48), atol=1e-5, rtol=0)
    # A standard normal per group, less the mean of three: a variance of 1 - 1/3.
    assert abs(level[..., 0].var().item() - 4 * (1 - 1 / 3)) < 0.2
    assert torch.equal(levels.fed, levels.z)


def test_positions_that_vary_together_start_together() -> None:
    """The covariance of the pre-activations is 4 r^2, whatever the sign of r; a still position starts by itself."""
    random = np.random.default_rng(0)
    events = random.standard_normal((4_000, 2))
    x = np.stack([events[:, 0], -3 * events[:, 0], events[:, 1], events.sum(1), np.full(4_000, 7.0)], 1)
    factor = correlated_masks(torch.from_numpy(x.reshape(4_000, 5, 1)))
    r = np.zeros((5, 5))
    r[:4, :4], r[4, 4] = np.corrcoef(x[:, :4].T), 1
    np.testing.assert_allclose((factor.T @ factor).numpy(), 4 * r**2, atol=1e-3)

    model = Tagger(TaggerConfig((5,), "real", (8, 4), start_correlated=True))
    plain = Tagger(TaggerConfig((5,), "real", (8, 4))).start(1_000, 2, Key.of(0))
    assert torch.equal(model.start(1_000, 2, Key.of(0)).m, plain.m), "until training sets the factor"
    with torch.no_grad():
        model.start_factor.copy_(factor)
    state = model.start(1_000, 2, Key.of(0))
    owner = state.m.argmax(1)
    assert torch.equal(owner[:, 0], owner[:, 1])
    assert 0.4 < (owner[:, 0] == owner[:, 2]).float().mean() < 0.6
    assert torch.equal(state.z, plain.z)
    torch.testing.assert_close(state.m_pre, plain.m_pre @ factor)


def test_channels_of_a_position_vary_as_one() -> None:
    """r is the mean over the channels, each on its own scale."""
    random = np.random.default_rng(1)
    x = random.standard_normal((500, 3, 2)) * [1.0, 100.0]
    x[:, 1] = x[:, 0] * [1.0, -1.0]  # alike in one channel, opposite in the other: no more together than chance
    factor = correlated_masks(torch.from_numpy(x))
    r = np.mean([np.corrcoef(x[:, :, channel].T) for channel in range(2)], 0)
    np.testing.assert_allclose((factor.T @ factor).numpy(), 4 * r**2, atol=1e-3)


def test_too_many_positions_cannot_start_correlated() -> None:
    with pytest.raises(ValueError, match=r"shape=\(100, 100\) has more than 4,096: set it to False"):
        TaggerConfig((100, 100), start_correlated=True)
