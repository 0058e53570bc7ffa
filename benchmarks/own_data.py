"""How well do the defaults group data that are not the paper's? AMI of Tagger and of classical methods, twelve kinds.

    python benchmarks/own_data.py [--kinds grey tones] [--seeds 3] [--no-tune] [--out results/own_data]

Tagger is trained as ``taggernet train FILE`` does it, once per seed; AMI is on held-out test scenes, with frozen
statistics and the K and T of the model. The classical methods (benchmarks/classical.py) are given K and choose their
settings by the true groups of validation scenes; the best of them is the one with the highest AMI there. Spoken digits
are left out unless TAGGERNET_FSDD names a folder with fsdd.npz (see benchmarks/own_data_sets.py).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from classical import METHODS, ami, best
from own_data_sets import KINDS, make
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.fileio import write_json
from taggernet.training import datasets, train_to_end
from taggernet.training.auto_config import config_for
from taggernet.training.log import environment
from taggernet.training.tune import tune

SCENES = 5_000
"""Of every kind; a tenth each is held out for validation and test."""
SCORED = 300
"""Test scenes that are scored, and validation scenes by which classical methods are tuned."""
Record = dict[str, Any]


def tagger(scenes: Scenes, config: Config, seed: int, tuned: bool) -> Record:
    """One training from the defaults, and its AMI on test scenes."""
    begin = time.monotonic()
    config = replace(config, first_seed=seed)
    tuning = None
    if tuned:
        tuning = tune(config, scenes)
        config = tuning.best
    run = train_to_end(config, scenes=scenes)
    model = run.model()
    seconds = time.monotonic() - begin
    test = datasets.load_split(config.data, "test", scenes)[:SCORED]
    return {
        "seed": seed, "ami": ami(test, lambda x: model.group(x).labels), "seconds": seconds,
        "config": asdict(config), "trials": tuning.trials if tuning else [],
    }  # fmt: skip


def classical(scenes: Scenes, config: Config, seeds: int) -> dict[str, Record]:
    """The methods, each with the settings that are best on validation."""
    train, valid, test = (datasets.load_split(config.data, part, scenes) for part in ("train", "valid", "test"))
    found = {}
    for name in METHODS:
        each = [best(name, train[:2_000], valid[:SCORED], config.groups, seed) for seed in range(seeds)]
        found[name] = {
            "valid": [one[0] for one in each], "setting": [one[1] for one in each],
            "ami": [ami(test[:SCORED], one[2]) for one in each],
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--updates", type=int, help="of the training; those of the defaults unless given")
    parser.add_argument("--no-tune", dest="tune", action="store_false")
    parser.add_argument("--no-classical", dest="classical", action="store_false")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="folder for one record per kind")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for kind in options.kinds:
        try:
            scenes = make(kind, options.scenes)
        except FileNotFoundError as missing:
            print(f"{kind}: left out, as {missing}")
            continue
        config = config_for(scenes)
        if options.updates:
            config = replace(config, optimiser=replace(config.optimiser, updates=options.updates, warmup=0))
        config = replace(config, runtime=replace(config.runtime, progress=False))
        found = [tagger(scenes, config, seed, options.tune) for seed in range(options.seeds)]
        each = [one["ami"] for one in found]
        spread = f" +- {stdev(each):.3f}" if len(each) > 1 else ""
        print(f"{kind:15} Tagger {fmean(each):.3f}{spread} in {fmean(one['seconds'] for one in found):.0f} s", end="")
        record: Record = {
            "kind": kind, "what": KINDS[kind].what, "scenes": options.scenes, "threads": options.threads,
            "tuned": options.tune, "environment": environment(), "tagger": found,
        }  # fmt: skip
        if options.classical:
            record["classical"] = classical(scenes, config, options.seeds)
            for name, one in record["classical"].items():
                print(f", {name} {fmean(one['ami']):.3f}", end="")
        print(flush=True)
        if options.out:
            write_json(options.out / f"{kind}.json", record)


if __name__ == "__main__":
    main()
