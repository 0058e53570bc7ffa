"""Parametric mappings for TAG, and the networks that Tagger is compared with."""

from taggernet.nets.conv import ConvMapping
from taggernet.nets.ladder import Ladder, LadderMapping
from taggernet.nets.linear import Linear
from taggernet.nets.mlp import MLPMapping
from taggernet.nets.norm import BatchNorm, LayerNorm, Norm

__all__ = ["BatchNorm", "ConvMapping", "Ladder", "LadderMapping", "LayerNorm", "Linear", "MLPMapping", "Norm"]
