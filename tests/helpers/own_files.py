"""Small data of one's own, in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.training.auto_config import config_for


def sensors(n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Two steps of different heights around 100, which of the two first, and a label for some."""
    rng = np.random.default_rng(seed)
    cut, kind = rng.integers(2, 8, n), rng.integers(0, 2, n)
    first = np.arange(10) < cut[:, None]
    x = np.where(first == kind[:, None], 90.0, 120.0) + rng.normal(0, 2, (n, 10))
    classes = np.where(np.arange(n) % 3 == 0, kind, -1)
    return {"x": x.reshape(n, 5, 2), "groups": (2 - first).reshape(n, 5, 2), "classes": classes}


def write(path: Path, arrays: dict[str, Any]) -> Path:
    if path.suffix == ".npy":
        np.save(path, arrays["x"])
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array)
    return path


def short(config: Config, **optimiser: Any) -> Config:
    return replace(
        config,
        optimiser=replace(config.optimiser, **{"updates": 6, "batch": 8, "warmup": 0} | optimiser),
        runtime=replace(
            config.runtime, progress=False, device="cpu", evaluate_every=0, checkpoint_every=2, log_every=1
        ),
    )


def own(kind: str) -> tuple[Scenes, Config]:
    """Sensors, real or binary, and a configuration for a few updates of a small model."""
    arrays = sensors()
    scenes = Scenes.of(arrays["x"]) if kind == "real" else Scenes.of((arrays["x"] > 105).astype(np.uint8))
    config = short(config_for(scenes), updates=4)
    return scenes, replace(config, model=replace(config.model, widths=(12, 6)), groups=2, test_groups=2)
