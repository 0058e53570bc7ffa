"""Several settings of Tagger's second phase at once, from one first phase, so that validation can choose.

    python -m paper.phase2_sweep texture-mnist-2-top-labels-1k settings.json --start FOLDER --updates 8000 --out FILE

settings.json has a name for every setting and what it changes of the recipe, e.g.

    {"as it is": {}, "faster": {"lr": 2e-3}, "old layers faster": {"old_rate": 10, "class_cost": 0.3}}

Only what is a number per model can differ; all settings share seed, data and order. The test split is never
looked at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from torch import Tensor

from taggernet.config.run import Config
from taggernet.errors import exit_on_user_error
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import datasets
from taggernet.training.adam import TrainState
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.objective import Objective
from taggernet.training.seeds import carry_over, initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update

FREE = ("lr", "class_cost", "old_rate")
"""What a setting may change; old_rate is the learning rate of the first phase's layers, relative to the fresh ones."""
LOOKS, EARLY_SCENES, GROUPED_SCENES = 4, 2_000, 1_000
"""How often validation is looked at, how much of it before the end, and how much of it for AMI."""
Settings = dict[str, dict[str, Any]]
Record = dict[str, Any]


def sweep(config: Config, first: dict[str, Tensor], settings: Settings, ema: float = 0.0) -> Record:
    """Train one second phase per setting, all at once, and return their metrics on validation along the way."""
    for name, setting in settings.items():
        if not set(setting) <= set(FREE):
            raise ValueError(f"setting {name!r} changes {', '.join(setting)}: give some of {', '.join(FREE)}")
    begin, device = time.monotonic(), pick_device(config.runtime.device)
    seeds = [config.first_seed] * len(settings)
    config = replace(config, optimiser=replace(config.optimiser, ema=ema))
    fresh = initial_weights(config.model, seeds, device)
    several = {name: w.to(device).expand(len(seeds), *w.shape[1:]) for name, w in first.items()}
    state = TrainState.fresh(carry_over(fresh, several), ema=ema > 0)
    half = device.type == "cuda" and config.precision != "float32"
    part = Part.of(config.optimiser.batch)
    objective = Objective(Tagger(config.model).to(device), config.groups, config.iterations, 1.0, config.discount)
    costs = [setting.get("class_cost", config.class_cost) for setting in settings.values()]
    objective.class_cost = torch.tensor(costs, device=device)  # type: ignore[assignment]
    source = datasets.source(config, device, seeds, part, datasets.training_set(config))
    update = Update(
        objective, source, state, config.optimiser, Key.of(seeds, device), part, half=half,
        compiled=device.type == "cuda",
    )  # fmt: skip
    update.adam.rates = [_rates(config, name, settings, first, w) for name, w in state.weights.items()]
    valid, total, curve = datasets.load_split(config.data, "valid"), config.optimiser.updates, []
    for _ in track(range(LOOKS), config.recipe):
        end = state.step + total // LOOKS
        while state.step < end:
            update.advance(int(min(end, source.valid_until(state.step), state.step + 100)) - state.step)
        scenes = valid if end >= total else valid[:EARLY_SCENES]
        curve.append({"step": state.step, **_look(config, update.current_state(), scenes)})
    return {
        "config": asdict(config), "settings": settings, "environment": environment(),
        "seconds": time.monotonic() - begin, "curve": curve,
    }  # fmt: skip


def _rates(config: Config, name: str, settings: Settings, first: dict[str, Tensor], weight: Tensor) -> Tensor:
    """(S, 1, ...): each setting's learning rate of a parameter, in units of the recipe's."""
    carried = name in first and first[name].shape[1:] == weight.shape[1:]
    rates = [
        setting.get("lr", config.optimiser.lr)
        / config.optimiser.lr
        * (setting.get("old_rate", 1.0) if carried else 1.0)
        for setting in settings.values()
    ]
    return torch.tensor(rates, device=weight.device).reshape(-1, *[1] * (weight.ndim - 1))


def _look(config: Config, state: TrainState, valid: Any) -> Record:
    model = Tagger(config.model).to(next(iter(state.weights.values())).device)
    named = {"": state.weights, "averaged_": state.average} if state.average else {"": state.weights}
    found: Record = {}
    for prefix, weights in named.items():
        of_all = evaluate_weights(model, weights, valid, **_how(config))
        of_few = evaluate_weights(model, weights, valid[:GROUPED_SCENES], **_how(config)).metrics()
        assert of_all.error is not None
        found |= {prefix + "error": of_all.error.mean(-1).tolist(), prefix + "ami": of_few["ami"]}
    return found


def _how(config: Config) -> dict[str, int]:
    return {"groups": config.test_groups, "iterations": config.test_iterations, "batch": config.evaluation_batch}


def table(record: Record, iteration: int) -> str:
    """The settings in the order of their last error after so many iterations, with AMI and the way there."""
    rows = []
    for s, (name, setting) in enumerate(record["settings"].items()):
        errors = [100 * look["error"][s][iteration - 1] for look in record["curve"]]
        last = record["curve"][-1]
        averaged = f" averaged {100 * last['averaged_error'][s][iteration - 1]:.2f}" if "averaged_error" in last else ""
        way = " ".join(f"{error:.1f}" for error in errors[:-1])
        rows.append(
            (errors[-1], f"{errors[-1]:6.2f} %{averaged} AMI {last['ami'][s][-1]:.3f} (before {way}) {name} {setting}")
        )
    return "\n".join(row for _, row in sorted(rows))


def main(args: Sequence[str] | None = None) -> None:
    """The command line, of the standard library alone: it runs where training does."""
    parser = argparse.ArgumentParser(prog="python -m paper.phase2_sweep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("name", help="a recipe of a second phase")
    parser.add_argument("settings", type=Path, help="a JSON file: settings by name")
    parser.add_argument("--start", type=Path, required=True, help="folder of a model of the first phase")
    parser.add_argument("--updates", type=int, default=8_000)
    parser.add_argument("--ema", type=float, default=0.0, help="also judge averaged weights, of this decay")
    parser.add_argument("--out", type=Path, help="file of the record")
    given = parser.parse_args(args)
    with exit_on_user_error():
        config = recipe(given.name)
        config = replace(config, optimiser=replace(config.optimiser, updates=given.updates))
        if given.out is not None:
            make_folder(given.out.parent)
        device = pick_device(config.runtime.device)
        record = sweep(config, stack_weights([Tagger.load(given.start, device)]), read_json(given.settings), given.ema)
        print(table(record, config.test_iterations))
        if given.out is not None:
            write_json(given.out, record)


if __name__ == "__main__":
    main()
