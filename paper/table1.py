"""Tables of the paper with our numbers beside them: records under results/ in, markdown out.

A record is one row: configuration, environment, per-seed metrics after every iteration. ``reproduce`` writes them;
everything printed here is computed from them.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from paper.charts import generalisation_figure
from paper.figure4 import worst_scenes_figure
from paper.generalisation import generalisation
from taggernet.config.run import differing_fields, from_json
from taggernet.data import Scenes, coincident
from taggernet.evaluation import Evaluation, evaluate_weights
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.recipes import recipe
from taggernet.tagger import Tagger
from taggernet.training import Config, train
from taggernet.training.datasets import load_split
from taggernet.training.log import environment
from taggernet.training.loop import Run

Record = dict[str, Any]

PAPER_TABLE_1: dict[str, dict[str, list[float]]] = {
    "shapes": {"cost": [0.094, 0.068, 0.063, 0.063, 0.063], "ami": [0.58, 0.73, 0.77, 0.79, 0.79]},
    "shapes-layernorm": {"cost": [0.100, 0.069, 0.057, 0.054, 0.054], "ami": [0.70, 0.90, 0.95, 0.96, 0.97]},
}
PAPER_TABLE_1B = {"rc": (0.61, 0.005), "shapes": (0.79, 0.034), "shapes-layernorm": (0.97, 0.009)}
TITLES = {
    "shapes": "Tagger (BatchNorm)",
    "shapes-layernorm": "Tagger* (LayerNorm)",
    "shapes-best": "Tagger, our best recipe (half the width)",
    "shapes-wide": "Tagger, the same at full width",
    "shapes-permuted": "Tagger*, permuted elements",
}


def quick(config: Config) -> Config:
    """The same run at toy size, on the digits that travel with the package: seconds, and metrics that mean nothing."""
    texture = config.data.name.startswith("texture")
    return replace(
        config,
        model=replace(
            config.model, widths=_narrow(config.model.widths), class_widths=_narrow(config.model.class_widths)
        ),
        data=replace(
            config.data,
            train=400 if texture else 200,
            valid=100,
            test=100,
            labels=min(400, 10 * -(-config.data.labels // 500)),
            digits="fixture" if texture else config.data.digits,
        ),
        optimiser=replace(config.optimiser, batch=20, updates=20, warmup=min(config.optimiser.warmup, 5)),
        runtime=replace(config.runtime, log_every=10, evaluate_every=0, evaluate_scenes=100, checkpoint_every=0),
    )


def _narrow(widths: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(8, width // 50) for width in widths)


def sized(config: Config, seeds: int, toy: bool, device: str) -> Config:
    """A row's run with so many seeds on a device, at toy size if asked."""
    config = replace(config, seeds=seeds, runtime=replace(config.runtime, device=device))
    return quick(config) if toy else config


def reproduce_row(
    config: Config, results: Path, runs: Path | None, *, beyond: bool = False, toy: bool = False
) -> Record:
    """Train all seeds of a row (or go on with them), evaluate the test split once, write the record.

    ``beyond`` also writes how the models do with other K, T and numbers of objects. Records that are already there for
    the same configuration are kept as they are.
    """
    path = results / f"{config.recipe}.json"
    found = kept(config, path)
    if found is not None and not (beyond and not beyond_path(config, results).exists()):
        return found
    make_folder(results)
    begin = time.monotonic()
    run = train(config, None if runs is None else runs / config.recipe)
    if not run.finished:
        raise KeyboardInterrupt
    record = row_record(run, begin, evaluation_of(run, load_split(config.data, "test"))) if found is None else found
    write_json(path, record)
    if beyond:
        write_beyond(run, results, scenes=50 if toy else 2000)
    return record


def beyond_path(config: Config, results: Path) -> Path:
    return results / f"generalisation-{config.recipe}.json"


def write_beyond(run: Run, results: Path, *, seeds: int = 5, scenes: int = 2000) -> Record:
    """The record and the two figures of what the first seeds do with other K, T and numbers of objects."""
    config = run.config
    model = Tagger(config.model).to(next(iter(run.weights.values())).device)
    some = {name: w[:seeds] for name, w in run.weights.items()}
    record = generalisation(model, some, scenes=scenes, batch=config.evaluation_batch, data=config.data)
    record = {"config": plain(config), "environment": environment(), "seeds": config.seed_list[:seeds], **record}
    path = beyond_path(config, results)
    generalisation_figure(record, path.with_suffix(""))
    worst_scenes_figure(run.model(), record, results / f"worst-{config.recipe}", data=config.data)
    write_json(path, record)
    return record


def kept(config: Config, path: Path) -> Record | None:
    """The record at this path, if it is there and of the same configuration."""
    if not path.exists():
        return None
    found = read_json(path)
    return found if is_of(config, found["config"], path) else None


def is_of(config: Config, recorded: Record, path: Path) -> bool:
    """Whether a recorded configuration is this one; fields younger than the record have their defaults."""
    return not differing_fields(config, from_json({**recorded, "runtime": {}}, path))


def evaluation_of(run: Run, scenes: Scenes) -> Evaluation:
    """All seeds of a finished run on these scenes."""
    config = run.config
    return evaluate_weights(
        Tagger(config.model).to(next(iter(run.weights.values())).device), run.weights, scenes,
        groups=config.test_groups, iterations=config.test_iterations, batch=config.evaluation_batch,
    )  # fmt: skip


