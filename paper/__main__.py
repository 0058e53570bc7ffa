"""python -m paper COMMAND: the paper's tables and figures, its baselines, and the shipped models.

The only module here that imports tyro: training runs where it is not installed.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from paper.baselines import baseline, quick, run_baseline
from paper.baselines.sweep import errors_by_setting, sweep
from paper.perfect_masks import PerfectMasks
from paper.phase2_sweep import phase2_sweep, ranking
from paper.probes import Probes
from paper.quick import sized_config
from paper.rc import RCRun, run_rc
from paper.removal import removal
from paper.reproduce import AnyNumber, Figure4, Figure5, Objects, Race, Table1, Table2
from paper.shipping import Ship
from paper.slot_attention.run import PUBLISHED_RATE
from taggernet.data import shapes
from taggernet.errors import exit_on_user_error
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.recipes import recipe
from taggernet.tagger import Tagger
from taggernet.training.distributed import pick_device
from taggernet.training.finetune import start_weights

INTERRUPTED = 130


@dataclass(frozen=True)
class Baseline:
    """Train one baseline of Table 2 and write its record."""

    name: Annotated[str, tyro.conf.Positional]
    """Which one, e.g. ladder-texture-mnist-2-1k; a wrong name gets a suggestion."""
    out: Path = Path("results/table2")
    """Folder of the record, NAME.json."""
    quick: bool = False
    """Toy size: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        config = replace(baseline(self.name), device=self.device)
        make_folder(self.out)
        record = run_baseline(quick(config) if self.quick else config)
        write_json(self.out / f"{self.name}.json", record)
        for part in ("valid", "test"):
            errors = [100 * row[-1] for row in record[part]["error"]]
            sd = statistics.stdev(errors) if len(errors) > 1 else 0.0
            print(f"{self.name} {part} error {statistics.fmean(errors):.2f} ± {sd:.2f} % over {len(errors)} seeds")


