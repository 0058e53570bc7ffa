"""Checks that a configuration's model fits its data, made before the run's folder is written."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from taggernet import data
from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config, DataConfig
from taggernet.config.validate import check_count
from taggernet.data import Scenes
from taggernet.data.lazy import LazyArrays, open_data
from taggernet.tagger_input import is_another_layout
from taggernet.training.datasets import BUILT_IN, DIGITS, IN_MEMORY, load_split

FEW = 5
"""This many shapes are visible on any canvas that holds them."""


def check_data(config: Config, given: Scenes | None = None) -> None:
    """Raise ValueError if shape or kind of the scenes differ from the model's, or labels are missing."""
    wanted, model = config.data, config.model
    if given is not None and not isinstance(given, Scenes):
        raise TypeError(f"scenes is of type {type(given).__name__}: give Scenes.of(x) for an array x")
    if given is not None or wanted.name not in BUILT_IN:
        if given is None and wanted.name == IN_MEMORY:
            return  # checked when the data are needed; a finished run does not need them
        own = open_data(wanted.name, wanted.channels_axis) if given is None else LazyArrays.of(given)
        shape, kind, channels = own.shape, own.kind, own.channels
        if model.classes and own.classes is not None and own.classes.shape[1:] not in ((), (1,), (2,)):
            raise ValueError(
                f"classes has shape {own.classes.shape}, but a model tells one or two classes of a scene: give (n,) or "
                "(n, 2), or leave them out"
            )
        if config.class_cost and own.classes is not None and own.classes.max(initial=0) >= model.classes:
            highest = int(own.classes.max())
            raise ValueError(
                f"classes holds {highest}, but the model has classes={model.classes}, numbered from 0: set classes to "
                f"{highest + 1}, or number them from 0 to {model.classes - 1}"
            )
    else:
        check_built_in(wanted)
        side = 28 if wanted.name in DIGITS else wanted.size
        shape, channels = (side, side), 3 if wanted.name in ("tetrominoes", "sprites") else 1
        kind = "binary" if wanted.name in ("shapes", "tetrominoes") else "real"
        if config.class_cost and not wanted.labels:
            raise ValueError(
                f"class_cost={config.class_cost} was given, but labels=0: say how many training scenes have labels"
            )
        if config.class_cost and wanted.name not in DIGITS:
            raise ValueError(
                f"class_cost={config.class_cost} was given, but {wanted.name} scenes have no classes: set it to 0, or "
                f"choose one of {', '.join(DIGITS)}"
            )
    check_scenes(model, shape, kind, channels)
    if wanted.mode == "fresh" and (given is not None or wanted.name not in BUILT_IN):
        raise ValueError(
            "mode=fresh draws new scenes, but data of your own are what they are: set mode to fixed, or train on a "
            "built-in data set"
        )


def check_scenes(model: TaggerConfig, shape: tuple[int, ...], kind: str | None, channels: int = 1) -> None:
    """Raise ValueError if scenes of this shape and kind, with so many channels, are not those of the model."""
    if channels != model.channels:
        raise ValueError(
            f"the scenes have {channels} channel{'s' * (channels > 1)} at each of {shape} positions, but the model has "
            f"channels={model.channels}: set channels to theirs, or give scenes that have an axis of channels and say "
            "with channels_axis where it is"
        )
    if math.prod(shape) != model.positions or is_another_layout(shape, model.shape):
        raise ValueError(
            f"the scenes have shape {shape}, but the model's inputs have {model.shape}: give scenes of that shape, or "
            "train a model with theirs"
        )
    if model.kind == "binary" and kind == "real":
        raise ValueError(
            "the model's kind is binary, but the scenes hold other values than 0 and 1: train with kind=real"
        )
    if model.kind == "categorical" and kind not in (None, "categorical"):
        raise ValueError(
            "the model's kind is categorical, but the scenes are not one-hot: train with kind=real or binary"
        )


def check_built_in(wanted: DataConfig) -> None:
    """Raise ValueError if this generated data set cannot be made with these numbers of scenes and objects."""
    for name in ("train", "valid", "test"):
        check_count(name, getattr(wanted, name), low=1)
    check_count("min_objects", wanted.min_objects, low=0, high=wanted.objects)
    if wanted.name in ("tetrominoes", "sprites"):
        load_split(replace(wanted, train=1), "train")
    if wanted.name == "shapes":
        some = 100 if wanted.objects > FEW else 1
        drawn = data.shapes(some, 0, wanted.objects, wanted.size, style=wanted.style).groups
        assert drawn is not None
        seen = float(np.mean([len(np.unique(scene[scene > 0])) for scene in drawn]))
        if wanted.objects > FEW and seen < wanted.objects / 2:
            raise ValueError(
                f"objects={wanted.objects} is too many: only about {seen:.0f} of them are visible on "
                f"{wanted.size} x {wanted.size}, as objects hide each other: choose fewer"
            )
