"""Evaluate a run (all its seeds) or one model on a split of its data or on another file, with any K, T and objects."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taggernet.config.run import DataConfig, to_json
from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, MAX_STARTS, check_choice, check_count
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.model_io import read_card
from taggernet.nets.norm import Kernels
from taggernet.pretrained import local_folder, locate
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, IN_MEMORY, OF_OBJECTS, load_split
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.run_dir import data_of, models_of, read_config, run_of
from taggernet.training.validation import check_built_in, check_scenes

SPLITS = ("train", "valid", "test", "all")


@dataclass(frozen=True)
class _Subject:
    """What is evaluated: models of one configuration, and how."""

    recipe: str
    models: list[Path]
    data: DataConfig | None
    """What they were trained on; None where nobody knows."""
    batch: int = 100
    kernels: Kernels = "auto"
    groups: int | None = None
    iterations: int | None = None
    starts: int = 1
    config: dict[str, Any] = field(default_factory=dict)
    """How they were trained, as far as it is known."""


def evaluate(
    run: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    groups: int | None = None,
    iterations: int | None = None,
    starts: int | None = None,
    objects: int | None = None,
    split: str | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Cost, AMI, ARI and errors of every seed after every iteration; K, T, starts and objects default to the run's own.

    ``run`` is a run's folder, a model's folder, a shipped name or a Hub id. ``data`` is another file than the one
    trained on, and all its scenes are used. With a ``split`` it is cut as that file was: give both if it was moved. It
    may also be a built-in data set.
    """
    limits = (
        ("groups", groups, MAX_GROUPS),
        ("iterations", iterations, MAX_ITERATIONS),
        ("starts", starts, MAX_STARTS),
    )
    for name, value, most in limits:
        if value is not None:
            check_count(name, value, low=1, high=most)
    subject = _subject(run)
    described = _data(subject, run, data, objects)
    built_in = described.name in BUILT_IN
    split = check_choice("split", split or ("test" if data is None or built_in else "all"), SPLITS)
    if data is None or built_in:
        _check_there(described, split, run)
    chosen = pick_device(device)
    loaded = [Tagger.load(path, chosen) for path in subject.models]
    model = loaded[0]
    if subject.data is None and model.config.channels > 1:
        described = replace(described, channels_axis=model.config.channels_axis)
    k, t = groups or subject.groups or model.groups, iterations or subject.iterations or model.iterations
    scenes = load_split(described, split)
    if not len(scenes):
        raise ValueError(f"{described.name} has too few scenes for a {split} split: set split to 'all'")
    check_scenes(model.config, scenes.shape, scenes.kind, scenes.channels)
    model.use_kernels(subject.kernels)
    metrics = evaluate_weights(
        model, stack_weights(loaded), scenes, groups=k, iterations=t, batch=subject.batch,
        starts=starts or subject.starts,
    ).metrics()  # fmt: skip
    fixed = described.name in OF_OBJECTS and described.min_objects in (0, described.objects)
    return {
        "run": str(run), "recipe": subject.recipe, "data": described.name, "split": split, "groups": k,
        "iterations": t, "starts": starts or subject.starts, "objects": described.objects if fixed else None,
        "seeds": [p.name for p in subject.models], "config": subject.config, "environment": environment(),
        "figures": metrics,
    }  # fmt: skip


def _subject(name: str | os.PathLike[str]) -> _Subject:
    """A run with all its seeds, one seed of a run, or a model by its folder, its shipped name or its Hub id."""
    folder = local_folder(name)
    if folder is not None and (folder / "config.json").is_file() and not (folder / "model.safetensors").is_file():
        models = models_of(folder)
        if not models:
            read_config(folder)  # says what is wrong if this is no run
            raise ValueError(f"{folder} holds no finished model: run 'taggernet train' on it until it ends")
        return _of_run(folder, models)
    model = locate(name)
    run = run_of(model)
    if run is not None:
        return _of_run(run, [model])
    card = read_card(model)
    recipe = str(card.get("recipe") or card.get("name") or model.name)
    return _Subject(recipe, [model], data_of(model), config=card.get("configuration", {}))


def _of_run(folder: Path, models: list[Path]) -> _Subject:
    config = read_config(folder)
    return _Subject(
        config.recipe, models, config.data, config.evaluation_batch, config.runtime.kernels, config.test_groups,
        config.test_iterations, config.test_starts, to_json(config),
    )  # fmt: skip


def _data(subject: _Subject, name: object, file: str | os.PathLike[str] | None, objects: int | None) -> DataConfig:
    """The data to evaluate on: those trained on, or a file."""
    if file is not None:
        data = replace(subject.data or DataConfig(), name=str(file))
    elif subject.data is not None:
        data = subject.data
    else:
        raise ValueError(f"{name} does not say which data it was trained on: add --data FILE")
    if objects is not None:
        if data.name not in OF_OBJECTS:
            raise ValueError(f"objects={objects} was given, but {data.name} scenes have no such choice: leave it out")
        data = replace(data, objects=objects, min_objects=0)
    return data


def _check_there(data: DataConfig, split: str, run: object) -> None:
    """Raise a ValueError or FileNotFoundError if the data trained on cannot be had again."""
    if data.name in BUILT_IN:
        if split == "all":
            raise ValueError(f"split='all' was given, but {data.name} has splits of its own: choose valid or test")
        check_built_in(data)
    elif data.name == IN_MEMORY:
        raise ValueError(f"{run} was trained on {IN_MEMORY}, which it does not keep: add --data FILE")
    elif not Path(data.name).exists():
        raise FileNotFoundError(
            f"{data.name} does not exist: if it was moved, add --data FILE --split {split}, "
            "for another file --data FILE alone"
        )