@dataclass(frozen=True)
class Sweep:
    """Train several settings of a baseline at once, like seeds, and rank them by their validation error.

    The settings are a JSON file, {"more noise": {"input_noise": 1.0}, "unwhitened": {"whiten": 0}}: a name for each and
    what it changes (whiten, input_noise, layer_noise, lambdas). The test split is not used.
    """

    name: Annotated[str, tyro.conf.Positional]
    """A baseline of Table 2; a wrong name gets a suggestion."""
    settings: Annotated[Path, tyro.conf.Positional]
    """A JSON file: settings by name."""
    updates: int = 20_000
    """Number of updates."""
    out: Path | None = None
    """File of the record."""
    quick: bool = False
    """Toy size: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        config = replace(baseline(self.name), device=self.device, evaluate_every=max(1, self.updates // 8))
        config = replace(config, optimiser=replace(config.optimiser, updates=self.updates))
        settings = _read_settings(self.settings)
        if self.out is not None:
            make_folder(self.out.parent)
        record = sweep(quick(config) if self.quick else config, settings)
        for name, errors in sorted(errors_by_setting(record).items(), key=lambda item: item[1][-1]):
            print(f"{errors[-1]:6.2f} %  {name} (earlier {', '.join(f'{error:.1f}' for error in errors[:-1])})")
        if self.out is not None:
            write_json(self.out, record)


@dataclass(frozen=True)
class Phase2Sweep:
    """Train several settings of Tagger's second phase at once, like seeds, and rank them by their validation error.

    The settings are a JSON file, {"faster": {"lr": 2e-3}, "old layers faster": {"old_rate": 10}}: a name for each and
    what it changes (lr, class_cost, class_dropout, noise, old_rate: the rate of the first phase's layers relative to
    the fresh ones', old_wait: updates for which they stay as they are).
    """

    name: Annotated[str, tyro.conf.Positional]
    """A recipe of a second phase."""
    settings: Annotated[Path, tyro.conf.Positional]
    """A JSON file: settings by name."""
    start: Annotated[Path, tyro.conf.Positional]
    """Folder of a run of the first phase, whose seeds start those here, or of one model, which starts them all."""
    seeds: int = 1
    """Seeds of every setting, each with its own labels."""
    updates: int = 8_000
    """Number of updates."""
    iterations: int | None = None
    """T in evaluation; by default the recipe's."""
    ema: float = 0.0
    """Decay of averaged weights, which are then evaluated too; 0: none."""
    depth: Literal["up-left", "random"] = "up-left"
    """Two digits: which one is on top."""
    digit_pool: Literal["split", "shared"] = "split"
    """Whether training and validation have digits of their own, or share one pool as in the paper's data."""
    ratio_variance: Literal["v+sigma2", "reference"] = "reference"
    """The variance inside L(m)."""
    out: Path | None = None
    """File of the record."""
    quick: bool = False
    """Toy size: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        config = sized_config(recipe(self.name), self.seeds, self.device, self.quick)
        config = replace(
            config,
            model=replace(config.model, ratio_variance=self.ratio_variance),
            test_iterations=config.test_iterations if self.iterations is None else self.iterations,
            data=replace(config.data, depth=self.depth, digit_pool=self.digit_pool),
            optimiser=replace(config.optimiser, updates=self.updates, ema=self.ema),
        )
        settings = _read_settings(self.settings)
        if self.out is not None:
            make_folder(self.out.parent)
        first = start_weights(replace(config, start_from=str(self.start)), pick_device(self.device))
        record = phase2_sweep(config, first, settings)
        print("\n".join(ranking(record)))
        if self.out is not None:
            write_json(self.out, record)


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: write settings by name into one, as JSON")
    return read_json(path)


@dataclass(frozen=True)
class RC:
    """Reconstruction Clustering on Shapes, trained on scenes and on single shapes: the RC row of Table 1b."""

    config: Annotated[RCRun, tyro.conf.arg(name="")] = field(default_factory=RCRun)
    """Settings of both networks and of the evaluation."""
    out: Path = Path("results/table1/rc.json")
    """The record, as JSON."""

    def __call__(self) -> None:
        make_folder(self.out.parent)
        record = run_rc(self.config)
        write_json(self.out, record)
        for mode, found in record["modes"].items():
            for split, summary in found["summary"].items():
                ami, sd = summary["ami"]["mean"], summary["ami"]["sd"]
                text = f"{ami:.3f}" + ("" if sd is None else f" ± {sd:.3f}")
                print(f"RC trained on {mode}: {split} AMI {text} (n={summary['n']}; paper 0.61 ± 0.005)")


@dataclass(frozen=True)
class SlotAttention:
    """Slot Attention on our scenes, trained and scored by the same code as Tagger. Needs the extra 'slots'."""

    data: str = "sprites"
    """shapes, texture-mnist-1, texture-mnist-2, tetrominoes or sprites."""
    variant: Literal["colour", "one-colour", "texture"] = "colour"
    """Sprites: a colour for each object, one for all objects of a scene, or a grey texture for each."""
    size: int | None = None
    """Shapes, tetrominoes, sprites: height and width of a scene; by default as published."""
    updates: int = 100_000
    """Number of updates, the first twentieth of which warm up."""
    lr: float = PUBLISHED_RATE
    """Learning rate at its peak."""
    slots: int = 0
    """Number of slots; 0: one more than the most objects."""
    seeds: int = 1
    """How many models to train."""
    test: bool = True
    """Score the test split at the end."""
    out: Path | None = None
    """The record; by default results/slot-attention/DATA.json."""
    quick: bool = False
    """Toy size: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Compile the update and capture it as one CUDA graph; auto: on CUDA only."""

    def __call__(self) -> None:
        from paper.slot_attention import SlotAttentionRun, data_of, of_length, quick_slots, run_slot_attention
        from paper.slot_attention.run import summary_lines

        data = replace(data_of(self.data), variant=self.variant)
        run = SlotAttentionRun(
            data=data if self.size is None else replace(data, size=self.size),
            slots=self.slots, seeds=self.seeds, test=self.test, device=self.device, compile=self.compile,
        )  # fmt: skip
        run = of_length(run, self.updates, self.lr)
        name = self.data if self.variant == "colour" else f"{self.data}-{self.variant}"
        folder = Path("results/quick/slot-attention" if self.quick else "results/slot-attention")
        out = self.out or folder / f"{name}.json"
        make_folder(out.parent)
        record = run_slot_attention(quick_slots(run) if self.quick else run)
        write_json(out, record)
        print("\n".join(summary_lines(record)))


@dataclass(frozen=True)
class Removal:
    """Remove every object of Shapes scenes by its group (example E2), and count those that keep half of their ink."""

    model: Annotated[str, tyro.conf.Positional]
    """A shipped model, a model's folder or a run."""
    objects: int = 3
    """Objects per scene."""
    groups: int = 4
    """K."""
    iterations: int = 5
    """T."""
    scenes: int = 10_000
    """Number of scenes."""
    split: Literal["valid", "test"] = "valid"
    """Choose settings on valid; read test once, at the end."""
    out: Path | None = None
    """File of the record."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        if self.out is not None:
            make_folder(self.out.parent)
        model = Tagger.from_pretrained(self.model, pick_device(self.device))
        drawn = shapes(self.scenes, 0, self.objects, split=self.split)
        record: dict[str, Any] = {"model": self.model, "split": self.split, "objects_per_scene": self.objects}
        record |= removal(model, drawn, self.groups, self.iterations)
        print(
            f"{100 * record['objects_kept']:.1f} % of {record['objects']} objects keep half of their ink, "
            f"{100 * record['scenes_kept']:.1f} % of {record['scenes']} scenes have one "
            f"(K={self.groups}, T={self.iterations})"
        )
        if self.out is not None:
            write_json(self.out, record)


COMMANDS: dict[str, Any] = {
    "table1": Table1,
    "table2": Table2,
    "objects": Objects,
    "race": Race,
    "figure4": Figure4,
    "figure5": Figure5,
    "baseline": Baseline,
    "sweep": Sweep,
    "phase2-sweep": Phase2Sweep,
    "probes": Probes,
    "perfect-masks": PerfectMasks,
    "rc": RC,
    "slot-attention": SlotAttention,
    "ship": Ship,
    "removal": Removal,
    "any-number": AnyNumber,
}


def main(argv: list[str] | None = None) -> int:
    """Run a command and return the exit status."""
    options = (tyro.conf.PositionalRequiredArgs,)
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="python -m paper", description="The paper's experiments.", args=argv, config=options
    )
    try:
        with exit_on_user_error():
            command()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
