"""The recipes of the baselines, and configurations that cannot be."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paper.baselines import BASELINES, BaselineConfig, baseline, fresh
from taggernet.recipes.texture_mnist import shorthand


def test_every_cell_of_table_2_has_a_recipe() -> None:
    cells = {
        f"{method}-texture-mnist-{digits}-{labels}"
        for method in ("mlp", "ladder", "convnet")
        for digits in (1, 2)
        for labels in ("50k", "1k")
    }
    assert cells | {"ladder-mnist-1k"} <= set(BASELINES)
    for name, config in BASELINES.items():
        assert config.recipe == name
        assert name.startswith(f"{config.method}-{config.data}-")
        assert shorthand(config.labels) in name.split("-")
        assert config.permuted == name.endswith("-permuted")
    assert baseline("mlp-texture-mnist-1-50k").widths == (2000, 2000, 2000)
    assert baseline("mlp-texture-mnist-2-1k").widths == (1000, 1000)
    assert baseline("ladder-texture-mnist-2-1k").widths == (3000, 2000, 1000, 500, 250)


def test_fresh_renews_what_a_method_sees() -> None:
    assert {(c.labelled, c.unlabelled) for name, c in BASELINES.items() if name.endswith("-fresh")} == {
        ("fresh", "fresh"),
        ("fresh", "fixed"),
    }
    few = fresh(baseline("ladder-texture-mnist-1-1k"))
    assert (few.labels, few.labelled, few.unlabelled) == (1_000, "fresh", "fresh")
    assert fresh(baseline("convnet-texture-mnist-1-1k")).unlabelled == "fixed"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "svm"}, "method='svm' is not known: choose one of 'mlp', 'ladder', 'convnet'"),
        ({"data": "cifar"}, "data='cifar' is not known"),
        ({"labels": 0}, "labels=0 is out of range: give an integer of at least 1"),
        ({"seeds": 0}, "seeds=0 is out of range: give an integer from 1 to 1,000"),
        ({"whiten": -0.1}, "whiten=-0.1 is out of range: give a finite number of at least 0"),
        ({"input_noise": -1.0}, "input_noise=-1.0 is out of range: give a finite number of at least 0"),
        ({"lambdas": (1.0,)}, "belong to the ladder, not to the mlp"),
        ({"unlabelled": "fresh"}, "belong to the ladder, not to the mlp"),
        ({"data": "mnist", "labelled": "fresh"}, "plain mnist has no compositions"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_a_wrong_configuration_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        BaselineConfig(**changes)
