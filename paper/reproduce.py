"""Behind ``python -m paper``: a table or a figure of the paper, from data to the finished file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from paper.animation import animation
from paper.any_number import any_number, summary_lines
from paper.figure4 import figure4
from paper.figure5 import figure5
from paper.objects import METHODS, reproduce_objects
from paper.objects import ROWS as OBJECT_ROWS
from paper.objects_markdown import objects_table
from paper.quick import sized_config
from paper.race import race
from paper.table1 import reproduce_table1
from paper.table2 import ROWS, reproduce_table2, train_family
from paper.table2_cells import tagger_name
from taggernet.config.run import Config, DataConfig
from taggernet.config.validate import check_choice
from taggernet.fileio import make_folder, write_json
from taggernet.recipes import RECIPES, recipe
from taggernet.tagger import Tagger
from taggernet.training.loop import train_to_end


@dataclass(frozen=True)
class Reproduction:
    """What tables and figures share."""

    seeds: int | None = None
    """Seeds of each of the paper's rows; by default as many as the paper: 20 in Table 1, 5 in Table 2."""
    quick: bool = False
    """Toy size: shows that everything works, in seconds, on any machine."""
    results: Path = Path("results")
    """Where records, tables and figures go; a record that is there already is not computed again."""
    runs: Path = Path("runs")
    """Where the runs keep their checkpoints."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    folder: ClassVar[str] = "table1"
    paper_seeds: ClassVar[int] = 5

    @property
    def seed_count(self) -> int:
        seeds = self.paper_seeds if self.seeds is None else self.seeds
        return min(seeds, 2) if self.quick else seeds

    def inside(self, folder: Path) -> Path:
        """The part of results or runs that belongs to this table; toy results stand apart."""
        return (folder / "quick" if self.quick else folder) / self.folder


@dataclass(frozen=True)
class Table1(Reproduction):
    """Shapes: AMI and denoising cost of every row, and how the models do with other K, T and numbers of objects."""

    paper_seeds: ClassVar[int] = 20

    def __call__(self) -> None:
        results, runs = self.inside(self.results), self.inside(self.runs)
        print(reproduce_table1(results, runs, seeds=self.seed_count, quick=self.quick, device=self.device))
        print(f"records and table1.md are in {results}")


@dataclass(frozen=True)
class Table2(Reproduction):
    """TextureMNIST: errors of Tagger and the baselines, permuted elements, the curve over labels."""

    rows: tuple[str, ...] = ()
    """Some of tagger, baselines, reader, best, small, fresh, permuted, curve, or cells by name; else all."""

    folder: ClassVar[str] = "table2"

    def __call__(self) -> None:
        results, runs = self.inside(self.results), self.inside(self.runs)
        text = reproduce_table2(
            results, runs, seeds=self.seed_count, quick=self.quick, device=self.device, rows=self.rows or ROWS
        )
        print(text)
        curve = " and the curve over labels (labels.pdf, labels.png)" if (results / "labels.png").exists() else ""
        print(f"records, table2.md{curve} are in {results}")


@dataclass(frozen=True)
class Objects(Reproduction):
    """Tetrominoes and sprites: foreground ARI of Tagger, of Slot Attention, and of what needs no training."""

    rows: tuple[str, ...] = OBJECT_ROWS
    """Some of tetrominoes, sprites, sprites-one-colour, sprites-texture, sprites-ladder, sprites-ladder-permuted."""
    methods: tuple[str, ...] = METHODS
    """Some of untrained, tagger, slots; Slot Attention needs the extra 'slots'."""
    slot_seeds: int = 5
    """Seeds of Slot Attention."""

    folder: ClassVar[str] = "objects"

    def __call__(self) -> None:
        results, runs = self.inside(self.results), self.inside(self.runs)
        for name, given, known in (("rows", self.rows, OBJECT_ROWS), ("methods", self.methods, METHODS)):
            for one in given:
                check_choice(name, one, known)
        reproduce_objects(
            results, runs, rows=self.rows, methods=self.methods, seeds=self.seed_count,
            slot_seeds=min(self.slot_seeds, self.seed_count), quick=self.quick, device=self.device,
        )  # fmt: skip
        print(objects_table(results))
        print(f"records are in {results}")


@dataclass(frozen=True)
class Race(Reproduction):
    """Shapes and TextureMNIST2: how soon Tagger and Slot Attention reach AMI 0.9, one seed each."""

    folder: ClassVar[str] = "objects"

    def __call__(self) -> None:
        results = self.inside(self.results)
        print(race(results, quick=self.quick, device=self.device))
        print(f"records are in {results}")


@dataclass(frozen=True)
class Figure4(Reproduction):
    """Shapes and their groups, and the animation."""

    model: str = ""
    """The model to draw, a folder or the name of a shipped one; by default the first seed of our best row, which is
    trained if runs does not hold it."""

    def __call__(self) -> None:
        results = self.inside(self.results)
        make_folder(results)
        model = Tagger.from_pretrained(self.model) if self.model else self._first_seed("shapes-best")
        shown = figure4(model, results / "figure4", scenes=100 if self.quick else 1000)
        animation(model, results / "figure4.gif")
        write_json(results / "figure4.json", {"model": Path(self.model).name if self.model else "shapes-best", **shown})
        print(f"figure 4 is in {results}: figure4.pdf, figure4.png, animated in figure4.gif, described in figure4.json")

    def _first_seed(self, name: str) -> Tagger:
        """The first model of a row's run, trained if it is not there: a record alone has no weights to draw."""
        folder = self.inside(self.runs) / name
        if (folder / "seed-0" / "config.json").exists():
            return Tagger.load(folder / "seed-0")
        return train_to_end(sized_config(recipe(name), self.seed_count, self.device, self.quick), folder).model()


