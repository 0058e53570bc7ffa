"""The TAG framework: corruption, group likelihoods and the loop that drives any parametric mapping."""

from taggernet.tag.corruption import BitFlip, CategoryFlip, Corruption, GaussianNoise
from taggernet.tag.grouping import Grouping, State, Variant, run, step
from taggernet.tag.likelihood import BernoulliGroups, CategoricalGroups, GaussianGroups, Likelihood
from taggernet.tag.mapping import Mapped, Mapping
from taggernet.tag.start import start
from taggernet.tag.units import Units

__all__ = [
    "BernoulliGroups",
    "BitFlip",
    "CategoricalGroups",
    "CategoryFlip",
    "Corruption",
    "GaussianGroups",
    "GaussianNoise",
    "Grouping",
    "Likelihood",
    "Mapped",
    "Mapping",
    "State",
    "Units",
    "Variant",
    "run",
    "start",
    "step",
]
