"""What does freezing BatchNorm's statistics cost? AMI and class error with the batch's own and with frozen ones.

    python benchmarks/frozen_statistics.py [--model texture-mnist-2] [--json results/frozen_statistics.json]

The statistics of 2,000 training scenes are frozen; metrics are on test scenes, after every iteration, with batches of
100 and of 1. The denoising cost is left out: on corrupted input frozen models use the statistics of the batch. The data
are those on the model's card: MNIST's digits where they are at hand (TAGGERNET_DATA), else the bundled ones.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import taggernet as tn
from taggernet.config.run import DataConfig, build, with_former_depth
from taggernet.data import mnist
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import write_json
from taggernet.model_io import read_card
from taggernet.pretrained import locate
from taggernet.training.datasets import load_split
from taggernet.training.log import environment

SHOWN = ("ami", "error")


def data_of(card: dict[str, Any], train: int, test: int) -> DataConfig:
    """The data that a card describes, with as many scenes, and of the bundled digits where MNIST is not at hand."""
    described = dict(with_former_depth(card["data"]))
    try:
        mnist("test", download=False)
    except FileNotFoundError:
        described["digits"] = "fixture"
    return build(DataConfig, described | {"mode": "fixed", "train": train, "test": test}, "the card")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="texture-mnist-2", help="a shipped model's name, a folder or a Hub id")
    parser.add_argument("--scenes", type=int, default=2_000, help="training scenes whose statistics are frozen")
    parser.add_argument("--test", type=int, default=2_000, help="test scenes")
    parser.add_argument("--groups", type=int, help="K; the card's by default")
    parser.add_argument("--iterations", type=int, help="T; the card's by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the metrics to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model, card = tn.Tagger.from_pretrained(options.model), read_card(locate(options.model))
    model.config = replace(model.config, frozen_iterations=0)  # first with the statistics of the batch
    groups = options.groups or card["test"]["groups"]
    iterations = options.iterations or card["test"]["iterations"]
    data = data_of(card, options.scenes, options.test)
    train, test = load_split(data, "train"), load_split(data, "test")
    print(
        f"{options.model}: {len(test):,} test scenes of {data.name} ({data.digits} digits), K={groups}, T={iterations}"
    )
    rows: dict[str, Any] = {}

    def measure(name: str, batch: int) -> None:
        begin = time.perf_counter()
        metrics = evaluate_weights(
            model, stack_weights([model]), test, groups=groups, iterations=iterations, batch=batch
        ).metrics()
        rows[name] = {
            metric: [round(value, 5) for value in metrics[metric][0]] for metric in SHOWN if metric in metrics
        }
        values = "  ".join(f"{metric} {values[-1]:.4f}" for metric, values in rows[name].items())
        print(f"{name:<36} {values}  ({time.perf_counter() - begin:.0f} s)", flush=True)

    measure("statistics of the batch, batch 100", 100)
    begin = time.perf_counter()
    model.freeze_statistics(train, groups, iterations)
    print(f"statistics of {len(train):,} training scenes frozen in {time.perf_counter() - begin:.0f} s")
    for batch in (100, 1):
        measure(f"frozen statistics, batch {batch}", batch)
    if options.json is not None:
        setting = {name: getattr(options, name) for name in ("model", "scenes", "test", "threads")}
        described = {"data": data.name, "digits": data.digits, "depth": data.depth, "groups": groups}
        write_json(options.json, {**setting, **described, "after_each_iteration": rows, "environment": environment()})


if __name__ == "__main__":
    main()
