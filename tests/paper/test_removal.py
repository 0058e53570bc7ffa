"""What is left of removed objects, against ``Grouping.without`` scene by scene."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from paper.removal import ink_left, removal
from taggernet.data import Scenes, shapes
from taggernet.tagger import Tagger


@pytest.fixture(scope="module")
def model() -> Tagger:
    return Tagger.from_pretrained("shapes")


def test_it_is_what_a_user_sees_without_the_group(model: Tagger) -> None:
    scenes = shapes(6, seed=3, split="test", objects=3, min_objects=1)
    found = ink_left(model, scenes, 4, 5, batch=4)
    out = model.group(scenes.x, 4, 5, batch_size=4)
    assert scenes.groups is not None
    assert found.shape == (6, 3)
    for i, true in enumerate(scenes.groups):
        for j in range(3):
            own = true == j + 1
            if not own.any():
                assert np.isnan(found[i, j])
                continue
            ((group, _),) = Counter(out.labels[i][own].tolist()).most_common(1)
            assert found[i, j] == pytest.approx(out.without(group).denoised[i][own].mean(), abs=1e-4)


def test_a_record_counts_objects_and_scenes(model: Tagger) -> None:
    scenes = shapes(40, split="valid")
    left, record = ink_left(model, scenes, 4, 5), removal(model, scenes, 4, 5)
    assert record["objects"] == np.isfinite(left).sum()
    assert record["objects_kept"] == pytest.approx((left > 0.5).sum() / record["objects"])
    assert record["scenes_kept"] == pytest.approx(np.mean([(row > 0.5).any() for row in left]))
    assert 0 < record["objects_kept"] < record["scenes_kept"] < 1, "the shipped model's spare group keeps copies"


def test_what_it_cannot_measure_is_refused(model: Tagger) -> None:
    scenes = shapes(2)
    with pytest.raises(ValueError, match="at least two are needed"):
        ink_left(model, scenes, 1, 3)
    with pytest.raises(ValueError, match="whose true groups are known"):
        ink_left(model, Scenes.of(scenes.x), 4, 3)
