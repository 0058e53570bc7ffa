"""Dropout: its share, its scale, and that it is the same wherever it is computed."""

from __future__ import annotations

import pytest
import torch

from taggernet.nets.dropout import Dropout, dropped
from taggernet.rng import Key


def test_dropout_leaves_out_its_share_and_keeps_the_mean() -> None:
    h = torch.ones(2, 300, 200)
    out = dropped(Dropout(0.3, Key.of([1, 2])), h, 0)
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    assert (out == 0).float().mean((1, 2)) == pytest.approx(0.3, abs=0.01)
    assert not torch.equal(out[0], out[1])
    assert not torch.equal(out, dropped(Dropout(0.3, Key.of([1, 2])), h, 1)), "levels must differ"
    assert torch.equal(out[0], dropped(Dropout(0.3, Key.of(1)), h[0], 0)), "a seed is the same alone"
    part = dropped(Dropout(0.3, Key.of([1, 2]), first=100), h[:, 100:], 0)
    assert torch.equal(part, out[:, 100:]), "processes share one stream"
    assert torch.equal(dropped(None, h, 0), h)
