"""taggernet: unsupervised perceptual grouping (Tagger, Greff et al., NIPS 2016) in PyTorch."""

from taggernet import data, metrics
from taggernet.randomness import Key
from taggernet.tag import Grouping
from taggernet.tagger import Tagger, TaggerConfig

__version__ = "0.1.0"

__all__ = ["Grouping", "Key", "Tagger", "TaggerConfig", "data", "metrics"]
