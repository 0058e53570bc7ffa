"""How well groups and classes agree with the truth: one figure per scene, numpy or torch."""

from taggernet.metrics.ami import (
    adjusted_mutual_information,
    adjusted_rand_index,
    foreground_adjusted_rand_index,
)
from taggernet.metrics.errors import classification_error, top1_error, top2_error

__all__ = [
    "adjusted_mutual_information",
    "adjusted_rand_index",
    "classification_error",
    "foreground_adjusted_rand_index",
    "top1_error",
    "top2_error",
]
