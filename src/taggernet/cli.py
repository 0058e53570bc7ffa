"""The command line: taggernet demo | train | evaluate | explore | export | data.

Errors that a user can mend are one or two lines on stderr and exit status 2; --debug shows the traceback.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from taggernet.config.run import Config
from taggernet.errors import folded, plain_warnings, sentence

INTERRUPTED = 130


@dataclass(frozen=True)
class Demo:
    """Group held-out scenes with a shipped model: cost, AMI and error after every iteration, and a figure."""

    name: Annotated[str, tyro.conf.Positional] = "shapes"
    """A shipped model, shapes or texture-mnist-2; or small, which is trained for a minute first."""
    out: Path = Path("demo")
    """Folder for the figure."""
    scenes: int = 1_000
    """How many scenes to group."""
    updates: int | None = None
    """small: how long to train, 1,500 by default; about 25 updates a second on one core."""
    seed: int | None = None
    """small: seed of the model, 0 by default."""


@dataclass(frozen=True)
class Train:
    """Train a recipe; on a folder that holds a run, go on with it."""

    out: Path
    """Folder for the run: configuration, records, checkpoints, models. A run that is there goes on."""
    config: Config
    """What to train."""


@dataclass(frozen=True)
class Evaluate:
    """Report cost, AMI, ARI and errors of a run after every iteration."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder that was given to train as --out."""
    groups: int | None = None
    """K; the run's own by default."""
    iterations: int | None = None
    """T; the run's own by default."""
    objects: int | None = None
    """Shapes: objects per scene; the run's own by default."""
    split: Literal["valid", "test"] = "test"
    """Which scenes."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    json: Path | None = None
    """Also write the metrics to this file."""
    overwrite: bool = False
    """Replace that file if it is already there."""


@dataclass(frozen=True)
class Data:
    """Write one of the paper's data sets to a file."""

    name: Annotated[Literal["shapes", "texture-mnist-1", "texture-mnist-2"], tyro.conf.Positional]
    """Which data set."""
    out: Path
    """A .npz or .h5 file."""
    split: Literal["train", "valid", "test"] = "train"
    """Which split."""
    n: int | None = None
    """How many scenes; by default the split's own size (50,000, 10,000, 10,000)."""
    seed: int = 0
    """Seed of the data set."""
    objects: int = 3
    """Shapes: objects per scene."""
    overwrite: bool = False
    """Replace a file that is already there."""


@dataclass(frozen=True)
class Export:
    """Write a model as ONNX: the whole loop, and beside it one step."""

    model: Annotated[str, tyro.conf.Positional]
    """A shipped model's name, the folder of a model or a run, or a Hub id."""
    to: Path
    """The file for the loop, e.g. model.onnx; the step goes to model.step.onnx."""
    iterations: int = 5
    """T where the caller does not say; batch and K are always the caller's."""
    overwrite: bool = False
    """Replace files that are already there."""


@dataclass(frozen=True)
class Explore:
    """Open a page in the browser to watch groups form, take one away, or draw a scene."""

    model: Annotated[str, tyro.conf.Positional] = "shapes"
    """A shipped model's name, the folder of a model or a run, or a Hub id."""
    host: str = "127.0.0.1"
    """Address to listen on; the default lets in nobody but this machine."""
    port: int | None = None
    """Port; by default the first free one from 7860."""
    open_browser: bool = True
    """Open the page in the browser at once."""


def main(argv: list[str] | None = None) -> int:
    """Run a command and return the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    try:
        with plain_warnings():
            _dispatch(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        print(f"taggernet: {sentence(error)}", file=sys.stderr)
        return 2
    return 0


def _dispatch(args: list[str]) -> None:
    commands: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
        "demo": (Demo, _demo),
        "evaluate": (Evaluate, _evaluate),
        "data": (Data, _data),
        "explore": (Explore, _explore),
        "export": (Export, _export),
    }
    if args and args[0] == "train":
        return _train(args[1:])
    if args and args[0] == "reproduce":
        raise ValueError(
            "the paper's tables and figures are made from a clone of the repository: run 'python -m paper "
            f"{' '.join(args[1:]) or 'table1|table2|figure4|figure5'}' there"
        )
    if args and args[0] == "--version":
        import taggernet

        return print(taggernet.__version__)
    if args and args[0] in commands:
        options, action = commands[args[0]]
        return action(_parse(options, f"taggernet {args[0]}", args[1:]))
    if args and args[0] not in ("-h", "--help"):
        raise ValueError(f"there is no command {args[0]!r}: choose one of {', '.join(['train', *commands])}")
    summary = {name: (options.__doc__ or "").splitlines()[0] for name, (options, _) in commands.items()}
    summary["train"] = "Train a recipe or on a file of your own, or go on with a run."
    print("usage: taggernet COMMAND ... (each has --help)\n")
    for name, text in summary.items():
        print(f"  {name:<10} {text}")
    return None


def _parse(options: type[Any], prog: str, args: list[str], **more: Any) -> Any:
    """tyro's reading of the arguments, its boxed complaint folded into one line."""
    shown = io.StringIO()
    try:
        with redirect_stderr(shown):
            return tyro.cli(options, prog=prog, args=args, config=(tyro.conf.OmitArgPrefixes,), **more)
    except SystemExit as end:
        if not end.code:
            raise
        raise ValueError(folded(shown.getvalue(), prog)) from None


