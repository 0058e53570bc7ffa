"""Looks at a scene: the model's own grouping, within bounds, with groups taken away and brought back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from taggernet import Tagger, TaggerConfig, data, metrics
from taggernet.explorer import session
from taggernet.explorer.scenes import ShapeScenes, TextureScenes
from taggernet.explorer.session import KEPT, Choice, Explorer, Settings, toggled

USUAL = Settings(noise=0.1, groups=3, iterations=4, seed=2)


@pytest.fixture(scope="module")
def reader() -> Explorer:
    torch.manual_seed(0)
    model = Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(30, 20, 10), classes=10))
    return Explorer(model, TextureScenes(2, *data.fixture_digits("test")))


def test_a_look_is_what_the_model_says(explorer: Explorer) -> None:
    look = explorer.look(Choice("test", 6), USUAL)
    out = explorer.model.group(look.x_tilde[None], 3, 4, seed=2)
    assert (look.grouping.masks == out.masks).all()
    assert look.scene.groups is not None
    assert look.ami is not None
    expected = metrics.adjusted_mutual_information(look.scene.groups[None].astype(np.int64), out.labels)
    assert look.ami[-1] == pytest.approx(float(expected[0]))
    assert len(look.ami) == 5


def test_a_new_random_scene_is_another(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = iter([7, 7, 8])
    monkeypatch.setattr(session.secrets, "randbelow", lambda most: next(seeds))
    first = explorer.another(1, Choice("test", 0))
    assert first == Choice("random", 1, 7)
    assert explorer.another(1, first) == Choice("random", 1, 8)
    monkeypatch.setattr(session.secrets, "randbelow", lambda most: 7)
    assert explorer.another(1, first) == first, "it does not look for ever"


def test_noise_flips_about_as_many_bits_as_asked(explorer: Explorer) -> None:
    clean = explorer.look(Choice("test", 5), replace(USUAL, noise=0.0))
    assert (clean.x_tilde == clean.scene.x).all()
    flipped = [
        (look.x_tilde != look.scene.x).mean()
        for look in (explorer.look(Choice("test", 5), replace(USUAL, noise=0.3, seed=seed)) for seed in range(30))
    ]
    assert np.mean(flipped) == pytest.approx(0.3, abs=0.04)


def test_batchnorm_sees_the_scene_among_others(reader: Explorer) -> None:
    look = reader.look(Choice("test", 5), replace(USUAL, noise=0.0))
    assert reader.source.test is not None
    batch = np.concatenate([look.scene.x[None], reader.source.test.x[:99]])
    out = reader.model.group(batch, 3, 4, seed=2)
    np.testing.assert_allclose(look.grouping.masks[0], out.masks[0], atol=1e-6)
    assert len(look.grouping.history[-1].z) == 1


def test_class_shares_are_those_of_the_model(reader: Explorer) -> None:
    look = reader.look(Choice("test", 1), USUAL)
    shares = reader.class_shares(look, 4)
    assert shares is not None
    assert shares.shape == (3, 10)
    assert shares.sum() == pytest.approx(1.0, abs=1e-5)
    assert reader.class_shares(look, 0) is None


def test_taking_groups_away_is_groupings_without(explorer: Explorer) -> None:
    look = explorer.look(Choice("test", 9), USUAL)
    z, m, picture = look.without(3, [1])
    expected = look.grouping.at(3).without(1)
    assert (picture == expected.denoised[0]).all()
    assert m[1].max() < 1e-6
    np.testing.assert_allclose(m.sum(0), 1, atol=1e-5)
    assert (look.without(3, [])[2] == look.grouping.at(3).denoised[0]).all()
    assert (z == expected.reconstructions[0]).all()


def test_a_group_pressed_goes_and_pressed_again_comes_back() -> None:
    assert toggled([], 2, 4) == [2]
    assert toggled([2], 0, 4) == [0, 2]
    assert toggled([0, 2], 2, 4) == [0]
    assert toggled([0, 1, 2], 3, 4) == [0, 1, 2]  # the last one stays


@pytest.mark.parametrize("group", [-1, 4, 10**6])
def test_a_group_that_does_not_exist_cannot_be_pressed(group: int) -> None:
    with pytest.raises(ValueError, match="give an integer from 0 to 3"):
        toggled([], group, 4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"groups": 1}, "give an integer from 2 to 8"),
        ({"groups": 9}, "give an integer from 2 to 8"),
        ({"groups": 10**6}, "give an integer from 2 to 8"),
        ({"groups": 2.5}, "is not an integer"),
        ({"iterations": 0}, "give an integer from 1 to 10"),
        ({"iterations": 11}, "give an integer from 1 to 10"),
        ({"iterations": None}, "is not an integer"),
        ({"noise": -0.1}, "out of range"),
        ({"noise": 0.5}, "out of range"),
        ({"noise": float("nan")}, "out of range"),
        ({"noise": "much"}, "not a number"),
        ({"seed": -1}, "give an integer from 0 to"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_what_is_out_of_bounds_is_refused(explorer: Explorer, change: dict[str, Any], sentence: str) -> None:
    settings = Settings(**{"noise": 0.0, "groups": 3, "iterations": 4, **change})
    with pytest.raises((ValueError, TypeError), match=sentence):
        explorer.look(Choice(), settings)


def test_looks_are_kept_but_not_without_end(explorer: Explorer) -> None:
    first = explorer.look(Choice("test", 0), USUAL)
    assert explorer.look(Choice("test", 0), USUAL) is first
    for number in range(1, KEPT + 3):
        explorer.look(Choice("test", number), Settings(0.0, 2, 1))
    assert explorer.look(Choice("test", 0), USUAL) is not first
    assert explorer._looks.cache_info().currsize <= KEPT


def test_groups_and_iterations_begin_with_the_models_own(explorer: Explorer, reader: Explorer) -> None:
    assert (explorer.usual_groups, reader.usual_groups) == (4, 4)
    for k, t, shown in ((1, 1, (2, 1)), (2, 3, (2, 3)), (20, 50, (8, 10))):
        explorer = Explorer(Tagger(TaggerConfig(widths=(8, 4)), groups=k, iterations=t), ShapeScenes(20))
        assert (explorer.usual_groups, explorer.usual_iterations) == shown
