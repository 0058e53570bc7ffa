"""``taggernet demo``: a shipped model on scenes it has never seen, or a small model trained on the spot.

# n scenes · K groups · T iterations
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from taggernet import data
from taggernet.config.run import DataConfig, build, with_former_depth
from taggernet.data import Scenes
from taggernet.data.mnist import fixture_digits, mnist
from taggernet.data.scenes import one_thread
from taggernet.evaluation import Metrics, evaluate_weights, stack_weights
from taggernet.fileio import make_folder
from taggernet.model_io import read_card
from taggernet.pretrained import locate, shipped
from taggernet.recipes import recipe
from taggernet.tag import Grouping
from taggernet.tagger import Tagger
from taggernet.training import train_to_end
from taggernet.training.datasets import load_split
from taggernet.training.seeds import initial_weights
from taggernet.viz.figures import grouping_figure
from taggernet.viz.terminal import show

SCENES, DRAWN, BATCH = 200, 8, 100
"""Scenes that are grouped, scenes that are drawn, scenes that BatchNorm sees at a time."""
IMAGES, LARGE = 40, 1_000
"""Scenes that are grouped of images with more positions than this."""
SHOWN = ("cost", "ami", "ari_foreground", "error")
"""The metrics that are printed, where a model has them."""
SMALL, UPDATES = "small", 1_500
"""The recipe that is trained while one waits, and for how long."""


def demo(
    name: str, out: Path, *, scenes: int | None = None, updates: int | None = None, seed: int | None = None
) -> Path:
    """Group held-out scenes with a shipped model, print its metrics after every iteration, draw some.

    ``name`` is a shipped model or 'small', which is trained first (``updates`` and ``seed`` are for it alone);
    ``scenes`` is 200 by default, 40 for large images. Returns the path of the figure.
    """
    if scenes is not None and scenes < 1:
        raise ValueError(f"scenes={scenes} was given, but it must be at least 1")
    if name == SMALL:
        return _train_and_show(out, scenes or SCENES, UPDATES if updates is None else updates, seed or 0)
    if updates is not None or seed is not None:
        raise ValueError(f"updates and seed are for 'taggernet demo {SMALL}': the model {name!r} is trained already")
    return _show_shipped(name, out, scenes)


def _show_shipped(name: str, out: Path, count: int | None) -> Path:
    if name not in shipped():
        there = ", ".join(map(repr, [*shipped(), SMALL]))
        raise ValueError(
            f"no model {name!r} is shipped with this installation: choose {there} ({SMALL!r} is trained while you wait)"
        )
    begun = time.perf_counter()
    model, card = Tagger.from_pretrained(name), read_card(locate(name))
    lacking = [field for field in ("data", "test") if not isinstance(card.get(field), dict)]
    if lacking:
        raise ValueError(f"the card of {name!r} lacks {' and '.join(lacking)}: make it with python -m paper ship")
    groups, iterations, starts = card["test"]["groups"], card["test"]["iterations"], card["test"].get("starts", 1)
    usual = IMAGES if model.config.positions > LARGE else SCENES
    scenes, source = held_out(card["data"], count or usual)
    with one_thread():  # on two free cores it costs a few seconds, on busy ones it saves a minute
        metrics = evaluate_weights(
            model, stack_weights([model]), scenes, groups=groups, iterations=iterations, batch=BATCH, starts=starts
        ).metrics()
    seconds = time.perf_counter() - begun
    wanted = [metric for metric in SHOWN if metric in metrics]
    show(
        {_words(metric): metrics[metric] for metric in wanted}, f"{name}: {len(scenes):,} held-out {source}, K={groups}"
    )
    print(f"grouped in {seconds:.1f} s; {promise(card)}")
    together = BATCH if model.config.sees_the_batch else DRAWN
    grouping = model.group(scenes.x[:together], groups, iterations, batch_size=BATCH, starts=starts)
    return _draw(scenes[:DRAWN], grouping, out / name)


def held_out(described: dict[str, Any], count: int) -> tuple[Scenes, str]:
    """The first scenes of the test split that a card describes, and what they are."""
    name, seed = described["name"], described["seed"]
    if name in ("shapes", "tetrominoes", "sprites"):
        wanted = replace(build(DataConfig, described, "the model's card"), test=count)
        return load_split(wanted, "test"), "Shapes scenes" if name == "shapes" else f"scenes of {name}"
    digits = int(name[-1])
    try:
        images, labels = mnist("test", download=False)
        source = f"TextureMNIST{digits} scenes of MNIST's test digits"
    except FileNotFoundError:
        images, labels = fixture_digits("test")
        source = f"TextureMNIST{digits} scenes of the {len(labels)} bundled test digits"
    depth = with_former_depth(described).get("depth", "up-left")
    return data.texture_mnist(digits, "test", seed, images=images, labels=labels, n=count, depth=depth), source


def promise(card: dict[str, Any]) -> str:
    """What the card says of the model, in one line."""
    test = card["test"]
    values = ", ".join(f"{_words(name)} {test['figures'][name][-1]:.3f}" for name in SHOWN if name in test["figures"])
    return f"its card says {values} after {test['iterations']} iterations on {test['scenes']:,} test scenes"


def _words(metric: str) -> str:
    return {"ami": "AMI", "ari_foreground": "foreground ARI", "error": "class error"}.get(metric, metric)


def _train_and_show(out: Path, count: int, updates: int, seed: int) -> Path:
    """Train the small recipe and compare it with its untrained self."""
    config = recipe(SMALL)
    config = replace(
        config,
        first_seed=seed,
        data=replace(config.data, test=count),
        optimiser=replace(config.optimiser, updates=updates),
        runtime=replace(config.runtime, device="cpu"),
    )
    scenes = load_split(config.data, "test")

    def metrics(weights: dict[str, Tensor]) -> Metrics:
        return evaluate_weights(Tagger(config.model), weights, scenes, groups=config.test_groups).metrics()

    before = metrics(initial_weights(config.model, config.seed_list, "cpu"))
    make_folder(out)
    run = train_to_end(config)
    after = metrics(run.weights)
    rows = {f"{_words(k)} {when}": f[k] for k in ("cost", "ami") for when, f in (("before", before), ("after", after))}
    show(rows, f"{len(scenes):,} unseen scenes, before and after {run.seconds:.0f} s of training without labels")
    shown = scenes[:DRAWN]
    return _draw(shown, run.model().group(shown.x, groups=config.test_groups), out / SMALL)


def _draw(scenes: Scenes, grouping: Grouping, wanted: Path) -> Path:
    """The figure, under the first name that is free: an earlier one is never replaced."""
    stem, number = wanted, 1
    while stem.with_name(stem.name + ".png").exists():
        number += 1
        stem = wanted.with_name(f"{wanted.name}-{number}")
    grouping_figure(scenes, grouping, stem, pdf=False)
    path = stem.with_name(stem.name + ".png")
    print(f"{len(scenes)} scenes and their groups are drawn in {path}")
    return path
