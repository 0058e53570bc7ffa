"""A replay shows what the evaluation of a scene saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from paper.generalisation import draw_shapes
from paper.replay import Replay, replay_grouping
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.tagger import Tagger, TaggerConfig

DATA = DataConfig(objects=2, size=10, style="small")
REAL = TaggerConfig(shape=(3, 4), kind="real", widths=(16, 8), norm="batch", v_start=0.3)


def tagger(config: TaggerConfig) -> Tagger:
    torch.manual_seed(0)
    model = Tagger(config)
    with torch.no_grad():
        for weights in model.mapping.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    return model


def shapes_model(seed: int = 0, norm: str = "layer") -> Tagger:
    torch.manual_seed(seed)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm=norm, mean=0.28))  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_a_replay_shows_what_was_evaluated(norm: str) -> None:
    tagger, scenes = shapes_model(2, norm), draw_shapes(DATA, 30, 0, 2)
    found = evaluate_weights(tagger, stack_weights([tagger]), scenes, groups=3, iterations=2, batch=8, seed=5)
    grouping = replay_grouping(tagger, scenes, [29, 3, 8], groups=3, iterations=2, batch=8, seed=5)
    assert np.array_equal(grouping.labels.reshape(3, -1), found.labels[0, -1, [29, 3, 8]].numpy())
    assert len(grouping.history) == 3


def test_permuted_scenes_are_drawn_in_order() -> None:
    tagger = shapes_model()
    plain = Replay(tagger, DATA, 10, 0, 1, 10)
    moved = Replay(tagger, replace(DATA, permuted=True), 10, 0, 1, 10)
    assert not np.array_equal(plain.load_scenes(2).x, moved.load_scenes(2).x)
    for index in (0, 7):
        shown = [replay.traces(replay.load_scenes(2), [index], 2)[0].x for replay in (plain, moved)]
        assert np.array_equal(*shown)


def test_units() -> None:
    """Scenes in the user's units are replayed, and their reconstructions given, in those."""
    scenes = Scenes(np.random.default_rng(0).random((7, 3, 4), np.float32), kind="real")
    scaled = replace(scenes, x=50 * scenes.x - 100)
    chosen = {"groups": 3, "iterations": 2, "batch": 4, "seed": 1}
    plain = replay_grouping(tagger(REAL), scenes, [5, 0], **chosen)
    found = replay_grouping(tagger(replace(REAL, offset=-100.0, scale=50.0)), scaled, [5, 0], **chosen)
    np.testing.assert_allclose(found.masks, plain.masks, atol=1e-3)
    np.testing.assert_allclose(found.reconstructions, 50 * plain.reconstructions - 100, atol=0.05)


def test_a_canvas_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the model has shape \(10, 10\), but scenes of shapes are 20 x 20 here"):
        Replay(shapes_model(), None, 10, 0, 1, 10)
    with pytest.raises(ValueError, match="scenes of texture-mnist-2 are 28 x 28 here"):  # before MNIST is looked for
        Replay(shapes_model(), DataConfig(name="texture-mnist-2"), 10, 0, 1, 10)
