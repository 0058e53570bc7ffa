"""How soon Tagger and Slot Attention group the paper's own data: AMI on validation over seconds of training.

Seconds are those of updates; data, compiling, evaluation and start-up are left out. One model is trained at a time.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.markdown import DASH, table
from paper.objects import slot_attention_for
from paper.quick import sized_config
from paper.records import Record, config_record, evaluate_run
from paper.slot_attention.run import between_looks, quick_slots, run_slot_attention
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.pretrained import evaluations
from taggernet.recipes import recipe
from taggernet.training.datasets import load_split
from taggernet.training.log import environment
from taggernet.training.loop import train_to_end

RACED = {"shapes": "shapes-best", "texture-mnist-2": "texture-mnist-2"}
"""Data -> Tagger's recipe."""
GOAL = 0.9
"""AMI."""
Curve = list[dict[str, Any]]


def race(results: Path, *, quick: bool = False, device: str = "auto") -> str:
    """Both methods on both data sets; returns the table. A record that is there already is kept."""
    make_folder(results)
    for data in RACED:
        for method, run in (("tagger", tagger_curve), ("slots", slots_curve)):
            path = results / f"race-{method}-{data}.json"
            if not path.exists():
                write_json(path, run(data, quick, device))
    return race_table(results)


def tagger_curve(data: str, quick: bool, device: str) -> Record:
    """One seed of Tagger, looked at often."""
    config = sized_config(recipe(RACED[data]), 1, device, quick)
    every = between_looks(config.optimiser.updates)
    config = replace(config, runtime=replace(config.runtime, evaluate_every=every, checkpoint_every=0))
    with tempfile.TemporaryDirectory() as folder:
        run = train_to_end(config, folder)
        found = evaluations(Path(folder))
    curve = [
        {"step": record["step"], "seconds": record["seconds_trained"], "ami": record["valid"]["ami"][0][-1]}
        for record in found
    ]
    test = evaluate_run(run, load_split(config.data, "test")).metrics()["ami"][0][-1]
    return {"config": config_record(config), "environment": environment(), "test": test, "curve": curve}


def slots_curve(data: str, quick: bool, device: str) -> Record:
    """One seed of Slot Attention, looked at often."""
    run = slot_attention_for(data, recipe(RACED[data]).data, 1, device)
    if quick:
        run = replace(quick_slots(run), evaluate_every=1)
    record = run_slot_attention(run)
    (seed,) = record["seeds"]
    curve = [
        {"step": line["step"], "seconds": line["seconds_trained"], "ami": line["valid"]["ami"]}
        for line in seed["curve"]
        if "valid" in line
    ]
    return {
        "config": record["config"], "environment": record["environment"], "test": seed["test"]["ami"], "curve": curve
    }  # fmt: skip


def seconds_to(curve: Curve, goal: float = GOAL) -> float | None:
    """Until AMI first reached the goal; None: it never did."""
    return next((point["seconds"] for point in curve if point["ami"] >= goal), None)


def race_table(results: Path, root: str | None = None) -> str:
    """Test AMI at the end, and the time to the goal; ``root`` leads from the page to the repository."""
    rows = []
    for data in RACED:
        for method, title in (("tagger", "Tagger"), ("slots", "Slot Attention")):
            path = results / f"race-{method}-{data}.json"
            if path.exists():
                record = read_json(path)
                seconds, last = seconds_to(record["curve"]), record["curve"][-1]
                link = "" if root is None else f" ([record]({root}/results/objects/{path.name}))"
                reached = DASH if seconds is None else f"{seconds:.0f} s"
                rows.append([data, title + link, f"{record['test']:.3f}", reached, f"{last['seconds']:.0f} s"])
    return "\n".join(table("", ("data", "method", "test AMI", f"time to AMI {GOAL}", "time in all"), rows))
