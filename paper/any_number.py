"""One model for any number of objects: Shapes scenes of one to five objects, with more groups than needed, and removal.

# S seeds · J objects · K groups · T iterations
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from paper.generalisation import draw_shapes
from paper.markdown import mean_sd
from paper.records import Record, config_record
from paper.removal import removal
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights
from taggernet.tagger import Tagger
from taggernet.training.log import environment
from taggernet.training.loop import Run, train_to_end

OBJECTS = (1, 2, 3, 4, 5)
SPARE = 8
"""K far above what a scene needs."""


def usual_groups(objects: int) -> int:
    """K for so many objects: at least one group is left for the background."""
    return 4 if objects <= 3 else 6


def any_number(config: Config, scenes: int = 10_000, test: bool = True) -> Record:
    """Train all seeds and measure them on validation scenes of every number of objects, and once on the test split."""
    begin = time.monotonic()
    run = train_to_end(config, None)
    splits = ("valid", "test") if test else ("valid",)
    return {
        "config": config_record(config),
        "environment": environment(),
        "seeds": config.seed_list,
        "training_seconds": run.seconds,
        "scenes": scenes,
        "iterations": config.test_iterations,
        **{split: measured(run, split, scenes) for split in splits},
        "seconds": time.monotonic() - begin,
    }


@torch.no_grad()
def measured(run: Run, split: str, scenes: int) -> Record:
    """Cost and AMI of every seed for each number of objects and two K, and how many objects cannot be removed."""
    config = run.config
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    drawn = {objects: draw_shapes(config.data, scenes, 0, objects, split) for objects in OBJECTS}
    cells = [
        {"objects": objects, "groups": groups, **_last(model, run.weights, config, of_number, groups)}
        for objects, of_number in drawn.items()
        for groups in (usual_groups(objects), SPARE)
    ]
    kept = [
        removal(run.model(seed), drawn[3], usual_groups(3), config.test_iterations, batch=config.evaluation_batch)
        for seed in range(config.seeds)
    ]
    return {"cells": cells, "objects_kept": [found["objects_kept"] for found in kept]}


def _last(model: Tagger, weights: dict[str, Tensor], config: Config, scenes: Scenes, groups: int) -> Record:
    """Cost and AMI of every seed after the last iteration."""
    found = evaluate_weights(
        model, weights, scenes, groups=groups, iterations=config.test_iterations, batch=config.evaluation_batch
    ).metrics()
    return {metric: [row[-1] for row in found[metric]] for metric in ("cost", "ami")}


def cell_of(record: Record, split: str, objects: int, groups: int) -> Record:
    """The cell of a record for so many objects and groups."""
    return next(c for c in record[split]["cells"] if (c["objects"], c["groups"]) == (objects, groups))


def summary_lines(record: Record) -> list[str]:
    """A line for every number of objects, for the terminal."""
    split = "test" if "test" in record else "valid"
    lines = [f"{split}, n = {len(record['seeds'])}, T = {record['iterations']}: AMI (cost)"]
    for objects in OBJECTS:
        words = []
        for groups in (usual_groups(objects), SPARE):
            cell = cell_of(record, split, objects, groups)
            words.append(f"K = {groups}: {mean_sd(cell['ami'], 4)} ({mean_sd(cell['cost'], 4)})")
        lines.append(f"{objects} objects  " + "  ".join(words))
    kept = [100 * share for share in record[split]["objects_kept"]]
    return [*lines, f"objects that keep half of their ink without their group: {mean_sd(kept, 1)} %"]
