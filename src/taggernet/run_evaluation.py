"""Evaluate a finished run: the metrics of all its seeds on a split, with any K, T and number of objects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, check_count
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, load_split
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.run_dir import models_of, read_config
from taggernet.training.validation import check_built_in


def evaluate(
    run: str | Path,
    *,
    groups: int | None = None,
    iterations: int | None = None,
    objects: int | None = None,
    split: str = "test",
    device: str = "auto",
) -> dict[str, Any]:
    """Cost, AMI, ARI and errors of every seed after every iteration; K, T and objects default to the run's own."""
    for name, value, most in (("groups", groups, MAX_GROUPS), ("iterations", iterations, MAX_ITERATIONS)):
        if value is not None:
            check_count(name, value, low=1, high=most)
    folder = Path(run)
    config = read_config(folder)
    models = models_of(folder)
    if not models:
        raise ValueError(f"{folder} holds no finished model: run 'taggernet train' on it until it ends")
    data = config.data if objects is None else replace(config.data, objects=objects)
    if objects is not None and config.data.name != "shapes":
        raise ValueError(
            f"objects={objects} was given, but {config.data.name} scenes have no such choice: leave it out"
        )
    if config.data.name in BUILT_IN:
        check_built_in(data)
    chosen = pick_device(device)
    loaded = [Tagger.load(path, chosen) for path in models]
    k = config.test_groups if groups is None else groups
    t = config.test_iterations if iterations is None else iterations
    model = loaded[0]
    model.use_kernels(config.runtime.kernels)
    metrics = evaluate_weights(
        model, stack_weights(loaded), load_split(data, split), groups=k, iterations=t,
        batch=config.evaluation_batch,
    ).metrics()  # fmt: skip
    return {
        "run": str(folder), "recipe": config.recipe, "split": split, "groups": k, "iterations": t,
        "objects": data.objects if data.name == "shapes" else None, "seeds": [p.name for p in models],
        "environment": environment(), "figures": metrics,
    }  # fmt: skip
