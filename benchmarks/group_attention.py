"""What attention between the groups changes: a recipe trained with it and without, same seeds and updates.

    python benchmarks/group_attention.py texture-mnist-2 --seeds 3 --updates 25000

Everything is measured on validation scenes, after every iteration. The record has the metrics of every seed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paper.markdown import mean_sd
from paper.quick import sized_config
from paper.records import config_record, evaluate_run
from taggernet.fileio import make_folder, write_json
from taggernet.recipes import recipe
from taggernet.training.datasets import load_split
from taggernet.training.log import environment
from taggernet.training.loop import train_to_end


def measure(name: str, width: int, seeds: int, updates: int, device: str, quick: bool) -> dict[str, Any]:
    """Train the seeds of a recipe with attention of this width (0: none) and evaluate its validation scenes."""
    config = sized_config(recipe(name), seeds, device, quick)
    config = replace(
        config,
        model=replace(config.model, group_attention=width),
        optimiser=replace(config.optimiser, updates=min(updates, config.optimiser.updates) if quick else updates),
        runtime=replace(config.runtime, evaluate_every=0, checkpoint_every=0, tensorboard=False),
    )
    torch.compiler.reset()
    begin = time.monotonic()
    run = train_to_end(config, None)
    found = evaluate_run(run, load_split(config.data, "valid")).metrics()
    return {
        "config": config_record(config),
        "parameters": sum(w[0].numel() for w in run.weights.values()),
        "training_seconds": run.seconds,
        "seconds": time.monotonic() - begin,
        "valid": {metric: found[metric] for metric in ("cost", "ami") if metric in found},
    }


def line(title: str, record: dict[str, Any]) -> str:
    """Mean and spread over the seeds after the last iteration."""
    words = [title]
    for metric, rows in record["valid"].items():
        words.append(f"{metric} {mean_sd([row[-1] for row in rows], 4)}")
    return "  ".join([*words, f"{record['training_seconds']:.0f} s of training"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", help="for instance shapes-any or texture-mnist-2")
    parser.add_argument("--width", type=int, default=64, help="width of the attention")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=25_000)
    parser.add_argument("--out", type=Path, help="by default results/group_attention/RECIPE.json")
    parser.add_argument("--quick", action="store_true", help="toy size: shows that it works")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    folder = Path("results/quick/group_attention" if given.quick else "results/group_attention")
    out = given.out or folder / f"{given.recipe}.json"
    make_folder(out.parent)
    record: dict[str, Any] = {"environment": environment(), "seeds": given.seeds}
    for title, width in (("without", 0), ("with", given.width)):
        record[title] = measure(given.recipe, width, given.seeds, given.updates, given.device, given.quick)
        write_json(out, record)
        print(line(f"{title} attention between groups", record[title]))


if __name__ == "__main__":
    main()
