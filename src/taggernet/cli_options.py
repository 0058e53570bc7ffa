"""The options of every command: field docstrings are the help texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from taggernet.config.run import Config


@dataclass(frozen=True)
class Demo:
    """Group held-out scenes with a shipped model: prints cost, AMI and error per iteration, and draws a figure."""

    name: Annotated[str, tyro.conf.Positional] = "shapes"
    """A shipped model, shapes, sprites or texture-mnist-2; or small, which is trained first, in half a minute."""
    out: Path = Path("demo")
    """Folder for the figure."""
    scenes: int | None = None
    """How many scenes to group; by default 200, or 40 large images."""
    updates: int | None = None
    """small: updates to train for, 1,500 by default; about 75 a second on one core."""
    seed: int | None = None
    """small: seed of the model, 0 by default."""


@dataclass(frozen=True)
class Train:
    """Train a recipe, or on your own file; resumes the run in --out if there is one."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE|FILE")]
    """A recipe, or a .npz, .npy or .h5 file of your own with x (n, ...) and optionally groups and classes."""
    out: Path
    """Folder of the run: configuration, metrics, checkpoints, models. A run that is there is resumed."""
    config: Config
    scale_by: Literal["element", "array", "none"] | None = None
    """Your own real data: bring each element to mean 0 and deviation 1 (the default where a scene is one row), or the
    array as a whole (the default where a scene has more dimensions), or leave x as it is."""
    tune: bool = True
    """Your own data: first train a few settings (noise, norm, widths) shortly and take the one whose groups are decided
    and the same from every start. What you set yourself is not varied. Left out where weights to start from are named,
    where several processes share the run, and for short trainings."""
    finetune: str = ""
    """Start from this model and keep its network, units, K and T: a shipped name, the folder of a model or a run (its
    best seed), or a Hub id."""


@dataclass(frozen=True)
class Evaluate:
    """Print cost, AMI, ARI and errors of a run or a model after every iteration."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL|RUN")]
    """The --out folder of a run (all its seeds), the folder of a model, a shipped model's name, or a Hub id."""
    data: Path | None = None
    """A .npz, .npy or .h5 file to evaluate on, in place of the data trained on."""
    groups: int | None = None
    """K; the run's own by default."""
    iterations: int | None = None
    """T; the run's own by default."""
    starts: int | None = None
    """Random starts of a scene, of which the one whose groups explain it best counts; the run's own by default."""
    objects: int | None = None
    """Shapes, tetrominoes, sprites: objects in every scene; the run's own by default."""
    split: Literal["valid", "test", "all"] | None = None
    """Which scenes: test by default, but all of a --data FILE; name the split if that is the file trained on, moved."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    json: Path | None = None
    """Also write the metrics and the run's configuration to this JSON file."""
    overwrite: bool = False
    """Replace the JSON file if it exists."""


@dataclass(frozen=True)
class Group:
    """Group the scenes of a file and write labels, masks and reconstructions to another; goes on if it was killed."""

    model: Annotated[str, tyro.conf.Positional]
    """A shipped model's name, the folder of a model or a run (its best seed), or a Hub id."""
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A .npz, .npy or .h5 file with x (n, ...); it may be larger than the memory."""
    out: Path
    """A .npz or .h5 file. Parts are collected in OUT.parts beside it, which is removed at the end."""
    arrays: tuple[Literal["labels", "masks", "reconstructions", "class_probabilities"], ...] = ()
    """What to write; by default all that the model has."""
    groups: int | None = None
    """K; the model's own by default."""
    iterations: int | None = None
    """T; the model's own by default."""
    seed: int = 0
    """Seed of the random start of the masks."""
    starts: int = 4
    """Random starts of each scene, of which the groups that explain it best are kept; 1 is four times faster."""
    batch_size: int = 100
    """Scenes at a time; only BatchNorm without frozen statistics depends on it."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    overwrite: bool = False
    """Replace the file if it exists."""
    progress: bool = True
    """Show a progress bar."""


@dataclass(frozen=True)
class Report:
    """Write report.html of a run again: did groups form, how they look, how training went, how to go on."""

    run: Annotated[str, tyro.conf.Positional]
    """The --out folder of a run."""
    data: Path | None = None
    """The file trained on, if it was moved."""


@dataclass(frozen=True)
class Data:
    """Write a generated data set to a file."""

    name: Annotated[
        Literal["shapes", "texture-mnist-1", "texture-mnist-2", "tetrominoes", "sprites"], tyro.conf.Positional
    ]
    """Which data set."""
    out: Path
    """A .npz or .h5 file."""
    split: Literal["train", "valid", "test"] = "train"
    """Which split."""
    n: int | None = None
    """How many scenes; by default the split's own size (50,000, 10,000, 10,000)."""
    seed: int = 0
    """Seed of the data set."""
    objects: int | None = None
    """Shapes, tetrominoes: objects per scene, by default 3; sprites: the most per scene, by default 5."""
    min_objects: int | None = None
    """Shapes, sprites: fewest objects per scene; by default 2 for sprites, as many as --objects for shapes."""
    size: int | None = None
    """Shapes, tetrominoes, sprites: height and width of a scene; by default 20, 35, 64."""
    variant: Literal["colour", "one-colour", "texture"] | None = None
    """Sprites: a colour for each object (the default), one for all objects of a scene, or a grey texture for each."""
    depth: Literal["up-left", "random"] | None = None
    """TextureMNIST2: the digit on top; up-left: always the up-left one (the default, the paper's data); random:
    either."""
    digit_pool: Literal["split", "shared"] | None = None
    """TextureMNIST: split: training and validation have digits of their own (the default); shared: both draw from one
    pool of 60,000 (the paper's data)."""
    overwrite: bool = False
    """Replace the file if it exists."""


@dataclass(frozen=True)
class Export:
    """Export a model to ONNX: the whole loop, and a single step beside it."""

    model: Annotated[str, tyro.conf.Positional]
    """A shipped model's name, the folder of a model or a run, or a Hub id."""
    to: Path
    """File for the loop, e.g. model.onnx; the step is written to model.step.onnx."""
    iterations: int | None = None
    """Default T of the exported loop; the model's own by default. Batch size and K are inputs of the exported model."""
    overwrite: bool = False
    """Replace the files if they exist."""


@dataclass(frozen=True)
class Explore:
    """Open the explorer in a browser: drag a shape and the groups follow; hide one, remove one, or draw."""

    model: Annotated[str, tyro.conf.Positional] = "shapes"
    """A shipped model's name, the folder of a model or a run, or a Hub id."""
    host: str = "127.0.0.1"
    """Address to listen on; by default only this machine can connect."""
    port: int | None = None
    """Port; by default the first free one from 7860."""
    open_browser: bool = True
    """Open a browser window."""
