"""A figure of groups is written as PDF and PNG and has a panel for every mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from drawings import written
from matplotlib.figure import Figure

from taggernet.data import Scenes, shapes
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.viz.figures import grouping_figure


@pytest.fixture
def model() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm="layer", mean=0.28))


def test_files_can_be_compared(model: Tagger, tmp_path: Path) -> None:
    scenes = shapes(2, size=10, objects=2, style="small")
    for name in ("a.pdf", "b.png"):
        grouping_figure(scenes, model.group(scenes.x, 2, 1), tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert written(tmp_path / "a")


def test_grouping_figure_has_a_mask_per_group(model: Tagger, tmp_path: Path, drawn: list[Figure]) -> None:
    scenes = shapes(5, size=10, objects=2, style="small")
    grouping_figure(scenes, model.group(scenes.x, 6, 2), tmp_path / "g", rows=3)
    assert written(tmp_path / "g")
    assert len(drawn[0].axes) == 3 * (2 + 6)


def test_only_images_can_be_drawn(model: Tagger, tmp_path: Path) -> None:
    scenes = Scenes(np.zeros((2, 100), dtype=np.uint8))
    with pytest.raises(ValueError, match="only images"):
        grouping_figure(scenes, model.group(scenes.x, 2, 1), tmp_path / "g")
