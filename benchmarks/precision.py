"""Does bfloat16 cost quality? The LayerNorm Shapes recipe, shortened, in bfloat16 and in float32 with the same seeds.

    python benchmarks/precision.py --out results/performance/precision.json
    python benchmarks/precision.py --recipe small --updates 2000 --seeds 6 --out FILE

What differs is the products and what Adam keeps between updates. Metrics are on the validation split, after every
iteration.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from taggernet.evaluation import evaluate_weights
from taggernet.recipes import RECIPES, recipe
from taggernet.tagger import Tagger
from taggernet.training import Config, train
from taggernet.training.datasets import load_split
from taggernet.training.log import environment


def shortened(name: str, seeds: int, updates: int) -> Config:
    config = recipe(name)
    runtime = replace(config.runtime, evaluate_every=0, checkpoint_every=0, log_every=500)
    return replace(config, seeds=seeds, optimiser=replace(config.optimiser, updates=updates, warmup=0), runtime=runtime)


def one(config: Config) -> dict[str, Any]:
    run = train(config)
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    scenes = load_split(config.data, "valid")[:5000]
    metrics = evaluate_weights(
        model, run.weights, scenes, groups=config.test_groups, iterations=config.test_iterations
    ).metrics()
    return {"seconds": run.seconds, **metrics}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="shapes-layernorm", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--updates", type=int, default=5000 if torch.cuda.is_available() else 20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    config = shortened(args.recipe, args.seeds, args.updates)
    if not torch.cuda.is_available() and args.recipe != "small":  # a few updates of a small model show that it works
        config = replace(config, model=replace(config.model, widths=(40, 20, 10)))
    record: dict[str, Any] = {"environment": environment(), "recipe": args.recipe, "updates": args.updates}
    record["seeds"] = config.seed_list
    for precision in ("bfloat16", "float32"):
        record[precision] = found = one(replace(config, precision=precision))  # type: ignore[arg-type]
        for name in ("ami", "cost"):
            last = [seed[-1] for seed in found[name]]
            spread = statistics.stdev(last) if len(last) > 1 else 0.0
            print(
                f"{precision:>9} {name:>5} after 5 iterations {statistics.fmean(last):.4f} +- {spread:.4f}", flush=True
            )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
