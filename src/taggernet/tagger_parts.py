"""The parts of a Tagger that its configuration names: mapping, likelihood and corruption."""

from __future__ import annotations

from torch import Tensor

from taggernet.config.model import TaggerConfig
from taggernet.nets.class_head import ClassHead
from taggernet.nets.ladder import LadderMapping
from taggernet.tag import BernoulliGroups, BitFlip, Corruption, GaussianGroups, GaussianNoise, Likelihood


def mapping_for(config: TaggerConfig) -> LadderMapping:
    """The Ladder, with the classes as its topmost level or, with ``class_widths``, a class head beside it."""
    on_top = config.classes > 0 and not config.class_widths
    gate = config.gate if config.gate != "auto" else "plain" if config.kind == "binary" else "stable"
    heads = config.heads if config.heads != "auto" else "plain" if config.norm == "layer" else "normalised"
    head = None
    if config.class_widths:
        head = ClassHead(
            config.elements, config.class_widths, config.classes, config.class_input, config.norm, config.norm_eps
        )
    return LadderMapping(
        config.elements,
        config.widths + ((config.classes + 1,) if on_top else ()),
        config.norm,
        gate,
        "softmax" if on_top else config.top,
        heads,
        config.norm_eps,
        head,
    )


def corruption_for(config: TaggerConfig, noise: Tensor | None = None) -> Corruption:
    """Bit flips for binary inputs, Gaussian noise for real ones; ``noise`` (S, 1, 1) gives each seed its own."""
    level = config.noise if noise is None else noise
    return BitFlip(level) if config.kind == "binary" else GaussianNoise(level)


def likelihood_for(config: TaggerConfig, noise: Tensor | None = None) -> Likelihood:
    """Bernoulli groups for binary inputs, Gaussian groups for real ones; ``noise`` (S, 1, 1, 1) as above."""
    level = config.noise if noise is None else noise
    if config.kind == "binary":
        return BernoulliGroups(level, config.feedback)
    return GaussianGroups(level, config.delta_z, config.ratio_variance)
