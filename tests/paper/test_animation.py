"""The animation runs from the random start to the result."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from paper.animation import animation
from taggernet.config.run import DataConfig
from taggernet.tagger import Tagger, TaggerConfig

DATA = DataConfig(objects=2, size=10, style="small")


def test_the_animation_runs_from_the_start_to_the_result(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm="layer", mean=0.28))
    path = animation(model, tmp_path / "groups.gif", scenes=3, data=DATA, groups=3, iterations=2, dpi=50)
    with Image.open(path) as gif:
        assert gif.format == "GIF"
        assert 3 <= gif.n_frames <= 13  # type: ignore[attr-defined]  # frames that do not change are joined
        assert gif.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
