"""One model for any number of objects: Shapes scenes of one to five objects, with more groups than needed, and removal.

# S seeds · J objects · K groups · T iterations · B batch

It is trained in two phases: with few iterations, and then with more of them.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from paper.generalisation import draw_shapes
from paper.markdown import mean_sd
from paper.records import Record, config_record
from paper.removal import removal
from taggernet.config.run import Config
from taggernet.config.validate import check_count
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights
from taggernet.metrics import adjusted_mutual_information
from taggernet.rng import Key
from taggernet.tag.grouping import State, batches
from taggernet.tagger import Tagger
from taggernet.training.log import environment
from taggernet.training.loop import Run, train_to_end

OBJECTS = (1, 2, 3, 4, 5)
SPARE = 8
"""K far above what a scene needs."""
AFTER = (5, 8)
"""The iterations after which objects are removed and several starts compared."""
STARTS, FEWER = 8, 5
"""Random starts that are compared, and how many times fewer scenes validation has than test."""
SEVERAL = (1, 3, 5)
"""Numbers of objects for which several random starts are measured too."""


def usual_groups(objects: int) -> int:
    """K for so many objects: at least one group is left for the background."""
    return 4 if objects <= 3 else 6


def any_number(first: Config, then: Config, scenes: int = 10_000, test: bool = True, out: Path | None = None) -> Record:
    """Train all seeds in two phases and measure them on validation scenes of every number of objects, and once on the
    test split; ``out`` keeps the second run, its models included."""
    check_count("scenes", scenes, low=FEWER)
    begin = time.monotonic()
    before = train_to_end(first)
    run = train_to_end(then, out, start=before.weights)
    splits = ("valid", "test") if test else ("valid",)
    return {
        "config": config_record(then),
        "first_phase": {
            "config": config_record(first),
            "training_seconds": before.seconds,
            "valid": measured(before, "valid", scenes // FEWER),
        },
        "environment": environment(),
        "seeds": then.seed_list,
        "training_seconds": run.seconds,
        "scenes": scenes,
        "starts": STARTS,
        **{split: measured(run, split, scenes if split == "test" else scenes // FEWER) for split in splits},
        "seconds": time.monotonic() - begin,
    }


@torch.no_grad()
def measured(run: Run, split: str, scenes: int, batch: int = 1_000) -> Record:
    """Cost and AMI of every seed after each iteration, for each number of objects and two K; the share of objects that
    cannot be removed; and what several random starts make of a scene."""
    config = run.config
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    drawn = {objects: draw_shapes(config.data, scenes, 0, objects, split) for objects in OBJECTS}
    cells = []
    for objects, of_number in drawn.items():
        for groups in (usual_groups(objects), SPARE):
            found = evaluate_weights(
                model, run.weights, of_number, groups=groups, iterations=max(AFTER), batch=batch
            ).metrics()
            cells.append({"objects": objects, "groups": groups, "cost": found["cost"], "ami": found["ami"]})
    models = [run.model(seed).to(model.w.device) for seed in range(config.seeds)]
    kept = {
        str(after): [removal(one, drawn[3], usual_groups(3), after, batch=batch)["objects_kept"] for one in models]
        for after in AFTER
    }
    several = [
        {
            "objects": objects,
            "groups": usual_groups(objects),
            "iterations": after,
            **_by_metric([several_starts(one, drawn[objects], usual_groups(objects), after, batch) for one in models]),
        }
        for objects in SEVERAL
        for after in AFTER
    ]
    return {"scenes": scenes, "cells": cells, "objects_kept": kept, "several_starts": several}


def _by_metric(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


@torch.no_grad()
def several_starts(
    model: Tagger, scenes: Scenes, groups: int, iterations: int, batch: int, starts: int = STARTS
) -> dict[str, float]:
    """AMI of the start that explains each scene best, and the cost of the mean of q(x) over all starts.

    The first is what ``Tagger.group(x, starts=...)`` answers. For binary scenes the mean of q(x) is the Bernoulli
    distribution of the mean of sum_k m_k z_k.
    """
    device = model.w.device
    key = Key.of(0, device).fold("evaluation")
    masks, noise = key.fold("masks"), key.fold("noise")
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    labels, costs = [], []
    for first, part in batches(x, batch):
        rows = part.to(device)
        labels.append(model.best_states(rows, groups, iterations, masks, first, None, starts)[-1].m.argmax(-2))
        last = [
            list(model.states(rows, groups, iterations, masks.fold(start), first, noise))[-1] for start in range(starts)
        ]
        mean = torch.stack([(state.m * state.z).sum(-2, keepdim=True) for state in last]).mean(0)
        costs.append(model.cost(rows, State(mean, torch.ones_like(mean), mean, mean)))
    assert scenes.groups is not None
    ami = adjusted_mutual_information(scenes.groups.reshape(len(scenes), -1), torch.cat(labels).cpu().numpy())
    return {"ami": float(np.mean(ami)), "cost": float(torch.cat(costs).mean())}


def cell_of(record: Record, split: str, objects: int, groups: int) -> Record:
    """The cell of a record for so many objects and groups."""
    return next(c for c in record[split]["cells"] if (c["objects"], c["groups"]) == (objects, groups))


def summary_lines(record: Record) -> list[str]:
    """What a record says, for the terminal."""
    split = "test" if "test" in record else "valid"
    found, lines = record[split], []
    for after in AFTER:
        lines.append(f"{split}, n = {len(record['seeds'])}, T = {after}: AMI (cost)")
        for objects in OBJECTS:
            words = []
            for groups in (usual_groups(objects), SPARE):
                cell = cell_of(record, split, objects, groups)
                ami, cost = ([row[after - 1] for row in cell[metric]] for metric in ("ami", "cost"))
                words.append(f"K = {groups}: {mean_sd(ami, 4)} ({mean_sd(cost, 4)})")
            lines.append(f"{objects} objects  " + "  ".join(words))
        kept = [100 * share for share in found["objects_kept"][str(after)]]
        lines.append(f"objects that keep half of their ink without their group: {mean_sd(kept, 1)} %")
    for one in found["several_starts"]:
        lines.append(
            f"{one['objects']} objects, K = {one['groups']}, T = {one['iterations']}, {record['starts']} starts: "
            f"{mean_sd(one['ami'], 4)} ({mean_sd(one['cost'], 4)})"
        )
    return lines
