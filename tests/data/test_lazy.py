"""Files that stay on the disk: rows and statistics as of the arrays in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_files import sensors, write

from taggernet.data import checks, files, load
from taggernet.data.lazy import LazyArrays, LazyRows, open_data, survey
from taggernet.training.auto_config import look

pytestmark = pytest.mark.usefixtures("without_typecheck")
ROWS = np.array([7, 3, 3, 59, 0])
"""Out of order, and one twice."""


def test_a_damaged_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAPPED", 0)
    path = write(tmp_path / "my.npy", sensors())
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cut short"):
        look(path)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_on_the_disk_are_rows_in_memory(
    ending: str, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = sensors()
    arrays["x"] = np.asarray(arrays["x"], order=order)
    path = write(tmp_path / f"my{ending}", arrays)
    monkeypatch.setattr(files, "MAPPED", 0)
    data = open_data(path)
    assert isinstance(data.x, np.memmap) or ending == ".h5"
    assert not isinstance(data.x, np.ndarray) or isinstance(data.x, np.memmap)
    assert (len(data), data.shape, data.nbytes) == (60, (5, 2), 60 * 10 * 4)
    scenes, whole = data.scenes(ROWS), load(path)
    np.testing.assert_array_equal(scenes.x, arrays["x"][ROWS].astype(np.float32))
    np.testing.assert_array_equal(whole.x[ROWS], scenes.x)
    if ending != ".npy":
        np.testing.assert_array_equal(np.asarray(scenes.groups), arrays["groups"][ROWS])
        np.testing.assert_array_equal(np.asarray(scenes.classes), arrays["classes"][ROWS])
    some = LazyRows(data, ROWS)
    np.testing.assert_array_equal(some.take(np.array([[4, 0], [1, 1]])), scenes.x[[[4, 0], [1, 1]]])
    assert len(data.scenes(ROWS[:0])) == 0


def test_small_and_compressed_files_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(open_data(write(tmp_path / "my.npz", sensors())).x, np.memmap)
    monkeypatch.setattr(files, "MAPPED", 0)
    np.savez_compressed(tmp_path / "packed.npz", **sensors())
    data = open_data(tmp_path / "packed.npz")
    assert not isinstance(data.x, np.memmap)
    np.testing.assert_array_equal(data.x, sensors()["x"])


def test_a_survey_is_numpys_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of a few scenes as well."""
    arrays = sensors()
    x = arrays["x"]
    for chunk in (checks._CHUNK, 35):
        monkeypatch.setattr(checks, "_CHUNK", chunk)
        found = survey(LazyArrays(x, arrays["groups"]))
        assert (found.kind, found.low, found.high, found.groups) == ("real", x.min(), x.max(), 2)
        assert (found.mean, found.deviation) == pytest.approx((x.mean(), x.std()))
    assert survey(LazyArrays(np.eye(20))).kind == "binary"
    assert survey(LazyArrays(np.eye(20)), "real").kind == "real"
    x[47, 2, 1] = np.nan
    with pytest.raises(ValueError, match="scene 47 holds NaN"):
        survey(LazyArrays(x))
    with pytest.raises(ValueError, match="values other than 0 and 1"):
        survey(LazyArrays(sensors()["x"]), "binary")
