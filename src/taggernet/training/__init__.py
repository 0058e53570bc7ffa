"""Training: configuration, data on the device, the update, many seeds, checkpoints, logs."""

from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.errors import OutOfMemory
from taggernet.training.loop import Run, train, train_to_end
from taggernet.training.update_loop import Diverged

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
