"""Several settings of a baseline at once, so that validation can choose: each is trained as a seed would be.

    python -m paper.baselines.sweep ladder-texture-mnist-1-1k settings.json --updates 20000 --out FILE

settings.json has a name for every setting and what it changes of the baseline, e.g.

    {"as it is": {}, "more noise": {"input_noise": 1.0}, "less of the rest": {"layer_noise": 0.05, "whiten": 0.01}}

Only what is a number (or a matrix) per model can differ, so the learning rate cannot. The test split is not looked at.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paper.baselines.classifiers import Classifier
from paper.baselines.ladder_classifier import LadderClassifier, default_lambdas
from paper.baselines.model import network
from paper.baselines.recipes import BaselineConfig, baseline
from paper.baselines.recipes import quick as toy_version
from paper.baselines.run import Training, plain
from paper.baselines.whitening import Whitening
from taggernet.errors import exit_on_user_error
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.training.log import environment

FREE = ("whiten", "input_noise", "layer_noise", "lambdas")
"""The fields of a configuration that settings may change."""
Settings = dict[str, dict[str, Any]]
"""Name -> what it changes of the configuration."""


def pilot(config: BaselineConfig, settings: Settings, progress: bool = True) -> dict[str, Any]:
    """Train one model per setting, all at once, and return their costs and validation errors along the way."""
    if not settings:
        raise ValueError('there are no settings: give one at least, e.g. {"more noise": {"input_noise": 1.0}}')
    configs = [_changed(config, name, setting) for name, setting in settings.items()]
    begin = time.monotonic()
    together = replace(config, seeds=len(configs))
    training = Training(replace(together, whiten=0.0), progress)
    _tell_apart(training.model, configs, training.x)
    curve = training.run()
    return {
        "config": plain(together),
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


def _tell_apart(model: Classifier, configs: Sequence[BaselineConfig], known: torch.Tensor) -> None:
    """Give every model of the stack its own noise, costs and whitening."""

    def column(values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=known.device)

    layers = column([config.layer_noise for config in configs])
    model.noise = (column([config.input_noise for config in configs]), *[layers] * model.levels)
    model.whitening = Whitening.stacked(known, [config.whiten for config in configs])
    if isinstance(model, LadderClassifier):
        of_each = [config.lambdas or default_lambdas(model.levels) for config in configs]
        model.lambdas = tuple(column(weights) for weights in zip(*of_each, strict=True))


def errors_of(record: dict[str, Any]) -> dict[str, list[float]]:
    """Validation errors in percent by setting, from the first look to the last."""
    looks = [point["valid_error"] for point in record["curve"]]
    each = zip(record["settings"], zip(*looks, strict=True), strict=True)
    return {name: [100 * error for error in errors] for name, errors in each}


def main(args: Sequence[str] | None = None) -> None:
    """The command line, of the standard library alone: sweep run where training does."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.baselines.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="a baseline of Table 2; a wrong name lists them all")
    parser.add_argument("settings", type=Path, help="a JSON file: settings by name")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--out", type=Path, help="file of the record")
    parser.add_argument("--quick", action="store_true", help="at toy size, to see that it works")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ...")
    given = parser.parse_args(args)
    with exit_on_user_error():
        config = replace(baseline(given.name), device=given.device)
        optimiser = replace(config.optimiser, updates=given.updates)
        config = replace(config, optimiser=optimiser, evaluate_every=max(1, given.updates // 8))
        if not given.settings.is_file():
            raise FileNotFoundError(f"{given.settings} is not a file: write settings by name into one, as JSON")
        if given.out is not None:
            make_folder(given.out.parent)
        record = pilot(toy_version(config) if given.quick else config, read_json(given.settings))
        for name, errors in sorted(errors_of(record).items(), key=lambda item: item[1][-1]):
            print(f"{errors[-1]:6.2f} %  {name} (along the way {', '.join(f'{error:.1f}' for error in errors[:-1])})")
        if given.out is not None:
            write_json(given.out, record)


if __name__ == "__main__":
    main()
