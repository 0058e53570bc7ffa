"""Settings tried at once: each trained as it would be alone, and ranked without the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from own_files import sensors, short

import taggernet as tn
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.training import datasets, tune
from taggernet.training.auto_config import config_for

CPU = torch.device("cpu")


def own(kind: str) -> tuple[Scenes, Config]:
    arrays = sensors()
    scenes = Scenes.of(arrays["x"]) if kind == "real" else Scenes.of((arrays["x"] > 105).astype(np.uint8))
    config = short(config_for(scenes), updates=4)
    return scenes, replace(config, model=replace(config.model, widths=(12, 6)), groups=2, test_groups=2)


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_a_setting_in_a_stack_is_trained_as_it_is_alone(kind: str) -> None:
    scenes, config = own(kind)
    others = [config, replace(config, model=replace(config.model, noise=0.3, v_start=0.1))]
    others.append(replace(config, optimiser=replace(config.optimiser, lr=3e-3, v_rate=5.0)))
    stack = tune._Stack(others, datasets.training_set(config, scenes), CPU, updates=4, seeds=2)
    stack.run_updates()
    together = stack.update.current_state().weights
    for i, setting in enumerate(others):
        alone = tn.train(replace(setting, seeds=2), scenes=scenes).weights
        for name, weight in alone.items():
            torch.testing.assert_close(together[name][2 * i : 2 * i + 2], weight, rtol=1e-2, atol=1e-4)
