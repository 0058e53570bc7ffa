"""taggernet: unsupervised perceptual grouping (Tagger, Greff et al., NIPS 2016) in PyTorch."""

from taggernet import data, metrics
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.run_evaluation import evaluate
from taggernet.tag import Grouping
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import Config, train
from taggernet.training.auto_config import config_for

__version__ = "0.1.0"

__all__ = [
    "Config",
    "Grouping",
    "Key",
    "Tagger",
    "TaggerConfig",
    "config_for",
    "data",
    "evaluate",
    "metrics",
    "recipe",
    "train",
]
