"""One model for any number of objects: Shapes scenes of one to five objects, with more groups than needed, and removal.

# S seeds · J objects · K groups · T iterations
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from paper.generalisation import draw_shapes
from paper.records import Record, config_record
from paper.removal import removal
from taggernet.config.run import Config
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
    cells = [
        _cell(model, run.weights, config, split, scenes, objects, groups)
        for objects in OBJECTS
        for groups in (usual_groups(objects), SPARE)
    ]
    three = draw_shapes(config.data, scenes, 0, 3, split)
    kept = [
        removal(run.model(seed), three, usual_groups(3), config.test_iterations, batch=config.evaluation_batch)
        for seed in range(config.seeds)
    ]
    return {"cells": cells, "objects_kept": [found["objects_kept"] for found in kept]}


def _cell(
    model: Tagger, weights: dict[str, Tensor], config: Config, split: str, scenes: int, objects: int, groups: int
) -> Record:
    drawn = draw_shapes(config.data, scenes, 0, objects, split)
    found = evaluate_weights(
        model, weights, drawn, groups=groups, iterations=config.test_iterations, batch=config.evaluation_batch
    ).metrics()
    last = {metric: [row[-1] for row in found[metric]] for metric in ("cost", "ami")}
    return {"objects": objects, "groups": groups, **last}


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
            words.append(f"K = {groups}: {_spread(cell['ami'], 4)} ({_spread(cell['cost'], 4)})")
        lines.append(f"{objects} objects  " + "  ".join(words))
    kept = [100 * share for share in record[split]["objects_kept"]]
    return [*lines, f"objects that keep half of their ink without their group: {_spread(kept, 1)} %"]


def _spread(values: Sequence[float], digits: int) -> str:
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.{digits}f} ± {sd:.{digits}f}"
