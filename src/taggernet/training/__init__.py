"""Training: configuration, data on the device, the update, many seeds, checkpoints, logs."""

from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.training.failures import OutOfMemory
from taggernet.training.loop import Diverged, Run, train, train_to_end

__all__ = [
    "Config",
    "DataConfig",
    "Diverged",
    "OptimiserConfig",
    "OutOfMemory",
    "Run",
    "RuntimeConfig",
    "train",
    "train_to_end",
]
