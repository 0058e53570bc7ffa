"""The configuration of a model: plain values in, one sentence for each bad one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taggernet.config.model import TaggerConfig

BINARY = TaggerConfig(shape=(2, 3), widths=(12, 8, 5), norm="layer", mean=0.3)
REAL = replace(BINARY, kind="real", mean=0.5)


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shape": ()}, r"shape=\(\) is out of range: give 1 to 100 integers from 1 to 10,000,000"),
        ({"shape": (0, 3)}, r"shape=\(0, 3\) is out of range"),
        ({"shape": (5000, 5000)}, r"shape=\(5000, 5000\) has more than 10,000,000 elements"),
        ({"widths": (100_001, 5)}, r"widths=\(100001, 5\) is out of range: give 2 to 100 integers from 1 to 100,000"),
        ({"widths": (2,) * 101}, r"widths=\(2, 2.*\.\.\. is out of range: give 2 to 100 integers"),
        ({"widths": (10,)}, r"widths=\(10,\) is out of range"),
        ({"widths": (10, 0)}, r"widths=\(10, 0\) is out of range"),
        ({"kind": "grey"}, r"kind='grey' is not known: choose one of 'binary', 'real'"),
        ({"classes": 10**9}, r"classes=1000000000 is out of range: give an integer from 0 to 100,000"),
        ({"classes": -1}, r"classes=-1 is out of range"),
        ({"v_start": 0.0}, r"v_start=0\.0 is out of range: give a number from 1e-06 to 1e\+06"),
        ({"v_start": math.nan}, r"v_start=nan is out of range"),
        ({"v_start": 1e308}, r"v_start=1e\+308 is out of range"),
        ({"v_start": 1e-308}, r"v_start=1e-308 is out of range"),
        ({"mean": 1e300}, r"mean=1e\+300 is out of range: give a number from -1e\+06 to 1e\+06"),
        ({"noise": 1e200, "kind": "real"}, r"noise=1e\+200 is out of range: give a number from 0 to 1e\+06"),
        ({"scale": 1e-300}, r"scale=1e-300 is out of range: give a number from 1e-30 to 1e\+30"),
        ({"scale": 0.0}, r"scale=0\.0 is out of range"),
        ({"offset": math.inf}, r"offset=inf is out of range"),
        ({"offsets": (0.0, 1.0), "scales": (1.0, 1.0)}, r"offsets holds 2 numbers: give one for each of 6 elements"),
        ({"offsets": (0.0,) * 6, "channels": 3}, r"for each of 18 elements \(6 positions x 3 channels\), or none"),
        ({"offsets": (0.0,) * 6}, r"offsets and scales belong together"),
        ({"offsets": (0.0,) * 6, "scales": (0.0,) * 6}, r"scales=0\.0 is out of range"),
        ({"offsets": (0.0,) * 6, "scales": (1.0,) * 6, "scale": 2.0}, r"scale=2\.0 were given beside offsets"),
        ({"noise": 0.6}, r"noise=0\.6 is out of range: give a number from 0 to below 0\.5"),
        ({"noise": -1.0, "kind": "real"}, r"noise=-1\.0 is out of range"),
    ],
)
def test_bad_configuration(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(BINARY, **change)


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shape": (2.5,)}, r"shape=\(2\.5,\) is not a list of integers: give 1 to 100 integers"),
        ({"shape": (True, 3)}, r"shape=\(True, 3\) is not a list of integers"),
        ({"shape": 6}, r"shape=6 is not a list of integers"),
        ({"shape": "23"}, r"shape='23' is not a list of integers"),
        ({"widths": (True, True)}, r"widths=\(True, True\) is not a list of integers"),
        ({"classes": 2.0}, r"classes=2\.0 is not an integer"),
        ({"classes": True}, r"classes=True is not an integer"),
        ({"classes": None}, r"classes=None is not an integer"),
        ({"noise": "0.2"}, r"noise='0\.2' is not a number"),
        ({"mean": None}, r"mean=None is not a number"),
        ({"v_start": True}, r"v_start=True is not a number"),
    ],
)
def test_configuration_of_another_type(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        replace(BINARY, **change)


@pytest.mark.usefixtures("without_typecheck")
def test_lists_and_numpy_numbers_become_plain_ones() -> None:
    """So that equal configurations compare equal, and a card can be written."""
    numbers = {"classes": np.int64(3), "noise": np.float32(0.25), "mean": 0, "scale": np.int64(2)}
    config: Any = TaggerConfig(shape=[np.int64(2), 3], widths=[12, 8], **numbers)  # type: ignore[arg-type]
    assert config == TaggerConfig(shape=(2, 3), widths=(12, 8), classes=3, noise=0.25, mean=0.0, scale=2.0)
    assert {type(n) for n in (*config.shape, *config.widths, config.classes)} == {int}
    assert {type(n) for n in (config.noise, config.mean, config.scale)} == {float}


OPTIONS = {
    "norm": "group",
    "gate": "open",
    "top": "tanh",
    "feedback": "z",
    "delta_z": "eq5",
    "ratio_variance": "v",
}


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{OPTIONS[name]}' is not known"):
        replace(REAL, **{name: OPTIONS[name]})  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(("name", "value"), [("mean", math.nan), ("norm_eps", math.nan), ("norm_eps", -1.0)])
def test_numbers_that_would_make_nan_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        replace(BINARY, **{name: value})  # type: ignore[arg-type]
