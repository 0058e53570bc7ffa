"""Training: configuration, data on the device, the update, many seeds, checkpoints, logs."""

from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.errors import OutOfMemory
from taggernet.training.loop import Diverged, Run, train

__all__ = ["Config", "DataConfig", "Diverged", "OptimiserConfig", "OutOfMemory", "Run", "RuntimeConfig", "train"]
