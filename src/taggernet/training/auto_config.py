"""A configuration inferred from a user's own data: data type, units, sizes and length of training.

# n scenes · N elements = positions x channels

Each setting is a field of the configuration and an option of ``taggernet train``. The rules:

    channels   colour images (n, H, W, 3) and (n, 3, H, W) have three, which share a mask; else as true groups tell
    kind       categorical where channels are one-hot, binary where every value is 0 or 1, else real
    units      real: mean 0 and standard deviation 1, of each element where a scene is one row, else of the whole array
    widths     w, w/2, w/4 with w = 8 sqrt(N), 64 to 1,024: a network too small to explain a scene without groups
    norm       binary: layer; real: batch, whose statistics are frozen after training
    noise      binary: bits flip with 0.2; real: 0.3 standard deviations
    v          starts at the data's variance and falls ten times faster than the rest: groups form while it falls
    discount   0.3: later iterations weigh more in the cost, or groups fade as training goes on
    training   6,000 to 20,000 updates of up to 50 scenes, 50 passes over the data, a cosine schedule; it stops early
               once groups have formed and 4 evaluations, a fifth of the updates, made neither cost nor agreement better
    K          4 as in the paper; with true groups, as many as a scene has at most (2 to 8)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from taggernet.arrays import Array
from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.config.validate import MAX_ELEMENTS, MAX_WIDTH, check_choice
from taggernet.data import Scenes
from taggernet.data.lazy import LazyArrays, Survey, open_data, survey
from taggernet.training.datasets import IN_MEMORY

FEWEST = 20
HELD_OUT = 256 << 20  # bytes of x that a validation or test split may need
ScaleBy = Literal["element", "array", "none"]
CHANNELS = (2, 3, 4)
"""Sizes of a dimension that may be one of channels; only that of colour images is taken for one."""
MOST_UNITS = 10_000
"""Elements that may have units of their own: they are kept in config.json."""
UNCHANGED, RESOLUTION = 1e-13, 1e-7
"""What float64 and float32 can tell apart, as a share of a value."""
NEGLIGIBLE = 1e-12
"""Deviations that count as none, as a share of the largest."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Range of units."""
NOISE, V_START, V_RATE = 0.3, 1.0, 10.0
"""Real: noise in standard deviations, v at the start as a share of the variance, and its rate."""


@dataclass(frozen=True, eq=False)
class Found:
    """A user's data and their statistics."""

    name: str
    data: LazyArrays
    survey: Survey

    def __str__(self) -> str:
        s, data = self.survey, self.data
        told = "" if data.groups is None else f", true groups (up to {s.groups} in a scene, unscored elements as one)"
        if data.classes is not None:
            told += f", classes ({_known(data.classes):,} scenes labelled)"
        values = "0 and 1" if s.kind != "real" else f"{s.low:g} to {s.high:g}"
        shape = f"shape {data.shape}"
        if data.channels > 1:
            shape += f" with {data.channels} channels ({data.axis}), which share a mask"
        return f"{self.name}: {len(data):,} scenes of {shape}, {s.kind} ({values}){told}"


def choices(config: Config) -> str:
    """The inferred settings, in one line."""
    model, adam = config.model, config.optimiser
    units = "" if (model.offset, model.scale) == (0, 1) else f"x scaled as (x - {model.offset:g}) / {model.scale:g}, "
    if model.offsets:
        units = "each element of x scaled to mean 0 and deviation 1, "
    conv = f"convolutions {'-'.join(map(str, model.conv_channels))}, " if model.mapping == "conv" else ""
    return (
        f"{units}K={config.groups}, {conv}widths {'-'.join(map(str, model.widths))}, noise {model.noise:g}, "
        f"{'' if model.masks == 'mapping' else 'posterior masks, '}"
        f"{'' if model.start == 'random' else f'masks start from {model.start}, '}"
        f"learning rate {adam.lr:g}, {adam.updates:,} updates of {adam.batch} scenes"
    )