def row_record(run: Run, begin: float, test: Evaluation) -> Record:
    """Test and validation metrics of a finished run, per seed and iteration."""
    config = run.config
    metrics = {"valid": evaluation_of(run, load_split(config.data, "valid")).metrics(), "test": test.metrics()}
    return {
        "config": plain(config),
        "environment": environment(),
        "seeds": config.seed_list,
        "training_seconds": run.seconds,
        "seconds": time.monotonic() - begin,
        "test_scenes": config.data.test,
        "coincident_share": float(coincident(test.scenes).mean()) if config.data.name == "shapes" else None,
        **metrics,
    }


def plain(config: Config) -> dict[str, Any]:
    """The configuration as JSON gives it back: tuples as lists, the runtime left out."""
    content = asdict(config)
    del content["runtime"]
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return plain


def reproduce_table1(
    results: Path,
    runs: Path | None,
    *,
    seeds: int = 20,
    best_seeds: int = 5,
    toy: bool = False,
    device: str = "auto",
    rows: Iterable[str] = ("shapes", "shapes-layernorm", "shapes-best", "shapes-wide", "shapes-permuted"),
) -> str:
    """Every row of Table 1 and our best; returns the table as markdown and writes it to results/table1.md."""
    for name in rows:
        many = seeds if name in PAPER_TABLE_1 else min(seeds, best_seeds)
        beyond = name in ("shapes-layernorm", "shapes-best", "shapes-wide")
        reproduce_row(sized(recipe(name), many, toy, device), results, runs, beyond=beyond, toy=toy)
    _reproduce_rc(results / "rc.json", toy)
    text = table1(results)
    (results / "table1.md").write_text(text)
    return text


def _reproduce_rc(path: Path, toy: bool) -> None:
    from paper.rc import RCRun, run_rc

    if not path.exists():
        small = RCRun(seeds=1, train=500, valid=100, test=100) if toy else RCRun()
        make_folder(path.parent)
        write_json(path, run_rc(small))


def spread(values: list[float], digits: int = 3) -> str:
    """mean +- sample standard deviation."""
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {sd:.{digits}f}"


def table1(results: Path, linked: bool = False) -> str:
    """Table 1a and 1b as markdown, from the records in a folder; ``linked``: each method to its recipe and record."""
    records = {name: read_json(results / f"{name}.json") for name in TITLES if (results / f"{name}.json").exists()}
    lines = ["### Table 1a: convergence over iterations (Shapes, median over seeds)", ""]
    lines += ["| row | | iter 1 | iter 2 | iter 3 | iter 4 | iter 5 |", "|---|---|---|---|---|---|---|"]
    for name, record in records.items():
        for figure, label in (("cost", "denoising cost"), ("ami", "AMI")):
            ours = np.median(np.asarray(record["test"][figure]), axis=0)
            cells = " | ".join(f"{value:.3f}" for value in ours)
            lines.append(f"| {TITLES[name]} | {label}, ours (n={len(record['seeds'])}) | {cells} |")
            if name in PAPER_TABLE_1:
                digits = {"cost": 3, "ami": 2}[figure]
                cells = " | ".join(f"{value:.{digits}f}" for value in PAPER_TABLE_1[name][figure])
                lines.append(f"| | {label}, paper | {cells} |")
    lines += ["", "### Table 1b: method comparison (mean ± sample standard deviation over seeds, T=5)", ""]
    lines += ["| method | AMI, paper | AMI (max), ours | median | AMI (arithmetic) | ARI | cost | n | verdict |"]
    lines += ["|---|---|---|---|---|---|---|---|---|", *_rc_lines(results / "rc.json", linked)]
    for name, record in records.items():
        final = {key: [row[-1] for row in values] for key, values in record["test"].items()}
        paper = PAPER_TABLE_1B.get(name)
        stated = f"{paper[0]:.2f} ± {paper[1]:g}" if paper else "-"
        where = links("src/taggernet/recipes.py", {"record": results / f"{name}.json"}) if linked else ""
        median = statistics.median(final["ami"])
        verdict = "-" if paper is None else "≥ paper" if round(median, 2) >= paper[0] else "below paper"
        lines.append(
            f"| {TITLES[name]}{where} | {stated} | {spread(final['ami'])} | {median:.3f} | "
            f"{spread(final['ami_arithmetic'])} | {spread(final['ari'])} | {statistics.median(final['cost']):.4f} | "
            f"{len(record['seeds'])} | {verdict} |"
        )
    shares = [r["coincident_share"] for r in records.values() if r.get("coincident_share") is not None]
    if shares:
        lines += ["", f"{100 * shares[0]:.2f} % of the test scenes have two shapes exactly on top of each other."]
    return "\n".join(lines) + "\n"


def links(recipe_file: str, records: dict[str, Path]) -> str:
    """To the recipe of a row and to its records, by what each is called."""
    found = [f"[recipe]({recipe_file})", *(f"[{name}]({path.as_posix()})" for name, path in records.items())]
    return f" ({', '.join(found)})"


def _rc_lines(path: Path, linked: bool) -> list[str]:
    if not path.exists():
        return []
    where = links("paper/rc/run.py", {"record": path}) if linked else ""
    lines = []
    for name, mode in read_json(path)["modes"].items():
        final = {key: [seed["test"][key] for seed in mode["seeds"]] for key in ("ami", "ami_arithmetic", "ari")}
        median, title = statistics.median(final["ami"]), f"RC, trained on {name.replace('_', ' ')}"
        lines.append(
            f"| {title}{where} | 0.61 ± 0.005 | {spread(final['ami'])} | {median:.3f} | "
            f"{spread(final['ami_arithmetic'])} | {spread(final['ari'])} | - | {len(final['ami'])} | "
            f"{'≥ paper' if round(median, 2) >= 0.61 else 'below paper'} |"
        )
    return lines
