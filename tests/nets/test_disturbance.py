"""Dropout: its share, its scale, and that it is the same wherever it is computed; masks that are bent."""

from __future__ import annotations

import pytest
import torch

from taggernet.nets.disturbance import Disturbance, bent, dropped
from taggernet.rng import Key


def test_dropout_leaves_out_its_share_and_keeps_the_mean() -> None:
    h = torch.ones(2, 300, 200)
    out = dropped(Disturbance(0.3, Key.of([1, 2])), h, 0)
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    assert (out == 0).float().mean((1, 2)) == pytest.approx(0.3, abs=0.01)
    assert not torch.equal(out[0], out[1])
    assert not torch.equal(out, dropped(Disturbance(0.3, Key.of([1, 2])), h, 1)), "levels must differ"
    assert torch.equal(out[0], dropped(Disturbance(0.3, Key.of(1)), h[0], 0)), "a seed is the same alone"
    part = dropped(Disturbance(0.3, Key.of([1, 2]), first=100), h[:, 100:], 0)
    assert torch.equal(part, out[:, 100:]), "processes share one stream"
    assert torch.equal(dropped(None, h, 0), h)


def test_only_a_strength_bends_masks_each_row_in_its_own_way() -> None:
    masks = torch.rand(2, 1, 6 * 9).expand(2, 5, 54)
    plain = Disturbance(0.3, Key.of([1, 2]), shape=(6, 9))
    assert bent(None, masks) is masks
    assert bent(plain, masks) is masks
    found = bent(plain._replace(distortion=1.0), masks)
    assert found.shape == masks.shape
    assert (found - masks).abs().mean(-1).min() > 0.01
    assert (found[:, 1:] - found[:, :1]).abs().mean(-1).min() > 0.01
    later = bent(plain._replace(distortion=1.0, first=3), masks[:, 3:])
    torch.testing.assert_close(later, found[:, 3:])
    assert bent(plain._replace(distortion=1.0), masks.bfloat16()).dtype == torch.bfloat16
