"""How well do the defaults group data that are not the paper's? AMI of Tagger and of classical methods, twelve kinds.

    python benchmarks/own_data.py [--kinds grey tones] [--seeds 3] [--only tagger|classical] [--out results/own_data]
    python benchmarks/own_data.py --join a/own_data b/own_data --out results/own_data    # records of other seeds

Tagger is trained as ``taggernet train FILE`` does it: a few settings shortly, then the one with the best score in full.
Each seed is a run of its own, tuning included. AMI is on held-out test scenes, with frozen statistics. The true groups
only give K, as they do for a user's file. Beside it stand the AMI of each trial on validation, which the choice does
not see, and Spearman's rank correlation of the two.

The classical methods (benchmarks/classical.py) are given K and choose their settings by the true groups of validation
scenes. Spoken digits are left out unless TAGGERNET_FSDD names a folder with fsdd.npz (see benchmarks/own_data_sets.py).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from scipy.stats import spearmanr

from classical import METHODS, ami, best
from own_data_sets import KINDS, make
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights
from taggernet.fileio import write_json
from taggernet.group_file import STARTS
from taggernet.tagger import Tagger
from taggernet.training import datasets, train_to_end
from taggernet.training.auto_config import config_for
from taggernet.training.log import environment
from taggernet.training.trials import JUDGED, Trial
from taggernet.training.tune import UPDATES, setting, tune

SCENES = 3_000
"""Of every kind; a tenth each is held out for validation and test."""
TUNED_ON = 100
"""Validation scenes by which classical methods choose their settings."""
Record = dict[str, Any]


def tagger(scenes: Scenes, config: Config, pilot: int) -> Record:
    """Tuning, the full training of the best setting, and AMI on test scenes, of one seed."""
    begin = time.monotonic()
    trials = tune(config, scenes, updates=pilot) if pilot else []
    chosen = trials[0].config if trials else config
    tuned = time.monotonic()
    run = train_to_end(chosen, scenes=scenes)
    model = run.model(0)
    end = time.monotonic()
    test, valid = (datasets.load_split(config.data, part, scenes) for part in ("test", "valid"))
    return {
        "ami": [ami(test, lambda x: model.group(x, starts=STARTS).labels)],
        "valid": [ami(valid, lambda x: model.group(x, starts=STARTS).labels)],
        "one_start": [ami(test, lambda x: model.group(x).labels)], "starts": STARTS,
        "seconds_tuning": [tuned - begin], "seconds_training": [end - tuned], "updates": [run.step],
        "chosen": [setting(chosen)],
        "config": {**asdict(chosen), "model": {**asdict(chosen.model), "offsets": [], "scales": []}},
        "trials": [{"seed": config.first_seed, **judged(trial, valid)} for trial in trials],
    }  # fmt: skip


def judged(trial: Trial, valid: Scenes) -> Record:
    """What the choice saw of a setting, and the AMI that it did not see."""
    found = evaluate_weights(
        Tagger(trial.config.model), trial.weights, valid[:100], groups=trial.config.test_groups,
        iterations=trial.config.test_iterations,
    )  # fmt: skip
    assert found.ami is not None
    seen = {name: getattr(trial, name) for name in JUDGED}
    return {**setting(trial.config), **seen, "ami": float(found.ami[:, -1].mean())}


def classical(scenes: Scenes, config: Config) -> dict[str, Record]:
    """The methods, each with the settings that are best on validation, of one seed."""
    train, valid, test = (datasets.load_split(config.data, part, scenes) for part in ("train", "valid", "test"))
    found = {}
    for name in METHODS:
        of_valid, chosen, label = best(name, train[:2_000], valid[:TUNED_ON], config.groups, config.first_seed)
        found[name] = {"valid": [of_valid], "setting": [chosen], "ami": [ami(test, label)]}
    return found


def joined(records: Sequence[Record]) -> Record:
    """Records of the same kind and of different seeds as one: lists one after the other."""
    found = dict(records[0])
    parts = [record["tagger"] for record in records if "tagger" in record]
    if parts:
        found["tagger"] = _chained(parts)
    methods = [record["classical"] for record in records if "classical" in record]
    if methods:
        found["classical"] = {name: _chained([one[name] for one in methods]) for name in methods[0]}
    return found


def _chained(parts: Sequence[Record]) -> Record:
    """Lists one after the other; of everything else, the first."""
    return {
        name: [one for part in parts for one in part[name]] if isinstance(value, list) else value
        for name, value in parts[0].items()
    }


def save(folder: Path, record: Record) -> Record:
    """Into the kind's file, where a part that was not measured again stays; what the file holds then."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['kind']}.json"
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    write_json(path, before | record)
    return before | record


def words(record: Record) -> str:
    """What a record says, in a line."""
    found = []
    if "tagger" in record:
        one = record["tagger"]
        found.append(f"Tagger {_mean(one['ami'])} in {fmean(one['seconds_training']):.0f} s")
        if one["trials"]:
            ranks = spearmanr([t["score"] for t in one["trials"]], [t["ami"] for t in one["trials"]]).statistic
            found.append(f"after {fmean(one['seconds_tuning']):.0f} s of tuning (rank correlation {ranks:.2f})")
    found += [f"{name} {_mean(one['ami'])}" for name, one in record.get("classical", {}).items()]
    return f"{record['kind']:15} {', '.join(found)}"


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.3f}" + (f" +- {stdev(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--only", choices=("tagger", "classical"), help="leave out the other; its record stays")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--updates", type=int, help="of the training; those of the defaults unless given")
    parser.add_argument("--pilot", type=int, default=UPDATES, help="updates per setting while tuning; 0: do not tune")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="folder for one record per kind")
    parser.add_argument("--join", type=Path, nargs="+", help="measure nothing: join the records of these folders")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for kind in options.kinds:
        try:
            record = joined(found(kind, options))
        except FileNotFoundError as missing:
            print(f"{kind}: left out, as {missing}")
            continue
        print(words(save(options.out, record) if options.out else record), flush=True)


def found(kind: str, options: argparse.Namespace) -> list[Record]:
    """The records of a kind, one for each seed or each folder to join."""
    if options.join:
        paths = [folder / f"{kind}.json" for folder in options.join if (folder / f"{kind}.json").exists()]
        if not paths:
            raise FileNotFoundError("no folder has its record")
        return [json.loads(path.read_text("utf-8")) for path in paths]
    scenes = make(kind, options.scenes)
    return [
        measured(kind, scenes, seed, options) for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]


def measured(kind: str, scenes: Scenes, seed: int, options: argparse.Namespace) -> Record:
    """One seed."""
    config = replace(config_for(scenes), first_seed=seed)
    config = replace(config, runtime=replace(config.runtime, progress=False))
    if options.updates:
        config = replace(config, optimiser=replace(config.optimiser, updates=options.updates, warmup=20))
    record: Record = {"kind": kind, "what": KINDS[kind].what, "scenes": options.scenes}
    record |= {"threads": options.threads, "environment": environment()}
    if options.only != "classical":
        record["tagger"] = tagger(scenes, config, options.pilot)
    if options.only != "tagger":
        record["classical"] = classical(scenes, config)
    return record


if __name__ == "__main__":
    main()
