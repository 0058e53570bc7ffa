"""RUN/report.html: what a training on a user's own data came to, on one page.

# S seeds · n scenes

Written when such a training ends; ``taggernet report RUN`` writes it again.
"""

from __future__ import annotations

import json
import os
import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from taggernet._version import __version__
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.evaluation import stack_weights
from taggernet.fileio import write_durably
from taggernet.grouping_report import GroupingReport, grouping_report
from taggernet.model_io import read_card
from taggernet.pretrained import evaluations, locate
from taggernet.tag import Grouping
from taggernet.tag.units import SAME_UNITS
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, IN_MEMORY, load_split
from taggernet.training.run_dir import TUNING, models_of, read_config
from taggernet.viz.report_html import ReportContent, report_html
from taggernet.viz.scene_html import picture_kind, scenes_html

REPORT = "report.html"
SHOWN, GROUPED = 6, 100
"""Held-out scenes that are drawn, and those whose random starts are compared."""


def write_report(
    run: str | os.PathLike[str], scenes: Scenes | None = None, *, data: str | os.PathLike[str] | None = None
) -> Path:
    """Write RUN/report.html and return its path.

    ``scenes`` are held-out ones to show; without them they are read from the file trained on, or from ``data`` if that
    was moved.
    """
    folder = Path(run)
    config = read_config(folder)
    if not models_of(folder):
        raise ValueError(f"{folder} holds no finished model: run 'taggernet train' on it until it ends")
    scenes = (_held_out(folder, config, data) if scenes is None else scenes)[:GROUPED]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page says which seed is shown
        best = locate(folder)
    page = report_html(_content(folder, config, best, scenes))
    path = folder / REPORT
    write_durably(path, lambda temporary: temporary.write_text(page, "utf-8"))
    return path


def _held_out(folder: Path, config: Config, data: str | os.PathLike[str] | None) -> Scenes:
    if data is not None:
        return load_split(replace(config.data, name=str(data)), "valid")
    if config.data.name == IN_MEMORY:
        raise ValueError(f"{folder} was trained on {IN_MEMORY}, which it does not keep: add --data FILE")
    if config.data.name not in BUILT_IN and not Path(config.data.name).exists():
        raise FileNotFoundError(f"{config.data.name} does not exist: if it was moved, add --data FILE")
    return load_split(config.data, "valid")


def _content(folder: Path, config: Config, best: Path, scenes: Scenes) -> ReportContent:
    model, seed = Tagger.load(best), int(best.name.removeprefix("seed-"))
    updates = read_card(best).get("updates")
    records = [r for r in evaluations(folder) if updates is None or r["step"] <= updates]
    grouped = [record["grouping"] for record in records if "grouping" in record]
    by_parts = config.model.start == "parts"
    recorded = GroupingReport(config.test_groups, **grouped[-1], by_parts=by_parts) if grouped else None
    grouping = _group(model, config, scenes) if len(scenes) else None
    done = updates or config.optimiser.updates
    return ReportContent(
        title=config.recipe,
        subtitle=f"{_size(config, scenes)} · K={model.groups}, T={model.iterations} · {_count(config.seeds, 'seed')} · "
        f"{done:,} updates",
        binary=config.model.kind != "real",
        verdict=recorded or _verdict(folder, config, scenes),
        seeds=config.seed_list,
        best=seed,
        steps=[record["step"] for record in records],
        history=[record["valid"] for record in records],
        agreements=[of_record["agreement"] for of_record in grouped],
        by_iteration=_by_iteration(model, config, scenes) if model.groups > 1 and len(scenes) else [],
        scenes="" if grouping is None else scenes_html(*_comparable(model, scenes, grouping), SHOWN),
        settings=_settings(config, model, done),
        commands=_commands(folder, config, scenes, done),
        tuning=_tuning(folder),
        footer=f"Written by taggernet {__version__}. This file is complete: it loads nothing from anywhere.",
    )


def _group(model: Tagger, config: Config, scenes: Scenes) -> Grouping:
    """The scenes grouped, with their channels last."""
    x = np.moveaxis(scenes.x, -1, 1) if model.config.channels_first else scenes.x
    return replace(model.group(x, batch_size=config.evaluation_batch), channels_first=False)


