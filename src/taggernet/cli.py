"""The command line: taggernet demo | train | evaluate | group | report | explore | export | data.

A user's mistake is one or two lines on stderr and exit status 2; --debug shows the traceback. Nothing heavy is imported
before a command runs, so that --help answers at once.
"""

from __future__ import annotations

import difflib
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Union, get_type_hints

import tyro

from taggernet._version import __version__
from taggernet.cli_options import Data, Demo, Evaluate, Explore, Export, Group, Report, Train
from taggernet.cli_train import is_first_process, list_recipes, train, train_options
from taggernet.errors import describe_error, one_line_warnings

INTERRUPTED = 130
DESCRIPTION = """Tagger: unsupervised perceptual grouping. Each command has --help.

To reproduce the paper's tables and figures, run 'python -m paper' in a clone of the repository."""


def main(argv: list[str] | None = None) -> int:
    """Run a command and return the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    try:
        with one_line_warnings():
            _dispatch(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        print(f"taggernet: {describe_error(error)}", file=sys.stderr)
        return 2
    return 0


def _dispatch(args: list[str]) -> None:
    command, rest = (args[0], args[1:]) if args else ("--help", [])
    if command == "--version":
        return print(__version__)
    if command == "reproduce":
        raise ValueError(
            "the paper's tables and figures are made from a clone of the repository: run 'python -m paper "
            f"{' '.join(rest) or 'table1|table2|figure4|figure5'}' there"
        )
    if command not in (*COMMANDS, "-h", "--help"):
        raise ValueError(f"there is no command {command!r}: choose one of {', '.join(COMMANDS)}")
    for option, value in pairwise([*args, "the end"]):
        if option.startswith("--") and (not value or option.endswith("=")):
            raise ValueError(f"{option.rstrip('=')} was given an empty value: give one, or leave the option out")
    if command == "train" and (not rest or rest[0] in ("-h", "--help")):
        return list_recipes()
    options = train_options(rest[0], rest[1:], _parse) if command == "train" else _parse(args or ["--help"])
    return COMMANDS[command][1](options)


# --- parsing ------------------------------------------------------------------------------------------------------


def _parse(args: list[str], train: Train | None = None) -> Any:
    """The options of the command in ``args``; ``train`` holds the defaults of its recipe."""
    kinds: Any = tuple(
        Annotated[kind, tyro.conf.subcommand(name, default=train if train and kind is Train else tyro.MISSING_NONPROP)]
        for name, (kind, _) in COMMANDS.items()
    )
    union: Any = Union[kinds]  # noqa: UP007  known at run time only
    shown = io.StringIO()
    try:
        with redirect_stderr(shown):
            options, unknown = tyro.cli(
                union,
                prog="taggernet",
                description=DESCRIPTION,
                args=args,
                config=(tyro.conf.OmitArgPrefixes,),
                return_unknown_args=True,
            )
    except SystemExit as end:
        if not end.code:
            raise  # --help was printed
        raise ValueError(f"{_message(shown.getvalue())}\n{_see_help(args)}") from None
    if unknown:
        near = difflib.get_close_matches(unknown[0], _option_names(type(options)), n=1, cutoff=0.8)
        hint = f": did you mean {near[0]}?" if near else ""
        raise ValueError(f"unknown options {' '.join(unknown)}{hint}\n{_see_help(args)}")
    return options


_PLAINER = {
    r"^Error parsing (\w[\w.-]*: )?": "",
    r"^(\S+): no type matching .*<class '\w+'>: ": r"\1: ",
    r": invalid literal for int\(\) with base 10: (.*)": r": \1 is not an integer",
    r": could not convert string to float: (.*)": r": \1 is not a number",
    r" \(required\)| Expected 1 values\.|'None', |, 'None'": "",
}
"""Python's words in tyro's messages, and plainer ones."""


def _message(box: str) -> str:
    """The message in tyro's framed error: what stands between the title and the next rule."""
    lines = "\n".join(line.strip("│|╰╯+ ") for line in box.splitlines()[1:])
    text = " ".join(re.split(r"^[─-]+$", lines.strip("─-\n"), maxsplit=1, flags=re.MULTILINE)[0].split())
    for pattern, plainer in _PLAINER.items():
        text = re.sub(pattern, plainer, text)
    return text


def _see_help(args: list[str]) -> str:
    return f"All options: taggernet {' '.join(args[: 2 if args[0] == 'train' else 1])} --help"


