"""Records under results/: a JSON file per row with its configuration, environment and the metrics of every seed.

Tables and figures are made from records alone, so whoever changes a table need not train again.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taggernet.config.run import Config, differing_fields, from_json
from taggernet.data import Scenes, coincident
from taggernet.evaluation import Evaluation, evaluate_weights
from taggernet.fileio import read_json
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split
from taggernet.training.log import environment
from taggernet.training.loop import Run

Record = dict[str, Any]


def config_record(config: Config) -> Record:
    """The configuration as JSON gives it back: tuples as lists, the runtime left out."""
    content = asdict(config)
    del content["runtime"]
    found: Record = json.loads(json.dumps(content))
    return found


def same_config(config: Config, recorded: Record, path: Path) -> bool:
    """Whether a recorded configuration is this one; fields younger than the record have their defaults."""
    return not differing_fields(config, from_json({**recorded, "runtime": {}}, path))


def load_record(config: Config, path: Path) -> Record | None:
    """The record at this path, if it is there and of the same configuration."""
    if not path.exists():
        return None
    found = read_json(path)
    return found if same_config(config, found["config"], path) else None


def evaluate_run(run: Run, scenes: Scenes) -> Evaluation:
    """All seeds of a finished run on these scenes, with the run's own K, T, starts and batch."""
    config = run.config
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    return evaluate_weights(
        model, run.weights, scenes, groups=config.test_groups, iterations=config.test_iterations,
        batch=config.evaluation_batch, starts=config.test_starts,
    )  # fmt: skip


def run_record(run: Run, begin: float, tested: Evaluation | None = None) -> Record:
    """The record of a finished run that began at this time; ``tested`` where its test split was evaluated already."""
    config = run.config
    valid = evaluate_run(run, load_split(config.data, "valid"))
    test = load_split(config.data, "test")
    tested = evaluate_run(run, test) if tested is None else tested
    return {
        "config": config_record(config),
        "environment": environment(),
        "seeds": config.seed_list,
        "training_seconds": run.seconds,
        "seconds": time.monotonic() - begin,
        "test_scenes": config.data.test,
        "coincident_share": float(coincident(test).mean()) if config.data.name == "shapes" else None,
        "valid": valid.metrics(),
        "test": tested.metrics(),
    }
