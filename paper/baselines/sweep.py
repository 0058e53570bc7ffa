"""Several settings of a baseline at once, so that validation can choose: each is trained as a seed would be.

Settings have a name each and say what they change of the baseline, e.g.

    {"as it is": {}, "more noise": {"input_noise": 1.0}, "less of the rest": {"layer_noise": 0.05, "whiten": 0.01}}

Only what is a number (or a matrix) per model can differ, so the learning rate cannot. The test split is not used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from paper.baselines.classifiers import Classifier
from paper.baselines.ladder_classifier import LadderClassifier, default_lambdas
from paper.baselines.model import network
from paper.baselines.recipes import BaselineConfig
from paper.baselines.run import Record, Training, config_record
from paper.baselines.whitening import Whitening
from taggernet.training.log import environment

FREE = ("whiten", "input_noise", "layer_noise", "lambdas")
"""The fields of a configuration that settings may change."""
Settings = dict[str, dict[str, Any]]
"""Name -> what it changes of the configuration."""


def sweep(config: BaselineConfig, settings: Settings, progress: bool = True) -> Record:
    """Train one model per setting, all at once, and return their costs and validation errors along the way."""
    if not settings:
        raise ValueError('there are no settings: give one at least, e.g. {"more noise": {"input_noise": 1.0}}')
    configs = [_changed(config, name, setting) for name, setting in settings.items()]
    begin = time.monotonic()
    together = replace(config, seeds=len(configs))
    training = Training(replace(together, whiten=0.0), progress)
    _give_each_its_own(training.model, configs, training.x)
    curve = training.run()
    return {
        "config": config_record(together),
        "environment": environment(),
        "settings": settings,
        "seconds": time.monotonic() - begin,
        "curve": curve,
    }


def _changed(config: BaselineConfig, name: str, setting: dict[str, Any]) -> BaselineConfig:
    """The configuration of one setting alone, refused where a run of its own would be."""
    if not isinstance(setting, dict) or not set(setting) <= set(FREE):
        given = ", ".join(setting) if isinstance(setting, dict) else setting
        raise ValueError(f"setting {name!r} changes {given}: give an object with some of {', '.join(FREE)}")
    for field, value in setting.items():
        several = field == "lambdas"
        values = value if several else [value]
        if not isinstance(values, list | tuple) or not all(
            isinstance(v, int | float) and math.isfinite(v) for v in values
        ):
            raise ValueError(
                f"setting {name!r} has {field}={value!r}: give {'a list of numbers' if several else 'a number'}"
            )
    changes: dict[str, Any] = {k: tuple(map(float, v)) if k == "lambdas" else float(v) for k, v in setting.items()}
    try:
        changed = replace(config, **changes)
        with torch.device("meta"):  # for its checks alone
            network(changed)
    except ValueError as problem:
        raise ValueError(f"setting {name!r}: {problem}") from None
    return changed


def _give_each_its_own(model: Classifier, configs: Sequence[BaselineConfig], known: torch.Tensor) -> None:
    """Give every model of the stack its own noise, costs and whitening."""

    def column(values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=known.device)

    layers = column([config.layer_noise for config in configs])
    model.noise = (column([config.input_noise for config in configs]), *[layers] * model.levels)
    model.whitening = Whitening.stacked(known, [config.whiten for config in configs])
    if isinstance(model, LadderClassifier):
        of_each = [config.lambdas or default_lambdas(model.levels) for config in configs]
        model.lambdas = tuple(column(weights) for weights in zip(*of_each, strict=True))


def errors_by_setting(record: Record) -> dict[str, list[float]]:
    """Validation errors in percent by setting, from the first evaluation to the last."""
    looks = [point["valid_error"] for point in record["curve"]]
    each = zip(record["settings"], zip(*looks, strict=True), strict=True)
    return {name: [100 * error for error in errors] for name, errors in each}
