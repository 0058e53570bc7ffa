"""The field's own benchmarks: Tagger, Slot Attention and what needs no training, on the same scenes.

NAME.json, NAME.png   Tagger, the recipe of that name: all seeds, and scenes as the first seed groups them
untrained-NAME.json   k-means of the values of each scene, and Tagger's first masks alone
slots-NAME.json       Slot Attention
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from paper.objects_figure import SHOWN, objects_figure
from paper.quick import sized_config
from paper.records import Record
from paper.slot_attention.run import PUBLISHED_RATE, SlotAttentionRun, of_length, quick_slots, run_slot_attention
from paper.table1 import reproduce_row
from paper.table1_markdown import last_iteration
from taggernet.config.run import Config, DataConfig
from taggernet.data import Scenes
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.metrics import foreground_adjusted_rand_index
from taggernet.recipes import recipe
from taggernet.training.datasets import load_split, scenes_to_start_from, training_set
from taggernet.training.log import environment
from taggernet.training.loop import Run
from taggernet.training.seeds import initial_weights, one_seed

IMAGES = ("tetrominoes", "sprites", "sprites-one-colour", "sprites-texture")
FLAT = ("sprites-ladder", "sprites-ladder-permuted")
"""Rows that Slot Attention has no part in: the Ladder knows no image, and of permuted positions none is left."""
ROWS = (*IMAGES, *FLAT)
METHODS = ("untrained", "tagger", "slots")
UNTRAINED_SCENES = 1_000
"""Test scenes for what needs no training."""
SLOT_SETTINGS = {
    "tetrominoes": (60_000, PUBLISHED_RATE), "sprites-one-colour": (5_000, 1e-3), "sprites-texture": (5_000, 1e-3)
}  # fmt: skip
"""Updates and learning rate of Slot Attention; 20,000 and the published rate unless it says so here. The paper
makes 500,000 updates. Rates were chosen on validation (results/objects/slot-rates)."""


def reproduce_objects(
    results: Path, runs: Path | None, *, rows: tuple[str, ...] = ROWS, methods: tuple[str, ...] = METHODS,
    seeds: int = 5, slot_seeds: int = 5, quick: bool = False, device: str = "auto",
) -> None:  # fmt: skip
    """Every method on every row, by the commands' own recipes; a record that is there already is kept."""
    make_folder(results)
    for name in rows:
        config = sized_config(recipe(name), seeds, device, quick)
        if "untrained" in methods and not (results / f"untrained-{name}.json").exists():
            write_json(results / f"untrained-{name}.json", untrained(config))
        if "tagger" in methods:
            reproduce_row(config, results, runs, draw=lambda run: draw_scenes(run, results))
        if "slots" in methods and name in IMAGES and not (results / f"slots-{name}.json").exists():
            run_of_slots = slot_attention_for(name, config.data, slot_seeds, device)
            record = run_slot_attention(quick_slots(run_of_slots) if quick else run_of_slots)
            write_json(results / f"slots-{name}.json", record)


def draw_scenes(run: Run, results: Path) -> None:
    """The first test scenes and what the first seed makes of them, as NAME.png."""
    config = run.config
    scenes = load_split(replace(config.data, test=SHOWN), "test")
    grouping = run.model().group(
        scenes.x, config.test_groups, config.test_iterations, batch_size=config.evaluation_batch,
        starts=config.test_starts,
    )  # fmt: skip
    objects_figure(scenes, grouping, results / config.recipe)


def slot_attention_for(name: str, data: DataConfig, seeds: int, device: str) -> SlotAttentionRun:
    """Slot Attention on the data of a recipe, with its published sizes."""
    updates, lr = SLOT_SETTINGS.get(name, (20_000, PUBLISHED_RATE))
    return of_length(SlotAttentionRun(data=data, seeds=seeds, device=device), updates, lr)


def untrained(config: Config) -> Record:
    """Foreground ARI of what needs no training, on test scenes: per scene means with their standard errors."""
    scenes = load_split(config.data, "test")[:UNTRAINED_SCENES]
    weights = initial_weights(config.model, [0], "cpu", scenes_to_start_from(config, training_set(config)))
    model = one_seed(config.model, weights, 0, groups=config.test_groups)
    first = model.group(scenes.x, iterations=1).at(0).labels
    found = {"values": kmeans_of_values(scenes, config.test_groups), "start": np.asarray(first)}
    scores = {name: foreground_ari(scenes, labels) for name, labels in found.items()}
    return {
        "recipe": config.recipe,
        "environment": environment(),
        "scenes": len(scenes),
        "test": {
            name: {"mean": float(each.mean()), "standard_error": float(each.std(ddof=1) / len(each) ** 0.5)}
            for name, each in scores.items()
        },
    }


def kmeans_of_values(scenes: Scenes, groups: int) -> np.ndarray:
    """Labels (n, P): the values of each scene's positions in K clusters, wherever they are."""
    x = np.asarray(scenes.x, np.float32).reshape(len(scenes), -1, scenes.channels)
    return np.stack([_clustered(values, groups) for values in x])


def _clustered(values: np.ndarray, groups: int) -> np.ndarray:
    count = min(groups, len(np.unique(values, axis=0)))
    return np.asarray(KMeans(count, n_init=3, random_state=0).fit_predict(values))


def foreground_ari(scenes: Scenes, labels: np.ndarray) -> np.ndarray:
    """(n,): the adjusted Rand index of each scene's objects, background left out."""
    assert scenes.groups is not None
    true, found = (of.reshape(len(scenes), -1) for of in (scenes.groups, labels))
    return foreground_adjusted_rand_index(true, found, scenes.background or 0)


def seed_scores(record: Record) -> list[float]:
    """The foreground ARI of the test split of each seed, of Tagger or of Slot Attention."""
    if "method" in record:
        return [float(seed["test"]["ari_foreground"]) for seed in record["seeds"]]
    return last_iteration(record, "ari_foreground")


def seconds_per_seed(record: Record) -> float:
    """Training time, of all seeds at once divided by their number where they were trained together."""
    if "method" in record:
        return statistics.fmean(seed["training_seconds"] for seed in record["seeds"])
    return float(record["training_seconds"]) / len(record["seeds"])


def read(results: Path, file: str) -> Record | None:
    """A record, if it is there."""
    path = results / f"{file}.json"
    return read_json(path) if path.exists() else None
