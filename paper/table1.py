"""Table 1 from training to records: ``reproduce_table1`` writes one record per row and the table made of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from paper.charts import generalisation_figure, worst_scenes_figure
from paper.generalisation import generalisation
from paper.published import TABLE_1A
from paper.quick import sized_config
from paper.rc import RCRun, run_rc
from paper.records import Record, config_record, load_record, run_record
from paper.table1_markdown import TITLES, table1
from taggernet.fileio import make_folder, write_json
from taggernet.recipes import recipe
from taggernet.tagger import Tagger
from taggernet.training import Config
from taggernet.training.log import environment
from taggernet.training.loop import Run, train_to_end

GENERALISED = ("shapes-layernorm", "shapes-best", "shapes-wide")
"""Rows whose models are also tried with other numbers of groups, objects and iterations."""


def reproduce_table1(
    results: Path, runs: Path | None, *, seeds: int = 20, best_seeds: int = 5, quick: bool = False, device: str = "auto"
) -> str:
    """Every row of Table 1 and our best; returns the table as markdown and writes it to results/table1.md."""
    for name in TITLES:
        count = seeds if name in TABLE_1A else min(seeds, best_seeds)
        config = sized_config(recipe(name), count, device, quick)
        reproduce_row(config, results, runs, generalised=name in GENERALISED, quick=quick)
    _reproduce_rc(results / "rc.json", quick)
    text = table1(results)
    (results / "table1.md").write_text(text)
    return text


def reproduce_row(
    config: Config, results: Path, runs: Path | None, *, generalised: bool = False, quick: bool = False,
    draw: Callable[[Run], None] | None = None,
) -> Record:  # fmt: skip
    """Train all seeds of a row (or resume them), evaluate the test split once, write the record.

    ``generalised`` also writes how the models do with other K, T and numbers of objects; ``draw`` is called with the
    run if it was trained. Records that are already there for the same configuration are kept as they are.
    """
    path, other = results / f"{config.recipe}.json", generalisation_path(config, results)
    found = load_record(config, path)
    if found is not None and (other.exists() or not generalised):
        return found
    make_folder(results)
    begin = time.monotonic()
    run = train_to_end(config, None if runs is None else runs / config.recipe)
    record = run_record(run, begin) if found is None else found
    write_json(path, record)
    if generalised:
        write_generalisation(run, results, scenes=50 if quick else 2000)
    if draw is not None:
        draw(run)
    return record


def generalisation_path(config: Config, results: Path) -> Path:
    return results / f"generalisation-{config.recipe}.json"


def write_generalisation(run: Run, results: Path, *, seeds: int = 5, scenes: int = 2000) -> Record:
    """The record and the two figures of what the first seeds do with other K, T and numbers of objects."""
    config = run.config
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    some = {name: w[:seeds] for name, w in run.weights.items()}
    record = generalisation(model, some, scenes=scenes, batch=config.evaluation_batch, data=config.data)
    record = {
        "config": config_record(config),
        "environment": environment(),
        "seeds": config.seed_list[:seeds],
        **record,
    }
    path = generalisation_path(config, results)
    generalisation_figure(record, path.with_suffix(""))
    worst_scenes_figure(run.model(), record, results / f"worst-{config.recipe}", data=config.data)
    write_json(path, record)
    return record


def _reproduce_rc(path: Path, quick: bool) -> None:
    if not path.exists():
        make_folder(path.parent)
        write_json(path, run_rc(RCRun(seeds=1, train=500, valid=100, test=100) if quick else RCRun()))