@dataclass(frozen=True)
class Figure5(Reproduction):
    """Textured digits and their groups, one of them removed."""

    model: str = ""
    """The model to draw, a folder or the name of a shipped one; by default the first seed of our best row, which is
    trained if runs does not hold it."""

    folder: ClassVar[str] = "table2"

    def __call__(self) -> None:
        results, runs = self.inside(self.results), self.inside(self.runs)
        make_folder(results)
        best = tagger_name(2, 50_000, "best") in RECIPES
        one, two = (tagger_name(digits, 50_000, "best" if best else "") for digits in (1, 2))
        if not self.model and not (runs / two / "seed-0" / "config.json").exists():
            train_family(two, runs, seeds=self.seed_count, quick=self.quick, device=self.device)
        trained_on_one = not self.model and (runs / one / "seed-0" / "config.json").exists()
        shown = figure5(
            Tagger.from_pretrained(self.model or runs / two / "seed-0"),
            Tagger.load(runs / one / "seed-0") if trained_on_one else None,
            results / "figure5",
            scenes=100 if self.quick else 1000,
            data=DataConfig(name="texture-mnist-2", digits="fixture" if self.quick else "mnist"),
        )
        write_json(results / "figure5.json", {"model": Path(self.model).name if self.model else two, **shown})
        words = "a model trained on one digit" if trained_on_one else "the same model"
        print(f"figure 5 is in {results}: figure5.pdf, figure5.png, described in figure5.json")
        print(f"D, the scene of one digit, is grouped by {words}")


@dataclass(frozen=True)
class AnyNumber:
    """One model for Shapes scenes of one to five objects: AMI and cost for each number of objects, and removal."""

    seeds: int = 5
    """How many models to train."""
    group_attention: int | None = None
    """Width of the attention between groups; by default the recipe's, 0: none."""
    updates: int | None = None
    """Number of updates of each phase; by default the recipes'."""
    scenes: int = 10_000
    """Test scenes for each number of objects, five times as many as for validation."""
    test: bool = True
    """Measure the test split too; leave it out while choosing settings."""
    out: Path | None = None
    """The record; by default results/table1/any-number.json."""
    run: Path | None = None
    """Folder for the run of the second phase, its models included; by default none is kept."""
    quick: bool = False
    """Toy size: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        first, then = (self._sized(recipe(name)) for name in ("shapes-any", "shapes-any-refined"))
        out = self.out or Path("results/quick/table1" if self.quick else "results/table1") / "any-number.json"
        make_folder(out.parent)
        record = any_number(first, then, 20 if self.quick else self.scenes, self.test, self.run)
        write_json(out, record)
        print("\n".join(summary_lines(record)))

    def _sized(self, config: Config) -> Config:
        if self.group_attention is not None:
            config = replace(config, model=replace(config.model, group_attention=self.group_attention))
        if self.updates is not None:
            config = replace(config, optimiser=replace(config.optimiser, updates=self.updates))
        return sized_config(config, self.seeds, self.device, self.quick)
