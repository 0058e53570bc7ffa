"""The parts of a Tagger that its configuration names: mapping, likelihood, corruption and start."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from taggernet.config.model import TaggerConfig
from taggernet.nets.class_head import ClassHead, MaskConvolutions
from taggernet.nets.conv import ConvMapping
from taggernet.nets.ladder import LadderMapping
from taggernet.tag import (
    BernoulliGroups,
    BitFlip,
    CategoricalGroups,
    CategoryFlip,
    Corruption,
    GaussianGroups,
    GaussianNoise,
    Likelihood,
)
from taggernet.tag.informed import Parts, by_parts, by_places, by_value


def mapping_for(config: TaggerConfig) -> LadderMapping | ConvMapping:
    """The Ladder, alone or on top of convolutions. The classes are its topmost level or, with ``class_widths``, read
    by a class head beside it."""
    on_top = config.classes > 0 and not config.class_widths
    widths = config.widths + ((config.classes + 1,) if on_top else ())
    plain_gate = config.kind != "real" and config.mapping == "ladder"
    gate = config.gate if config.gate != "auto" else "plain" if plain_gate else "stable"
    heads = config.heads if config.heads != "auto" else "plain" if config.norm == "layer" else "normalised"
    top = "softmax" if on_top else config.top
    head = _class_head(config) if config.class_widths else None
    if config.mapping == "conv":
        height, width = config.shape
        return ConvMapping(
            (height, width), config.channels, config.conv_channels, widths, config.norm, gate, top, heads,
            config.norm_eps, head, config.patch, config.group_attention, config.lateral, config.decoder,
        )  # fmt: skip
    return LadderMapping(
        config.elements, widths, config.norm, gate, top, heads, config.norm_eps, head, channels=config.channels,
        attention=config.group_attention, lateral=config.lateral,
    )  # fmt: skip


def _class_head(config: TaggerConfig) -> ClassHead:
    convolutions = None
    if config.class_conv_channels:
        height, width = config.shape
        convolutions = MaskConvolutions((height, width), config.class_conv_channels, config.norm, config.norm_eps)
    return ClassHead(
        config.elements, config.class_widths, config.classes, config.class_input, config.norm, config.norm_eps,
        config.channels, convolutions,
    )  # fmt: skip


def corruption_for(config: TaggerConfig, noise: Tensor | None = None) -> Corruption:
    """Bit flips for binary inputs, other states for categorical ones, Gaussian noise for real ones.

    ``noise`` (S, 1, 1) gives each seed its own, of binary and real inputs.
    """
    level = config.noise if noise is None else noise
    if config.kind == "categorical":
        return CategoryFlip(config.channels, config.noise)
    return BitFlip(level) if config.kind == "binary" else GaussianNoise(level)


def likelihood_for(config: TaggerConfig, noise: Tensor | None = None) -> Likelihood:
    """Bernoulli groups for binary inputs, categorical and Gaussian groups for the others; ``noise`` (S, 1, 1, 1)."""
    level = config.noise if noise is None else noise
    if config.kind == "categorical":
        return CategoricalGroups(config.channels, config.noise, config.feedback)
    if config.kind == "binary":
        return BernoulliGroups(level, config.feedback, channels=config.channels)
    return GaussianGroups(level, config.delta_z, config.ratio_variance, channels=config.channels)


def informed_start(config: TaggerConfig, seen: Tensor | None, parts: Parts | None) -> Callable[[Tensor], Tensor] | None:
    """What makes masks that know the scene, of which the model sees ``seen``, out of random numbers; None: nothing."""
    if config.start == "random":
        return None
    if seen is None:
        raise ValueError(f"masks start from the scene's {config.start}: give what the model sees of it, seen=...")
    if config.start == "places":
        how = config.place_weight, config.start_apart, config.start_smooth, config.start_sizes
        return lambda random: by_places(seen, random, config.channels, config.shape, *how)
    if parts is None:
        return lambda random: by_value(seen, random, config.channels)
    return lambda random: by_parts(seen, random, config.channels, parts)
