"""The kinds of data on which the defaults are measured: their true groups are what they say."""

from __future__ import annotations

import os

import numpy as np
import pytest

from benchmarks.own_data_sets import KINDS, LEAST, make
from taggernet.data import Scenes


def scenes(name: str, n: int = 60, seed: int = 0) -> Scenes:
    if name == "spoken-digits" and not os.environ.get("TAGGERNET_FSDD"):
        pytest.skip("TAGGERNET_FSDD does not name a folder with spoken digits")
    return make(name, n, seed)


@pytest.mark.parametrize("name", list(KINDS))
def test_every_scene_shows_two_objects_and_a_seed_gives_the_same(name: str) -> None:
    found = scenes(name)
    assert len(found) == 60
    assert found.groups is not None
    sizes = [[(scene == k).sum() >= LEAST for k in range(1, found.groups.max() + 1)] for scene in found.groups]
    assert np.sum(sizes, 1).min() >= 2
    assert len({len(np.unique(scene)) for scene in found.groups} | {KINDS[name].groups}) <= 3
    again, other = scenes(name), scenes(name, seed=1)
    assert np.array_equal(again.x, found.x)
    assert not np.array_equal(other.x, found.x)


def test_a_bar_is_a_row_or_a_column_without_its_crossings() -> None:
    found = scenes("bars")
    for x, groups in zip(found.x, found.groups, strict=True):
        for k in np.unique(groups[groups > 0]):
            rows, columns = np.nonzero(groups == k)
            line = x[rows[0]] if len(set(rows)) == 1 else x[:, columns[0]]
            assert min(len(set(rows)), len(set(columns))) == 1
            assert line.all()


def test_only_ink_has_an_owner() -> None:
    found = scenes("letters")
    assert (found.x[found.groups > 0] == 1).all()


@pytest.mark.parametrize(("name", "within"), [("grey", 0.05), ("colour", 0.05)])
def test_a_square_has_one_colour(name: str, within: float) -> None:
    found = scenes(name)
    for x, groups in zip(found.x, found.groups, strict=True):
        for k in np.unique(groups):
            own = x[groups == k].reshape(-1, x.shape[-1] if x.ndim == 3 else 1)
            assert own.std(0).max() < within


def test_the_level_tells_the_owner_of_a_signal_only_where_it_should() -> None:
    with_level, without = scenes("signals-level"), scenes("signals")
    assert (np.sign(with_level.x) == np.where(with_level.groups == 1, 1, -1)).mean() > 0.98
    assert abs((np.sign(without.x) == np.where(without.groups == 1, 1, -1)).mean() - 0.5) < 0.1


def test_sensors_have_units_of_their_own() -> None:
    found = scenes("sensors", 500)
    spread = found.x.std(0)
    assert spread.max() / spread.min() > 100


def test_a_fixed_sensor_always_follows_the_same_event() -> None:
    assert (np.ptp(scenes("sensors-fixed").groups, axis=0) == 0).all()


def test_spoken_digits_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAGGERNET_FSDD", raising=False)
    with pytest.raises(FileNotFoundError, match="set TAGGERNET_FSDD"):
        make("spoken-digits", 20)