def hints(found: Found, config: Config, *, axis_given: bool = False) -> list[str]:
    """What the user may not have meant or known, one line each."""
    data, s, lines = found.data, found.survey, list[str]()
    shape = data.shape
    if data.groups is None and data.axis == "none" and len(shape) > 1 and not axis_given:
        last = shape[-1] in CHANNELS
        if last or shape[0] in CHANNELS:
            which, size, option = ("last", shape[-1], "last") if last else ("first", shape[0], "first")
            lines.append(
                f"the {which} dimension of a scene has size {size}; if these are channels of one position, such as "
                f"colours or states, which belong together, add --channels-axis {option}"
            )
    if config.model.offsets:
        constant, slight = _still(s), s.deviations > UNCHANGED * abs(s.means)
        never, hardly = int((constant & ~slight).sum()), int((constant & slight).sum())
        if never:
            lines.append(f"{never:,} of {s.means.size:,} elements never change")
        if hardly:
            lines.append(
                f"{hardly:,} of {s.means.size:,} elements change by too little beside their mean for float32 and "
                "count as constant; if these changes matter, subtract the mean first"
            )
    return lines


def look(data: str | PathLike[str] | Scenes, kind: str | None = None, channels_axis: str | None = None) -> Found:
    """Open and check your own data; ``kind`` and ``channels_axis`` are detected unless given."""
    if isinstance(data, Scenes):
        own, name = LazyArrays.of(data), IN_MEMORY
    elif not isinstance(data, str | PathLike):
        raise TypeError(f"data is of type {type(data).__name__}: give the path of a file, or Scenes.of(x) for an array")
    else:
        own, name = open_data(data, channels_axis), str(Path(data).resolve())
    if len(own) < FEWEST:
        raise ValueError(f"{own.name} has {len(own)} scenes, too few to train on: give at least {FEWEST}")
    if own.elements > MAX_ELEMENTS:
        raise ValueError(
            f"{own.name} has scenes of {own.elements:,} elements, more than {MAX_ELEMENTS:,}: cut or shrink them first"
        )
    if math.prod(own.shape) < 2:
        raise ValueError(
            f"{own.name}: x has shape {tuple(own.x.shape)}, one position in a scene, so there is nothing to group: "
            "give scenes of several"
        )
    found = survey(own, kind)
    check_spread(own, found)
    if own.classes is not None:
        _check_classes(own.name, own.classes)
    return Found(name, own, found)


def config_for(
    data: str | PathLike[str] | Scenes,
    kind: str | None = None,
    channels_axis: str | None = None,
    scale_by: ScaleBy | None = None,
) -> Config:
    """A configuration for your own data; change fields with ``dataclasses.replace`` and pass it to ``train``."""
    return configure(look(data, kind, channels_axis), scale_by)


