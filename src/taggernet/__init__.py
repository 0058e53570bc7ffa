"""taggernet: unsupervised perceptual grouping (Tagger, Greff et al., NIPS 2016) in PyTorch."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from taggernet._version import __version__ as __version__

if TYPE_CHECKING:
    from taggernet import data, metrics
    from taggernet.config.model import TaggerConfig
    from taggernet.config.run import Config
    from taggernet.recipes import recipe
    from taggernet.rng import Key
    from taggernet.run_evaluation import evaluate
    from taggernet.tag import Grouping
    from taggernet.tagger import Tagger
    from taggernet.training import train
    from taggernet.training.auto_config import config_for

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

STARTED = time.monotonic()
"""When this process began to load the package, for the commands' account of where the time went."""

_HOME = {
    "Config": "config.run",
    "Grouping": "tag",
    "Key": "rng",
    "Tagger": "tagger",
    "TaggerConfig": "config.model",
    "config_for": "training.auto_config",
    "evaluate": "run_evaluation",
    "recipe": "recipes",
    "train": "training",
}
"""Public name -> the module that defines it. Imported on first use (PEP 562): --help does not wait for torch."""


def __getattr__(name: str) -> Any:
    if name in ("data", "metrics"):
        return import_module(f"taggernet.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'taggernet' has no attribute {name!r}")
    value = getattr(import_module(f"taggernet.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