def _comparable(model: Tagger, scenes: Scenes, grouping: Grouping) -> tuple[Scenes, Grouping]:
    """Elements with units of their own are drawn in the model's, in which one scale fits all."""
    if not model.config.offsets:
        return scenes, grouping
    x = model.units.to_model(torch.from_numpy(scenes.x).reshape(len(scenes), -1)).cpu().numpy()
    return replace(scenes, x=x.reshape(scenes.x.shape)), replace(grouping, units=SAME_UNITS)


def _verdict(folder: Path, config: Config, scenes: Scenes) -> GroupingReport | None:
    """Of a run that recorded none, as those of earlier versions."""
    if config.test_groups < 2 or not len(scenes):
        return None
    models = [Tagger.load(path) for path in models_of(folder)]
    return grouping_report(
        models[0], stack_weights(models), scenes, groups=config.test_groups, iterations=config.test_iterations,
        batch=config.evaluation_batch,
    )  # fmt: skip


def _by_iteration(model: Tagger, config: Config, scenes: Scenes) -> list[float]:
    """The agreement of random starts after 1 .. T iterations."""
    weights, use = stack_weights([model]), {"groups": model.groups, "batch": config.evaluation_batch}
    counts = range(1, model.iterations + 1)
    return [grouping_report(model, weights, scenes, iterations=i, **use).agreement[0] for i in counts]


def _tuning(folder: Path) -> list[dict[str, Any]]:
    """The settings that were tried, if there were any."""
    path = folder / TUNING
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}): remove it, or tune again") from None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError(f"{path} is not a list of settings: remove it, or tune again")
    return found


# --- words --------------------------------------------------------------------------------------------------------


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _size(config: Config, scenes: Scenes) -> str:
    return f"{_count(config.data.train, 'training scene')} of shape {tuple(scenes.x.shape[1:])}, {config.model.kind}"


def _settings(config: Config, model: Tagger, done: int) -> dict[str, str]:
    m, adam = config.model, config.optimiser
    early = "" if done >= adam.updates else f" of {adam.updates:,}: it stopped early, as nothing got better"
    units = "as they are" if (m.offset, m.scale) == (0, 1) else f"(x - {m.offset:g}) / {m.scale:g}"
    units = "each element by itself, (x - offset) / scale; also in the pictures above" if m.offsets else units
    noise = f"each bit flips with {m.noise:g}" if m.kind != "real" else f"standard deviation {m.noise:g}"
    found = {
        "groups and iterations": f"K={config.groups}, T={config.iterations} in training; "
        f"K={model.groups}, T={model.iterations} in use",
        "network": f"widths {'-'.join(map(str, m.widths))}, {m.norm} normalisation, {_parameters(model):,} parameters",
        "units": units,
        "noise": noise,
        "updates": f"{done:,}{early}",
        "scenes per update": f"{adam.batch:,}",
        "learning rate": f"{adam.lr:g}, {adam.schedule}",
    }
    if m.kind == "real":
        found["variance v"] = f"{m.v_start:g} at first, {model.v.item():.3g} in the end (model units)"
    if config.start_from:
        found["started from"] = config.start_from
    if m.classes:
        found["classes"] = f"{m.classes}, weight of their cost {config.class_cost:g}"
    return found


def _parameters(model: Tagger) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _commands(folder: Path, config: Config, scenes: Scenes, done: int) -> list[tuple[str, str]]:
    """How to go on, as commands to copy."""
    run, file = shlex.quote(str(folder)), shlex.quote(config.data.name)
    own = config.data.name not in (*BUILT_IN, IN_MEMORY)
    more = max(2 * done, config.optimiser.updates)
    found = [("Group more scenes with this model:", f"taggernet group {run} more.npz --out groups.npz")]
    if scenes.groups is not None or config.model.classes:
        found.append(("Measure it on scenes it has never seen:", f"taggernet evaluate {run}"))
    if picture_kind(scenes) == "image" and (scenes.x.ndim == 3 or scenes.channels > 1):
        found.append(("Watch groups form:", f"taggernet explore {run}"))
    if own:
        longer = f"taggernet train {file} --out {run} --updates {more} --patience 0"
        found.append(("Train it for longer, with the same options as before and:", longer))
    found.append(("Start from it on other data of the same shape:", f"taggernet train other.npz --finetune {run}"))
    python = f"import taggernet as tn\nout = tn.Tagger.from_pretrained({str(folder)!r}).group(x)\n"
    found.append(("In Python:", f"{python}out.labels, out.masks, out.reconstructions"))
    return found
