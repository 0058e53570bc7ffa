"""Behind ``taggernet reproduce``: a table or a figure of the paper, from data to the finished file."""

from __future__ import annotations

from pathlib import Path

from paper import figure4, table1
from paper.animation import animation
from paper.figure5 import figure5
from paper.table2 import ROWS, reproduce_table2, train_family
from paper.table2_cells import tagger_name
from taggernet.config.run import DataConfig
from taggernet.fileio import make_folder, write_json
from taggernet.recipes import RECIPES, recipe
from taggernet.tagger import Tagger
from taggernet.training import train

SEEDS = {"table1": 20, "table2": 5, "figure4": 5, "figure5": 5}
"""As many as the paper's tables have; the figures show the first of our best rows' models."""


def reproduce(
    what: str,
    *,
    seeds: int | None = None,
    quick: bool = False,
    results: Path = Path("results"),
    runs: Path = Path("runs"),
    model: str = "",
    device: str = "auto",
    rows: tuple[str, ...] = (),
) -> None:
    """Make table1, table2, figure4 or figure5 and say where it is; see ``taggernet reproduce --help``."""
    if rows and what != "table2":
        raise ValueError(f"rows were given, but {what} has no such choice: leave them out")
    part = "table1" if what in ("table1", "figure4") else "table2"
    seeds = SEEDS[what] if seeds is None else seeds
    if quick:
        results, runs, seeds = results / "quick", runs / "quick", min(seeds, 2)
    results, runs = results / part, runs / part
    if what == "table1":
        print(table1.reproduce_table1(results, runs, seeds=seeds, toy=quick, device=device))
        print(f"records and table1.md are in {results}")
    elif what == "table2":
        print(reproduce_table2(results, runs, seeds=seeds, toy=quick, device=device, rows=rows or ROWS))
        curve = " and the curve over labels (labels.pdf, labels.png)" if (results / "labels.png").exists() else ""
        print(f"records, table2.md{curve} are in {results}")
    elif what == "figure4":
        _figure4(results, runs, model, seeds, quick, device)
    else:
        _figure5(results, runs, model, seeds, quick, device)


def _figure4(results: Path, runs: Path, model: str, seeds: int, quick: bool, device: str) -> None:
    make_folder(results)
    drawn = Tagger.from_pretrained(model) if model else _first_seed("shapes-best", runs, seeds, quick, device)
    shown = figure4.figure4(drawn, results / "figure4", scenes=100 if quick else 1000)
    animation(drawn, results / "figure4.gif")
    write_json(results / "figure4.json", {"model": Path(model).name if model else "shapes-best", **shown})
    print(f"figure 4 is in {results}: figure4.pdf, figure4.png, moving in figure4.gif, what it shows in figure4.json")


def _first_seed(name: str, runs: Path, seeds: int, quick: bool, device: str) -> Tagger:
    """The first model of a row's run, trained if it is not there: a record alone has no weights to draw."""
    found = runs / name / "seed-0"
    if (found / "config.json").exists():
        return Tagger.load(found)
    run = train(table1.sized(recipe(name), seeds, quick, device), runs / name)
    if not run.finished:
        raise KeyboardInterrupt
    return run.model()


def _figure5(results: Path, runs: Path, model: str, seeds: int, quick: bool, device: str) -> None:
    make_folder(results)
    names = [tagger_name(digits, 50_000, "best") for digits in (1, 2)]
    one, two = names if names[1] in RECIPES else [tagger_name(digits, 50_000) for digits in (1, 2)]
    single = runs / one / "seed-0"
    if not model and not (runs / two / "seed-0" / "config.json").exists():
        train_family(two, runs, seeds=seeds, toy=quick, device=device)
    drawn = Tagger.from_pretrained(model or runs / two / "seed-0")
    trained_on_one = not model and (single / "config.json").exists()
    shown = figure5(
        drawn,
        Tagger.load(single) if trained_on_one else None,
        results / "figure5",
        scenes=100 if quick else 1000,
        data=DataConfig(name="texture-mnist-2", digits="fixture" if quick else "mnist"),
    )
    write_json(results / "figure5.json", {"model": Path(model).name if model else two, **shown})
    words = "a model trained on one digit" if trained_on_one else "the same model"
    print(f"figure 5 is in {results}: figure5.pdf, figure5.png, and what they show in figure5.json")
    print(f"D, the scene of one digit, is grouped by {words}")