def configure(found: Found, scale_by: ScaleBy | None = None) -> Config:
    """Apply the rules listed at the top of this module."""
    data, s = found.data, found.survey
    n, elements = len(data), data.elements
    held_out = max(1, min(10_000, n // 10, HELD_OUT // (4 * elements)))
    train = n - 2 * held_out
    batch = min(50, max(10, train // 10))
    updates = min(20_000, max(6_000, 50 * train // batch))
    widths, classes = _widths(elements), _classes(data.classes)
    groups = min(8, max(2, s.groups)) if s.groups else 4
    model = model_for(s, data.shape, widths, classes, scale_by, data.channels)
    model = replace(model, channels_first=data.axis == "first" and data.channels > 1)
    return Config(
        recipe=Path(found.name).name,
        model=model,
        data=DataConfig(name=found.name, train=train, valid=held_out, test=held_out, channels_axis=data.axis),
        optimiser=OptimiserConfig(
            lr=5e-3 if widths[0] <= 200 else 2e-3,
            batch=batch,
            updates=updates,
            schedule="cosine",
            warmup=updates // 40,
            clip=1.0,
            v_rate=V_RATE if s.kind == "real" else 1.0,
            patience=4,
        ),
        runtime=RuntimeConfig(evaluate_every=updates // 20, checkpoint_every=updates // 10),
        groups=groups,
        test_groups=groups,
        discount=0.3,
        class_cost=0.5 if classes else 0.0,
    )


def model_for(
    s: Survey,
    shape: tuple[int, ...],
    widths: tuple[int, ...],
    classes: int,
    scale_by: ScaleBy | None = None,
    channels: int = 1,
) -> TaggerConfig:
    """The model for data of this kind and spread."""
    base = TaggerConfig(
        shape, s.kind, widths, classes, norm="layer", noise=0.2, mean=min(1.0, max(0.0, s.mean)), channels=channels
    )
    if s.kind != "real":
        if scale_by not in (None, "none"):
            raise ValueError(f"scale_by={scale_by!r} was given, but x is {s.kind} and is not scaled: leave it out")
        return base
    spread, mean = (s.deviation, s.mean) if scale_by == "none" else (1.0, 0.0)
    return replace(
        base,
        norm="batch",
        noise=float(f"{NOISE * spread:.3g}"),
        mean=mean,
        v_start=max(1e-6, V_START * spread**2),
        **_units(s, shape, scale_by),
    )


def _units(s: Survey, shape: tuple[int, ...], scale_by: ScaleBy | None) -> dict[str, Any]:
    """Offset and scale, so that results do not depend on the user's units."""
    check_choice("scale_by", scale_by or "array", get_args(ScaleBy))
    if scale_by is None:
        scale_by = "element" if len(shape) == 1 and s.means.size <= MOST_UNITS else "array"
    if scale_by == "none":
        return {}
    if scale_by == "array":
        return {"offset": s.mean, "scale": s.deviation}
    if s.means.size > MOST_UNITS:
        raise ValueError(
            f"scale_by='element' was given, but a scene has {s.means.size:,} elements, more than {MOST_UNITS:,}: "
            "scale x yourself, or choose 'array'"
        )
    # An element that never changes keeps its unit, if that is more than what float32 rounds it by.
    scales = np.where(_still(s), np.maximum(1.0, 1e-6 * abs(s.means)), s.deviations)
    return {"offsets": tuple(s.means.tolist()), "scales": tuple(scales.tolist())}


def _still(s: Survey) -> Array:
    """Elements (N,) that never change as far as float32, in which the network computes, can tell.

    Beside others that change by far more, what little an element of mean 0 changes by is rounding of its making.
    """
    least = max(SMALLEST, NEGLIGIBLE * s.deviations.max())
    return np.asarray(s.deviations <= np.maximum(RESOLUTION * abs(s.means), least))


def check_spread(data: LazyArrays, s: Survey) -> None:
    """Refuse values that never change, or that float32 cannot tell apart."""
    if s.low == s.high:
        raise ValueError(f"{data.name}: every value of x is {s.low:g}, so there is nothing to group: check the data")
    if (s.deviations <= UNCHANGED * abs(s.means)).all():
        raise ValueError(f"{data.name}: every scene of x is the same, so there is nothing to learn: check the data")
    if s.kind != "real":
        return
    largest = max(abs(s.low), abs(s.high))
    if not SMALLEST < largest < LARGEST:
        raise ValueError(
            f"{data.name}: x ranges from {s.low:g} to {s.high:g}, too {'large' if largest > 1 else 'small'} for "
            f"float32: divide x by {largest:.0e} first"
        )
    alone = len(data.shape) == 1 and data.channels == 1  # each element has a unit of its own
    if _still(s).all() if alone else s.deviation <= RESOLUTION * abs(s.mean):
        raise ValueError(
            f"{data.name}: x ranges from {s.low:.12g} to {s.high:.12g}, which float32 cannot tell apart: subtract the "
            "mean of x first"
        )


def _widths(elements: int) -> tuple[int, ...]:
    widest = min(1_024, max(64, 8 * round(math.sqrt(elements))))
    return tuple(widest // share for share in (1, 2, 4))


def _classes(classes: Array | None) -> int:
    return 0 if classes is None or not _known(classes) else int(classes.max()) + 1


def _known(classes: Array) -> int:
    return int((classes.reshape(len(classes), -1) >= 0).all(1).sum())


def _check_classes(name: str, classes: Array) -> None:
    if classes.ndim == 2 and classes.shape[1] > 2:
        raise ValueError(
            f"{name}: classes has shape {classes.shape}, expected (n,) or (n, 2), as a scene shows one or two classes: "
            "for one-hot labels give classes.argmax(1)"
        )
    labelled = classes[classes.min(1) >= 0] if classes.ndim == 2 else classes[:0]
    if labelled.size and labelled.shape[1] == 2 and ((labelled.max(1) == 1) & (labelled.sum(1) == 1)).all():
        raise ValueError(
            f"{name}: classes has shape {classes.shape} and a 0 and a 1 in every row, so every scene shows both: for "
            "one-hot labels give classes.argmax(1)"
        )
    if classes.max() >= MAX_WIDTH:
        raise ValueError(
            f"{name}: classes holds {classes.max():,}, expected numbers from 0 to {MAX_WIDTH - 1:,}: number the "
            "classes without gaps, e.g. with numpy.unique(classes, return_inverse=True)[1]"
        )
    if _known(classes) and classes.max() < 1:
        raise ValueError(f"{name}: classes holds class 0 alone: give two classes or more, or leave classes out")
