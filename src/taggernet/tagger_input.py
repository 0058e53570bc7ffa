"""What a user gives a trained model: checked, and brought into the model's order.

# B batch · P positions · C channels · N = P C elements
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from taggernet.arrays import check_dense_tensor, float_array
from taggernet.config.model import TaggerConfig
from taggernet.config.validate import LARGEST
from taggernet.tag import Corruption, Units
from taggernet.tag.likelihood import wide


def checked_rows(
    x: Any, config: TaggerConfig, corruption: Corruption, units: Units
) -> tuple[Float[Tensor, "B N"], tuple[int, ...], bool]:
    """x as rows of floats, channels side by side; the shape of its positions; and whether x was numpy."""
    as_numpy = not isinstance(x, Tensor)
    _check_bytes(x, config, units)
    x = torch.from_numpy(float_array(x)) if as_numpy else check_dense_tensor("x", x)
    expected = f"(B, {', '.join(map(str, config.input_shape))})"
    if x.ndim < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}, but a batch {expected} is expected: add a batch dimension")
    if len(x) == 0:
        raise ValueError(f"x is empty, shape {tuple(x.shape)}: give at least one input of shape {expected}")
    if math.prod(x.shape[1:]) != config.elements:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, that is {math.prod(x.shape[1:])} elements per input, but this model "
            f"has N={config.elements}: give {expected}"
        )
    given = tuple(x.shape)
    x, shape = _channels_last(x, config, expected)
    if is_another_layout(shape, config.shape):
        raise ValueError(
            f"x has shape {given}, but this model's inputs are {expected}: give that, or rows of {config.elements} "
            "elements in its order"
        )
    rows = wide(x.reshape(len(x), -1))
    seen = units.to_model(rows)
    corruption.check(seen)
    largest = seen.abs().max().item()
    if largest > LARGEST:
        raise ValueError(
            f"x holds values as large as {largest:g} in the model's units, beyond {LARGEST:g}: scale the data, "
            "e.g. to mean 0 and variance 1, or set the model's offset and scale"
        )
    return rows, shape, as_numpy


def is_another_layout(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether positions are laid out in as many dimensions but in others, e.g. with height and width exchanged."""
    sizes, wanted = ([size for size in sizes if size > 1] for sizes in (shape, expected))
    return len(sizes) == len(wanted) and sizes != wanted


def has_channels_first(shape: tuple[int, ...], config: TaggerConfig) -> bool:
    """Whether inputs of this shape have their channels first: where the model has them if they fit, else elsewhere."""
    first, last = (len(shape) > 2 and shape[axis] == config.channels for axis in (1, -1))
    return config.channels > 1 and (first if config.channels_first else first and not last)


def _channels_last(x: Tensor, config: TaggerConfig, expected: str) -> tuple[Tensor, tuple[int, ...]]:
    """x with its channels last, and the shape of its positions; flat rows are taken to be in this order already."""
    if config.channels == 1:
        return x, tuple(x.shape[1:])
    if x.ndim == 2:
        return x, (config.positions,)
    if has_channels_first(tuple(x.shape), config):
        x = x.movedim(1, -1)
    if x.shape[-1] != config.channels:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, but this model has {config.channels} channels at each position: "
            f"give {expected}"
        )
    return x, tuple(x.shape[1:-1])


def _check_bytes(x: Any, config: TaggerConfig, units: Units) -> None:
    """Refuse an image of 0 .. 255 where the model has learned from values of about 0 to 1."""
    centre, reach = units.to_user(torch.tensor(float(config.mean))).mean(), torch.as_tensor(units.scale).mean()
    of_unit_range = config.kind == "real" and bool((centre >= 0) & (centre <= 1) & (reach <= 1))
    if not of_unit_range or getattr(x, "dtype", None) not in (torch.uint8, np.dtype("uint8")):
        return
    largest = int(x.max()) if math.prod(x.shape) else 0
    if largest > 1:
        raise ValueError(
            f"x is uint8 with values up to {largest}, but this model has learned from values of about 0 to 1: "
            "give x / 255"
        )