# --- train --------------------------------------------------------------------------------------------------------


def _train(args: list[str]) -> None:
    from taggernet.recipes import RECIPES, recipe
    from taggernet.training import auto_config, train_to_end
    from taggernet.viz.terminal import show

    if not args or args[0] in ("-h", "--help"):
        print("usage: taggernet train RECIPE|FILE [--out RUN] [--option value ...]\n")
        print("FILE is a .npz, .npy or .h5 of your own with x (n, ...) and perhaps groups, classes.\n\nrecipes:")
        for name, make in RECIPES.items():
            print(f"  {name:<28} {(make.__doc__ or '').splitlines()[0]}")
        print("\nEvery option, with its default: taggernet train RECIPE|FILE --help")
        return
    name, rest = args[0], args[1:]

    def parse(default: Config) -> Any:
        return _parse(Train, f"taggernet train {name}", rest, default=Train(Path("runs") / Path(name).stem, default))

    if auto_config.looks_like_a_file(name):
        found = auto_config.look(name)
        options = parse(auto_config.configure(found))
        if options.config.model.kind != found.survey.kind:  # it was given, and the other defaults follow from it
            found = auto_config.look(name, options.config.model.kind)
            options = parse(auto_config.configure(found))
        if os.environ.get("RANK", "0") == "0":
            print(f"{found}\n{auto_config.choices(options.config)} (each has an option, see --help)")
    else:
        options = parse(recipe(name))
    run = train_to_end(options.config, options.out)
    if run.metrics:
        show(run.metrics, f"{name}: {len(options.config.seed_list)} seed(s), validation")
    print(f"models are in {options.out}")


# --- the others ---------------------------------------------------------------------------------------------------


def _evaluate(options: Evaluate) -> None:
    from taggernet.fileio import write_json
    from taggernet.run_evaluation import evaluate
    from taggernet.viz.terminal import show

    if options.json is not None and options.json.exists() and not options.overwrite:
        raise FileExistsError(f"{options.json} exists: choose another name for --json, or add --overwrite")
    record = evaluate(
        options.run, groups=options.groups, iterations=options.iterations, objects=options.objects,
        split=options.split, device=options.device,
    )  # fmt: skip
    what = f"K={record['groups']}" + (f", {record['objects']} objects" if record["objects"] else "")
    show(record["figures"], f"{record['recipe']}, {options.split} split, {what}")
    if options.json is not None:
        write_json(options.json, record)


def _data(options: Data) -> None:
    from taggernet import data

    if options.out.suffix not in (".npz", ".h5", ".hdf5"):
        raise ValueError(f"--out {options.out} must end in .npz or .h5")
    if options.name == "shapes":
        count = {"train": 50_000, "valid": 10_000, "test": 10_000}[options.split] if options.n is None else options.n
        scenes = data.shapes(count, options.seed, options.objects, split=options.split)
    else:
        scenes = data.texture_mnist(int(options.name[-1]), options.split, options.seed, n=options.n)
    scenes.save(options.out, overwrite=options.overwrite)
    print(f"wrote {len(scenes)} scenes to {options.out}")


def _export(options: Export) -> None:
    from taggernet.export import export
    from taggernet.tagger import Tagger

    model = Tagger.from_pretrained(options.model)
    whole, single = export(model, options.to, options.iterations, overwrite=options.overwrite)
    print(f"the loop is in {whole}, one step in {single}")


def _explore(options: Explore) -> None:
    from taggernet.explorer import launch

    launch(options.model, host=options.host, port=options.port, open_browser=options.open_browser)


def _demo(options: Demo) -> None:
    from taggernet.demo import demo

    demo(options.name, options.out, scenes=options.scenes, updates=options.updates, seed=options.seed)


if __name__ == "__main__":
    sys.exit(main())
