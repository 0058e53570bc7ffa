"""A replay shows what the evaluation of a scene saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from paper.replay import Replay, replay
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.tagger import Tagger, TaggerConfig

REAL = TaggerConfig(shape=(3, 4), kind="real", widths=(16, 8), norm="batch", v_start=0.3)


def tagger(config: TaggerConfig) -> Tagger:
    torch.manual_seed(0)
    model = Tagger(config)
    with torch.no_grad():
        for weights in model.mapping.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    return model


def test_units() -> None:
    """Scenes in the user's units are replayed, and their reconstructions given, in those."""
    scenes = Scenes(np.random.default_rng(0).random((7, 3, 4), np.float32), kind="real")
    scaled = replace(scenes, x=50 * scenes.x - 100)
    chosen = {"groups": 3, "iterations": 2, "batch": 4, "seed": 1}
    plain = replay(tagger(REAL), scenes, [5, 0], **chosen)
    found = replay(tagger(replace(REAL, offset=-100.0, scale=50.0)), scaled, [5, 0], **chosen)
    np.testing.assert_allclose(found.masks, plain.masks, atol=1e-3)
    np.testing.assert_allclose(found.reconstructions, 50 * plain.reconstructions - 100, atol=0.05)


def test_a_model_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the model has shape \(3, 4\), but scenes of shapes are 20 x 20"):
        Replay(tagger(REAL), DataConfig(), scenes=5, seed=0, iterations=2, batch=5)
