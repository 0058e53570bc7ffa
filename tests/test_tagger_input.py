"""What a trained model is given: layouts of channels, units, and one sentence for each mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from taggernet import TaggerConfig
from taggernet.tag import Units
from taggernet.tagger_input import checked_rows, has_channels_first, is_another_layout
from taggernet.tagger_parts import corruption_for

H, W, C = 2, 4, 3


def config(**options: Any) -> TaggerConfig:
    return TaggerConfig(**({"shape": (H, W), "kind": "real", "widths": (4, 2), "channels": C} | options))


def rows(x: Any, **options: Any) -> tuple[torch.Tensor, tuple[int, ...], bool]:
    wanted = config(**options)
    return checked_rows(x, wanted, corruption_for(wanted), Units(wanted.offset, wanted.scale))


def test_rows_are_position_by_position_wherever_the_channels_are() -> None:
    x = np.random.default_rng(0).random((5, H, W, C))
    last, shape, as_numpy = rows(x)
    assert (shape, as_numpy) == ((H, W), True)
    assert torch.equal(last, torch.from_numpy(x.reshape(5, -1)))
    first, shape, _ = rows(np.moveaxis(x, -1, 1), channels_first=True)
    assert shape == (H, W)
    assert torch.equal(first, last)
    assert torch.equal(rows(np.moveaxis(x, -1, 1))[0], last)  # the other order, where only that one fits
    assert torch.equal(rows(x, channels_first=True)[0], last)
    flat, shape, _ = rows(x.reshape(5, -1))
    assert shape == (H * W,)
    assert torch.equal(flat, last)


@pytest.mark.parametrize("model_first", [False, True])
def test_an_order_that_fits_both_is_the_models(model_first: bool) -> None:
    wanted = config(channels_first=model_first)
    assert has_channels_first((5, C, 4, C), wanted) == model_first
    assert has_channels_first((5, C, H, W), wanted)
    assert not has_channels_first((5, H, W, C), wanted)
    assert not has_channels_first((5, C * H * W), wanted)


def test_positions_may_be_flat() -> None:
    assert rows(np.zeros((5, H * W, C)))[1] == (H * W,)
    assert rows(np.zeros((5, H * W)), channels=1)[1] == (H * W,)
    assert rows(np.zeros((5, 1, H, W)), channels=1)[1] == (1, H, W)


@pytest.mark.parametrize(
    ("shape", "expected", "another"),
    [
        ((4, 2), (2, 4), True),
        ((8,), (2, 4), False),
        ((1, 2, 4), (2, 4), False),
        ((1, 4, 2), (2, 4), True),
        ((2, 2, 2), (2, 4), False),
        ((2, 4), (2, 4), False),
    ],
)
def test_what_is_another_layout(shape: tuple[int, ...], expected: tuple[int, ...], another: bool) -> None:
    assert is_another_layout(shape, expected) == another


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8, np.bool_])
def test_half_precision_bytes_and_bools_are_widened(dtype: Any) -> None:
    found, _, _ = rows(np.ones((1, H, W, C), dtype))
    assert found.dtype == (torch.float64 if dtype is np.float64 else torch.float32)
    assert (found == 1).all()


def test_half_precision_tensors_are_widened() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        assert rows(torch.ones(1, H, W, C, dtype=dtype))[0].dtype == torch.float32


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (np.full((1, H, W, C), 255, np.uint8), {}, r"uint8 with values up to 255, .* about 0 to 1: give x / 255"),
        (torch.full((1, H, W, C), 7, dtype=torch.uint8), {}, r"uint8 with values up to 7"),
        (np.zeros((1, H, C, W)), {}, r"shape \(1, 2, 3, 4\), but .* 3 channels at each position: give \(B, 2, 4, 3\)"),
        (np.zeros((1, H, C, W)), {"channels_first": True}, r"3 channels at each position: give \(B, 3, 2, 4\)"),
        (np.zeros((1, W, H, C)), {}, r"shape \(1, 4, 2, 3\), but .* \(B, 2, 4, 3\): give that, or rows of 24 elements"),
        (np.zeros((1, H, W)), {}, r"8 elements per input, but this model has N=24: give \(B, 2, 4, 3\)"),
        (np.zeros((1, H, W, C)), {"kind": "categorical"}, r"one 1 and zeros in the 3 channels"),
        (np.full((1, H, W, C), 1e9), {}, r"as large as 1e\+09 in the model's units"),
        (np.full((1, H, W, C), np.inf, np.float16), {}, r"NaN or infinite values"),
        (np.zeros((0, H, W, C), np.uint8), {}, r"x is empty"),
        (np.zeros(3), {}, r"add a batch dimension"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(x: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(x, **options)


def test_bytes_are_welcome_where_the_model_has_units_for_them() -> None:
    x = np.full((1, H, W, C), 200, np.uint8)
    assert (rows(x, offset=128.0, scale=64.0, mean=0.0)[0] == 200).all()
    assert (rows(x, mean=127.0)[0] == 200).all()
