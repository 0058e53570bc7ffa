"""taggernet train: its options, whose defaults follow from a recipe or from the user's file, and the command."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from taggernet import STARTED
from taggernet.cli_options import Train
from taggernet.config.run import Config
from taggernet.recipes import RECIPES, recipe, summary

Parse = Callable[[list[str], Train], Train]
"""Words of the command line, and the defaults of those that are not there."""


def list_recipes() -> None:
    print("usage: taggernet train RECIPE|FILE [--out RUN] [--option value ...]\n")
    print("FILE is a .npz, .npy or .h5 file of your own with x (n, ...) and optionally groups and classes.\n\nrecipes:")
    for name in RECIPES:
        print(f"  {name:<33} {summary(name)}")
    print("\nAll options with their defaults: taggernet train RECIPE|FILE --help")


def train_options(source: str, args: list[str], parse_words: Parse) -> Train:
    """The options of train, whose defaults are those of the recipe or follow from the user's file."""

    def parse(config: Config) -> Train:
        words, out = ["train", source, *args], Path("runs") / Path(source).stem
        options = parse_words(words, Train(source, out, config))
        if options.finetune:
            config = _finetuned(options, config)
            options = parse_words(words, Train(source, options.out, config))
        return replace(options, config=_tested_alike(options.config, config, args))

    if source not in RECIPES and _is_file_name(source):
        return _options_for_file(source, parse, told="--channels-axis" in _options_in(args))
    if source not in RECIPES and Path(source).is_dir():
        raise ValueError(
            f"{source} is a folder, but a recipe or a file of your own is expected: to resume a run, repeat its command"
        )
    meant = [source + ending for ending in (".npz", ".npy", ".h5") if Path(source + ending).is_file()]
    if source not in RECIPES and meant:
        raise ValueError(f"there is no recipe and no file {source!r}: did you mean {meant[0]}?")
    options = parse(recipe(source))
    if options.scale_by is not None:
        raise ValueError(f"--scale-by is for a file of your own; the recipe {source} has units of its own")
    return options


def _tested_alike(config: Config, default: Config, args: list[str]) -> Config:
    """K as it was given for training holds in use too, and there are no fewer iterations, unless these were given."""
    given = _options_in(args)
    if config.groups != default.groups and "--test-groups" not in given:
        config = replace(config, test_groups=config.groups)
    if config.iterations != default.iterations and "--test-iterations" not in given:
        config = replace(config, test_iterations=max(config.iterations, config.test_iterations))
    return config


def _options_in(args: list[str]) -> set[str]:
    """The names of the options that were given."""
    return {word.partition("=")[0].replace("_", "-") for word in args}


def _finetuned(options: Train, config: Config) -> Config:
    """The defaults that follow from the model to start from."""
    from taggernet.training.finetune import finetune

    if options.config.start_from:
        raise ValueError("--finetune and --start-from both name weights to start from: give one of them")
    return finetune(config, options.finetune)


def _is_file_name(name: str) -> bool:
    return name.lower().endswith((".npz", ".npy", ".h5", ".hdf5")) or Path(name).is_file()


def _options_for_file(name: str, parse: Callable[[Config], Train], *, told: bool) -> Train:
    """The options for a user's file; the data type and what follows from it are detected and printed.

    ``told``: where the channels are was said, and needs no hint.
    """
    from taggernet.training import auto_config

    def infer() -> Train:
        """Parse with the defaults for what is known; units of each element are too many numbers for the help."""
        config = auto_config.configure(found, scale_by)
        options = parse(replace(config, model=replace(config.model, offsets=(), scales=())))
        model = options.config.model
        given = options.finetune or model.offsets or (model.offset, model.scale) != (0, 1)
        fit = len(config.model.offsets) == model.elements  # if the shape is to blame, training says what is wrong
        if fit and not given:
            model = replace(model, offsets=config.model.offsets, scales=config.model.scales)
        return replace(options, config=replace(options.config, model=model))

    found, scale_by = auto_config.look(name), None
    options = infer()
    kind, axis, scale_by = options.config.model.kind, options.config.data.channels_axis, options.scale_by
    if (kind, axis) != (found.survey.kind, found.data.axis):  # one was given, and the other defaults follow from it
        found = auto_config.look(name, kind if kind != found.survey.kind else None, axis)
        options = infer()
    elif scale_by is not None:
        options = infer()
    if is_first_process():
        print(f"{found}\n{auto_config.choices(options.config)} (each has an option, see --help)")
        for hint in auto_config.hints(found, options.config, axis_given=told):
            print(f"hint: {hint}")
    return options


def train(options: Train) -> None:
    from taggernet.training import train_to_end
    from taggernet.viz.terminal import show

    config, own, before = options.config, options.source not in RECIPES, time.monotonic()
    if own and options.tune and not options.finetune:
        from taggernet.training.tune import tuned

        config = tuned(config, options.out, options.scale_by)
    tuning = time.monotonic() - before  # no part of the start-up
    run = train_to_end(config, options.out, since=STARTED + tuning)
    if run.metrics:
        seeds = options.config.seed_list
        show(run.metrics, f"{options.source}: {len(seeds)} seed(s), validation", seeds=seeds)
    if is_first_process():
        print(f"models are in {options.out}")


def is_first_process() -> bool:
    """Of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"
