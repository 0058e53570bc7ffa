"""The RC row of Table 1b: train on Shapes, group its test split, and write what came out.

    python -m paper rc --out results/table1/rc.json

# K groups · T iterations · n scenes
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from paper.rc.model import RCConfig, ReconstructionClustering
from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, check_count
from taggernet.data import Scenes, coincident, shapes
from taggernet.metrics import adjusted_mutual_information, adjusted_rand_index
from taggernet.tag.grouping import batches
from taggernet.training.log import environment


@dataclass(frozen=True)
class RCRun:
    """Both modes on Shapes, several seeds each; every choice was made on the validation split."""

    scenes: RCConfig = field(default_factory=lambda: RCConfig(lr=1e-4, epochs=7, output_bias=-3.0))
    """The network trained on whole scenes."""
    single_shapes: RCConfig = field(default_factory=RCConfig)
    """The network trained on single shapes."""
    seeds: int = 5
    """Networks per mode, with seeds first_seed, first_seed + 1, ..."""
    first_seed: int = 0
    """The first of the seeds."""
    groups: int = 3
    """K; RC has to be told."""
    iterations: int = 20
    """T; metrics are those after the last one."""
    train: int = 50_000
    """Training inputs."""
    valid: int = 2_000
    """Validation scenes: as many as the settings were chosen on."""
    test: int = 10_000
    """Test scenes; 0 leaves the test split alone, for choosing settings."""
    data_seed: int = 0
    """Fixes the data; the same for all seeds."""
    device: str = "cpu"
    """Where to compute, e.g. cuda."""
    progress: bool = True
    """Show a progress bar with the loss and the time left."""

    def __post_init__(self) -> None:
        for name, high in (("groups", MAX_GROUPS), ("iterations", MAX_ITERATIONS)):
            check_count(name, getattr(self, name), low=1, high=high)
        for name in ("seeds", "train", "valid"):
            check_count(name, getattr(self, name), low=1)
        check_count("test", self.test)


def run_rc(config: RCRun) -> dict[str, Any]:
    """Train, group and score: the record, with each mode's metrics per seed, their mean and spread."""
    began = time.perf_counter()
    splits = {name: getattr(config, name) for name in ("valid", "test") if getattr(config, name)}
    scored = {name: shapes(n, seed=config.data_seed, split=name) for name, n in splits.items()}
    record: dict[str, Any] = {
        "row": "RC",
        "paper": {"ami": 0.61, "ami_sd": 0.005},
        "config": dataclasses.asdict(config),
        "coincident": {name: float(coincident(scenes).mean()) for name, scenes in scored.items()},
        "modes": {},
        **_provenance(torch.device(config.device)),
    }
    for mode, settings, objects in (("scenes", config.scenes, 3), ("single_shapes", config.single_shapes, 1)):
        data = shapes(config.train, seed=config.data_seed, objects=objects, split="train")
        per_seed: list[dict[str, Any]] = []
        for seed in range(config.first_seed, config.first_seed + config.seeds):
            started = time.perf_counter()
            model, loss = _fit_shown(settings, data, seed, mode, config)
            trained = time.perf_counter()
            metrics: dict[str, Any] = {name: _score(model, at, config, seed) for name, at in scored.items()}
            seconds = {"training": trained - started, "evaluation": time.perf_counter() - trained}
            per_seed.append({"seed": seed, "loss": loss, "seconds": seconds} | metrics)
        record["modes"][mode] = {
            "summary": {name: _summary([one[name] for one in per_seed]) for name in scored},
            "seeds": per_seed,
        }
    record["seconds"] = time.perf_counter() - began
    return record


def _fit_shown(
    settings: RCConfig, data: Scenes, seed: int, mode: str, config: RCRun
) -> tuple[ReconstructionClustering, float]:
    """Fit under a progress bar; also the mean loss of the last updates."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("loss {task.fields[loss]:.4f}"))
    with Progress(*columns, TimeRemainingColumn(), disable=not config.progress) as bar:
        updates = settings.epochs * (len(data) // settings.batch)
        task = bar.add_task(f"RC on {mode}, seed {seed}", total=updates, loss=math.nan)
        last = math.nan

        def report(done: int, loss: float) -> None:
            nonlocal last
            last = loss
            bar.update(task, completed=done, loss=loss)

        model = ReconstructionClustering(settings, config.device).fit(data, seed, report)
    return model, last


@torch.no_grad()
def _score(model: ReconstructionClustering, scenes: Scenes, config: RCRun, seed: int) -> dict[str, Any]:
    """Means over scenes; AMI with the max normaliser after every iteration, the rest after the last."""
    rows, _ = model.flatten(scenes)
    labels: list[list[Tensor]] = []
    for first, part in batches(rows, 500):
        states = model.iterate(part, config.groups, config.iterations, seed, first)
        labels.append([state.m.argmax(-2).to(torch.uint8).cpu() for state in states])
    assert scenes.groups is not None
    true = torch.from_numpy(scenes.groups).flatten(1)
    predicted = [torch.cat(parts) for parts in zip(*labels, strict=True)]
    by_iteration = [adjusted_mutual_information(true, labelling) for labelling in predicted]
    apart = torch.from_numpy(~coincident(scenes))
    arithmetic = adjusted_mutual_information(true, predicted[-1], average="arithmetic")
    return {
        "ami": by_iteration[-1].mean().item(),
        "ami_arithmetic": arithmetic.mean().item(),
        "ari": adjusted_rand_index(true, predicted[-1]).mean().item(),
        "ami_without_coincident": by_iteration[-1][apart].mean().item(),
        "ami_by_iteration": [round(scores.mean().item(), 4) for scores in by_iteration],
    }


def _summary(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds; the spread of one seed is null."""
    names = [name for name, value in metrics[0].items() if isinstance(value, float)]
    values = {name: np.array([one[name] for one in metrics]) for name in names}
    return {"n": len(metrics)} | {
        name: {"mean": float(v.mean()), "sd": float(v.std(ddof=1)) if len(v) > 1 else None}
        for name, v in values.items()
    }


def _provenance(device: torch.device) -> dict[str, Any]:
    """Versions, commit and hardware; the commit is null outside a checkout."""
    found = environment()
    cpu = f"{found['cpu']}, {found['cores']} cores, {torch.get_num_threads()} threads"
    return {
        "versions": {name: found[name] for name in ("taggernet", "python", "torch", "numpy")},
        "commit": found["commit"],
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu,
    }
