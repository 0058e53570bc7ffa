"""Values as colours."""

from __future__ import annotations

import numpy as np

from taggernet.explorer.pictures import Painter


def test_a_scene_without_range_can_be_painted() -> None:
    painted = Painter(False, 2.0, 2.0).plain(np.full((2, 2), 2.0))
    assert np.isfinite(painted).all()
