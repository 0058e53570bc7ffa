"""Turn a trained run into a model that is shipped with the package, its card included.

    python -m paper ship runs/table1/shapes-best/seed-0 shapes --record results/table1/shapes-best.json

The weights are stored in 16 bits (or 8), BatchNorm's statistics are frozen on training scenes, and the metrics on the
card are those of what is stored, on the whole test split: what ``Tagger.from_pretrained`` loads is what was measured.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from taggernet.config.run import Config, to_json
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import read_json
from taggernet.model_io import WEIGHTS, read_card
from taggernet.pretrained import SHIPPED, locate
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, FREEZE_ON, load_split
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.run_dir import read_config
from taggernet.viz.terminal import show

LIMITS = {"shapes": 8, "texture-mnist-2": 16, "sprites": 12}
"""The most a shipped model may weigh, in MB (10^6 bytes)."""
VERSIONS = ("taggernet", "commit", "python", "torch", "numpy")


@dataclass(frozen=True)
class Ship:
    """Store a trained model in 16 or 8 bits with a card: recipe, data, test metrics, date, versions."""

    run: Path
    """Folder of one seed (runs/NAME/seed-3), or of a run, of which the seed that is best on validation is taken."""
    name: str
    """The name for Tagger.from_pretrained."""
    record: Path | None = None
    """Results of the whole run (all seeds), to be named on the card."""
    to: Path = SHIPPED
    """Folder that holds the shipped models."""
    test: int | None = None
    """Test scenes to measure on; by default the run's own number."""
    bits: Literal[16, 8] = 16
    """Of the stored weights."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    overwrite: bool = False
    """Replace a model of that name."""

    def __call__(self) -> None:
        target = ship(self)
        print(f"{target} holds {(target / WEIGHTS).stat().st_size / 1e6:.1f} MB of weights and its card")


def ship(options: Ship) -> Path:
    """Store the model and return its folder; one of that name stays as it is unless ``overwrite``."""
    target = options.to / options.name
    if not options.name or Path(options.name).name != options.name:
        raise ValueError(f"name={options.name!r} is not a name: give one without slashes, e.g. shapes")
    if target.exists() and not options.overwrite:
        raise FileExistsError(f"{target} exists: choose another --name, or add --overwrite")
    if options.record is not None and not options.record.is_file():
        raise FileNotFoundError(f"the record {options.record} does not exist: name the file with the run's results")
    source = locate(options.run)
    config = read_config(source.parent)
    if config.data.name not in BUILT_IN:
        raise ValueError(f"{source.parent} was trained on {config.data.name}: only models of {BUILT_IN} are shipped")
    making = options.to / f".{options.name}.tmp"
    shutil.rmtree(making, ignore_errors=True)
    try:
        _frozen(Tagger.load(source), config).save(making, bits=options.bits)
        _check_size(options.name, making / WEIGHTS)
        card = _card(options, source, config, making)
        Tagger.load(making).save(making, card, bits=options.bits)
        (making / WEIGHTS).chmod(0o644)  # an installation is read by others than the one who made it
        if target.exists():
            shutil.rmtree(target)
        making.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def _frozen(model: Tagger, config: Config) -> Tagger:
    """BatchNorm with the statistics of training scenes: a shipped model's result depends on no other scene."""
    if config.model.norm != "batch" or model.config.frozen_iterations:
        return model
    scenes = load_split(replace(config.data, train=min(config.data.train, FREEZE_ON)), "train")
    k, t = config.test_groups, config.test_iterations
    return model.freeze_statistics(scenes, k, t, batch_size=config.optimiser.batch)


def _check_size(name: str, weights: Path) -> None:
    size, limit = weights.stat().st_size / 1e6, LIMITS.get(name)
    if limit is not None and size > limit:
        raise ValueError(f"{name} would weigh {size:.1f} MB, more than {limit} MB: train one with smaller widths")


def _card(options: Ship, source: Path, config: Config, stored: Path) -> dict[str, Any]:
    """Everything a reader of the card may ask for."""
    test = _measured(options, config, stored)
    made = environment()
    trained = source.parent / "environment.json"
    trained_with = read_json(trained) if trained.is_file() else {}
    return {
        "name": options.name,
        "recipe": config.recipe,
        "seed": read_card(source).get("seed"),
        "data": asdict(config.data),
        "configuration": _without_places(config),
        "test": test,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: made[name] for name in VERSIONS},
        "trained_with": {name: trained_with.get(name) for name in (*VERSIONS, "gpu", "cuda")},
        "record": None if options.record is None else _relative(options.record),
    }


def _measured(options: Ship, config: Config, stored: Path) -> dict[str, Any]:
    """Metrics of the stored weights on the test split, after every iteration."""
    model = Tagger.load(stored, pick_device(options.device))
    data = config.data if options.test is None else replace(config.data, test=options.test)
    scenes = load_split(data, "test")
    metrics = evaluate_weights(
        model,
        stack_weights([model]),
        scenes,
        groups=config.test_groups,
        iterations=config.test_iterations,
        batch=config.evaluation_batch,
        starts=config.test_starts,
    ).metrics()
    show(metrics, f"{options.name}: {len(scenes):,} test scenes, weights in {options.bits} bits")
    return {
        "scenes": len(scenes),
        "groups": config.test_groups,
        "iterations": config.test_iterations,
        "batch": config.evaluation_batch,
        "starts": config.test_starts,
        "weights": {16: "float16", 8: "int8"}[options.bits],
        "figures": {name: [round(value, 5) for value in values[0]] for name, values in metrics.items()},
    }


def _without_places(config: Config) -> dict[str, Any]:
    """The configuration without what belongs to one machine."""
    content = to_json(replace(config, start_from=_relative(Path(config.start_from)) if config.start_from else ""))
    return {name: value for name, value in content.items() if name not in ("model", "data", "runtime")}


def _relative(path: Path) -> str:
    """A path as the repository knows it."""
    if path.is_absolute():
        path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:])
    return path.as_posix()