def _option_names(kind: Any) -> Iterator[str]:
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            yield from _option_names(hint)
        else:
            yield f"--{name.replace('_', '-')}"


# --- the commands -------------------------------------------------------------------------------------------------


def _evaluate(options: Evaluate) -> None:
    from taggernet.fileio import make_folder, write_json
    from taggernet.run_evaluation import evaluate
    from taggernet.viz.terminal import show

    if options.json is not None:
        _check_new(options.json, "--json", options.overwrite)
        make_folder(options.json.parent)
    record = evaluate(
        options.run, data=options.data, groups=options.groups, iterations=options.iterations,
        starts=options.starts, objects=options.objects, split=options.split, device=options.device,
    )  # fmt: skip
    which = f"{record['split']} split" if options.data is None else f"{record['split']} scenes of {options.data}"
    what = f"K={record['groups']}" + (f", {record['objects']} objects" if record["objects"] else "")
    seeds = [name.removeprefix("seed-") for name in record["seeds"]]
    show(record["figures"], f"{record['recipe']}, {which}, {what}", seeds=seeds)
    if options.json is not None:
        write_json(options.json, record)


def _group(options: Group) -> None:
    from taggernet.group_file import group_file

    given = {name: value for name, value in vars(options).items() if name not in ("model", "data", "out")}
    written = group_file(options.model, options.data, options.out, **given)
    if is_first_process():
        print(f"the groups are in {written}")


def _report(options: Report) -> None:
    from taggernet.training.report import write_report

    print(f"the report is in {write_report(options.run, data=options.data)}")


CHOICES = {
    "objects": ("shapes", "tetrominoes", "sprites"),
    "min_objects": ("shapes", "sprites"),
    "size": ("shapes", "tetrominoes", "sprites"),
    "variant": ("sprites",),
    "depth": ("texture-mnist-2",),
    "digit_pool": ("texture-mnist-1", "texture-mnist-2"),
}
"""What can be chosen of a generated data set."""


def _data(options: Data) -> None:
    from taggernet import data
    from taggernet.fileio import make_folder

    given = {name: getattr(options, name) for name in CHOICES if getattr(options, name) is not None}
    for name in given:
        if options.name not in CHOICES[name]:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} was given, but {options.name} scenes have no such choice: leave it out")
    if options.out.suffix.lower() not in (".npz", ".h5", ".hdf5"):
        raise ValueError(f"--out {options.out} must end in .npz or .h5")
    _check_new(options.out, "--out", options.overwrite)
    make_folder(options.out.parent)
    if options.name.startswith("texture"):
        scenes = data.texture_mnist(int(options.name[-1]), options.split, options.seed, n=options.n, **given)
    else:
        count = {"train": 50_000, "valid": 10_000, "test": 10_000}[options.split] if options.n is None else options.n
        make: Any = {"shapes": data.shapes, "tetrominoes": data.tetrominoes, "sprites": data.sprites}[options.name]
        scenes = make(count, options.seed, split=options.split, **given)
    scenes.save(options.out, overwrite=options.overwrite)
    print(f"wrote {len(scenes)} scenes to {options.out}")


def _export(options: Export) -> None:
    from taggernet.export import export
    from taggernet.tagger import Tagger

    _check_new(options.to, "--to", options.overwrite)
    model = Tagger.from_pretrained(options.model)
    whole, single, *start = export(model, options.to, options.iterations, overwrite=options.overwrite)
    first = f", what masks start from in {start[0]}" if start else ""
    print(f"the loop is in {whole}, one step in {single}{first}")


def _check_new(path: Path, option: str, overwrite: bool) -> None:
    """Raise FileExistsError, in the command line's words, if the file is there and may not be replaced."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists: choose another name for {option}, or add --overwrite")


def _explore(options: Explore) -> None:
    from taggernet.explorer import launch

    launch(options.model, host=options.host, port=options.port, open_browser=options.open_browser)


def _demo(options: Demo) -> None:
    from taggernet.demo import demo

    demo(options.name, options.out, scenes=options.scenes, updates=options.updates, seed=options.seed)


COMMANDS: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "demo": (Demo, _demo),
    "train": (Train, train),
    "evaluate": (Evaluate, _evaluate),
    "group": (Group, _group),
    "report": (Report, _report),
    "explore": (Explore, _explore),
    "export": (Export, _export),
    "data": (Data, _data),
}


if __name__ == "__main__":
    sys.exit(main())
