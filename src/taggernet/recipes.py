"""One plain function per kind of run: it returns the whole configuration.

A variant calls another recipe and changes a field. ``RECIPES`` maps the names used on the command line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig

SHAPES_MEAN = 0.2847
"""Mean of x over Shapes scenes of three objects."""


def shapes() -> Config:
    """Table 1, Tagger: Shapes with BatchNorm, the paper's recipe."""
    return Config(
        recipe="shapes",
        model=TaggerConfig(shape=(20, 20), kind="binary", widths=(2000, 1000, 500), noise=0.2, mean=SHAPES_MEAN),
        data=DataConfig(name="shapes", train=60_000),
        optimiser=OptimiserConfig(lr=4e-4, batch=100, updates=60_000),
    )


def shapes_layernorm() -> Config:
    """Table 1, Tagger*: the same with LayerNorm, and a cosine schedule (the paper states none; see docs/LOG.md)."""
    base = shapes()
    return replace(
        base,
        recipe="shapes-layernorm",
        model=replace(base.model, norm="layer"),
        optimiser=replace(base.optimiser, schedule="cosine"),
    )


def shapes_wide() -> Config:
    """The LayerNorm row on fresh scenes, twice as long: our lowest cost."""
    base = shapes_layernorm()
    return replace(
        base,
        recipe="shapes-wide",
        data=replace(base.data, mode="fresh"),
        optimiser=replace(base.optimiser, updates=120_000),
    )


def shapes_best() -> Config:
    """The same with half the width, which groups best; one of these is shipped with the package."""
    base = shapes_wide()
    return replace(base, recipe="shapes-best", model=replace(base.model, widths=(1000, 500, 250)))


def shapes_any() -> Config:
    """One model for any number of objects, first phase: scenes of 1 to 5 and K = 5; otherwise like shapes-best."""
    base = shapes_best()
    return replace(
        base,
        recipe="shapes-any",
        model=replace(base.model, mean=0.2713),
        data=replace(base.data, objects=5, min_objects=1),
        optimiser=replace(base.optimiser, lr=1e-3, warmup=500, updates=100_000),
        groups=5,
        test_groups=6,
    )


def shapes_any_refined() -> Config:
    """The second phase of shapes-any: six iterations, which empty the groups that a scene does not need."""
    base = shapes_any()
    return replace(
        base,
        recipe="shapes-any-refined",
        optimiser=replace(base.optimiser, lr=5e-4, updates=25_000),
        iterations=6,
        test_iterations=8,
    )


def shapes_permuted() -> Config:
    """No image prior: the LayerNorm recipe on scenes whose elements are shuffled by one fixed permutation."""
    base = shapes_layernorm()
    return replace(base, recipe="shapes-permuted", data=replace(base.data, permuted=True))


def small() -> Config:
    """The small CPU preset: two solid shapes on a 12 x 12 canvas; groups form within a minute or two on two cores."""
    return Config(
        recipe="small",
        model=TaggerConfig(shape=(12, 12), kind="binary", widths=(200, 100, 50), norm="layer", noise=0.2, mean=0.2),
        data=DataConfig(
            name="shapes", mode="fresh", train=1000, valid=500, test=1000, objects=2, size=12, style="small"
        ),
        optimiser=OptimiserConfig(lr=2e-3, batch=50, updates=2_000, schedule="cosine", warmup=50),
        runtime=RuntimeConfig(log_every=25, evaluate_every=500, evaluate_scenes=200, checkpoint_every=500),
        groups=3,
        test_groups=3,
        discount=0.3,
    )


def texture_mnist(digits: int) -> Config:
    """Table 2, phase 1 without labels, with the rate and the variance inside L(m) of the authors' public code."""
    return Config(
        recipe=f"texture-mnist-{digits}",
        model=TaggerConfig(
            shape=(28, 28), kind="real", widths=(3000, 2000, 1000), noise=0.2, mean=0.5, ratio_variance="reference"
        ),
        data=DataConfig(name=f"texture-mnist-{digits}"),
        optimiser=OptimiserConfig(lr=1e-3, batch=100, updates=75_000),
    )


def _second_phase(base: Config, labels: int, variant: str = "") -> Config:
    """What all second phases share: the sum of both costs from the weights of phase 1; start_from names its folder."""
    return replace(
        base,
        recipe=f"{base.recipe}{variant}-labels-{'1k' if labels == 1_000 else '50k'}",
        model=replace(base.model, classes=10, noise=0.18),
        data=replace(base.data, labels=labels, label_subset="per-seed"),
        optimiser=OptimiserConfig(lr=1e-3, batch=100, updates=25_000, schedule="cosine", warmup=200),
        iterations=4,
    )


def texture_mnist_labels(digits: int, labels: int) -> Config:
    """Table 2, phase 2 by the paper's method: fresh layers and classes on top of the Ladder, all of it trained.

    The rate of the carried layers is ten times that of the fresh ones, three times for few labels of one digit
    (docs/LOG.md).
    """
    base, few = texture_mnist(digits), labels == 1_000
    config = _second_phase(base, labels)
    lr, carried = (5e-4, 10.0) if not few else (1e-3, 10.0) if digits == 2 else (2e-3, 3.0)
    rates = replace(config.optimiser, lr=lr, lower_layers=3, lower_rate=carried, v_rate=carried)
    return replace(
        config,
        model=replace(config.model, widths=(*base.model.widths, 500, 250), noise=0.15 if few else 0.18),
        optimiser=replace(rates, updates=20_000),
        test_iterations=4,
        class_cost=0.1 if few else 0.3,
    )


def texture_mnist_reader(digits: int, labels: int, variant: str = "-reader") -> Config:
    """Table 2, phase 2 with a mask reader of our own: fresh layers beside the Ladder read a group's class."""
    few, config = labels == 1_000, _second_phase(texture_mnist(digits), labels, variant)
    widths = (1000, 500) if few else (2000, 1000, 500)
    return replace(
        config,
        model=replace(config.model, class_widths=widths, class_input="masks"),
        class_cost=0.3 if few else 1.0,
        class_dropout=0.3 if few else 0.1,
    )


def texture_mnist_best(digits: int, labels: int) -> Config:
    """Table 2, our best: a mask reader, fresh compositions of the labelled digits, more iterations for two digits.

    With few labels the reader is also taught by scenes without them and leaves the groups alone.
    """
    two, config = digits == 2, texture_mnist_reader(digits, labels, "-best")
    config = replace(config, data=replace(config.data, mode="fresh"), test_iterations=8 if two else 5)
    if labels == 1_000:
        return replace(
            config,
            model=replace(config.model, class_widths=(2000, 1000, 500)),
            optimiser=replace(config.optimiser, lr=2e-3, updates=8_000 if two else 12_000),
            iterations=5 if two else 4,
            class_cost=1.0,
            class_reach="reader",
            class_agreement=1.0,
        )
    if two:
        return replace(config, iterations=6, class_dropout=0.0)
    return replace(config, optimiser=replace(config.optimiser, updates=20_000), class_cost=0.3)


def texture_mnist_2_either() -> Config:
    """Phase 1 on scenes with either digit on top, which is harder than the paper's data; our rate and schedule."""
    base = texture_mnist(2)
    return replace(
        base,
        recipe="texture-mnist-2-either",
        model=replace(base.model, ratio_variance="v+sigma2"),
        data=replace(base.data, depth="random"),
        optimiser=replace(base.optimiser, lr=4e-3, schedule="cosine", warmup=500),
    )


def texture_mnist_2_compact() -> Config:
    """A third of the width, fresh scenes, a fast v: phase 1 of the TextureMNIST2 model that is shipped."""
    base = texture_mnist_2_either()
    return replace(
        base,
        recipe="texture-mnist-2-compact",
        model=replace(base.model, widths=(1000, 500, 250)),
        data=replace(base.data, mode="fresh"),
        optimiser=OptimiserConfig(lr=4e-3, updates=25_000, schedule="cosine", warmup=500, v_rate=3.0),
    )


def texture_mnist_2_compact_labels_50k() -> Config:
    """The same, phase 2 with all labels, read on top of the Ladder."""
    config = _second_phase(texture_mnist_2_compact(), 50_000)
    return replace(
        config,
        model=replace(config.model, widths=(1000, 500, 250, 125)),
        data=replace(config.data, label_subset="shared"),
        optimiser=replace(config.optimiser, updates=30_000, v_rate=3.0),
        class_cost=1.0,
    )


def texture_mnist_2_small() -> Config:
    """A third of the paper's width, on fresh scenes of its data: phase 1 of a model that is small enough to ship."""
    base = texture_mnist(2)
    return replace(
        base,
        recipe="texture-mnist-2-small",
        model=replace(base.model, widths=(1000, 500, 250), ratio_variance="v+sigma2"),
        data=replace(base.data, mode="fresh"),
        optimiser=OptimiserConfig(lr=4e-3, updates=50_000, schedule="cosine", warmup=500, v_rate=3.0),
    )


def texture_mnist_2_small_labels_50k() -> Config:
    """The same, phase 2 with all labels and a mask reader."""
    first, config = texture_mnist_2_small(), texture_mnist_best(2, 50_000)
    return replace(
        config,
        recipe="texture-mnist-2-small-labels-50k",
        model=replace(config.model, widths=first.model.widths, ratio_variance="v+sigma2", class_widths=(1000, 500)),
        optimiser=replace(config.optimiser, v_rate=3.0),
    )


def tetrominoes() -> Config:
    """Three coloured tetrominoes on 35 x 35, with convolutions and a narrow code; masks start from places."""
    return Config(
        recipe="tetrominoes",
        model=TaggerConfig(
            shape=(35, 35),
            kind="binary",
            widths=(256, 16),
            lateral=False,
            top="relu",
            norm="layer",
            noise=0.05,
            mean=0.122,
            channels=3,
            mapping="conv",
            conv_channels=(32, 48, 64, 64),
            decoder="broadcast",
            start="places",
            start_apart=0.4,
            tie=0.0,
            masks="posterior-result",
        ),
        data=DataConfig(name="tetrominoes", mode="fresh", train=1000, valid=1000, test=10_000, objects=3, size=35),
        optimiser=OptimiserConfig(lr=2e-3, batch=32, updates=50_000, schedule="cosine", warmup=500, clip=1.0),
        runtime=RuntimeConfig(evaluate_every=5_000, evaluate_scenes=200, checkpoint_every=5_000),
        groups=4,
        test_groups=4,
        test_starts=8,
    )


def sprites() -> Config:
    """Two to five coloured sprites over one another on 64 x 64: the same, and z relative to the scene's background."""
    base = tetrominoes()
    return replace(
        base,
        recipe="sprites",
        model=replace(
            base.model,
            shape=(64, 64),
            kind="real",
            widths=(256, 24),
            mean=0.0,
            origin="scene",
            v_start=0.1,
            conv_channels=(48, 64, 64, 64),
            patch=2,
            start_apart=0.35,
        ),
        data=replace(base.data, name="sprites", objects=5, min_objects=2, size=64),
        groups=6,
        test_groups=6,
    )


def sprites_one_colour() -> Config:
    """The same with one colour for all sprites of a scene, so that places alone tell them apart."""
    base = sprites()
    return replace(
        base,
        recipe="sprites-one-colour",
        model=replace(base.model, place_weight=20.0),
        data=replace(base.data, variant="one-colour"),
    )


def sprites_texture() -> Config:
    """The same with a grey texture for each sprite in place of a colour."""
    base = sprites_one_colour()
    return replace(base, recipe="sprites-texture", data=replace(base.data, variant="texture"))


def sprites_ladder() -> Config:
    """Coloured sprites on 16 x 16 with the Ladder, which knows nothing of neighbours; masks start from values."""
    base = sprites()
    return replace(
        base,
        recipe="sprites-ladder",
        model=TaggerConfig(
            shape=(16, 16),
            kind="real",
            widths=(224, 112, 56),
            noise=0.3,
            mean=0.0,
            v_start=1.0,
            offset=0.5,
            scale=0.25,
            channels=3,
            start="values",
        ),
        data=replace(base.data, size=16),
        optimiser=OptimiserConfig(
            lr=5e-3, batch=50, updates=1_500, schedule="cosine", warmup=50, clip=1.0, v_rate=10.0
        ),
        runtime=replace(base.runtime, evaluate_every=500, checkpoint_every=500),
        discount=0.3,
        test_starts=4,
    )


def sprites_ladder_permuted() -> Config:
    """The same with all positions shuffled by one fixed permutation: no image is left."""
    base = sprites_ladder()
    return replace(base, recipe="sprites-ladder-permuted", data=replace(base.data, permuted=True))


_ALL: tuple[Callable[[], Config], ...] = (
    shapes,
    shapes_layernorm,
    shapes_wide,
    shapes_best,
    shapes_any,
    shapes_any_refined,
    shapes_permuted,
    small,
    partial(texture_mnist, 1),
    partial(texture_mnist, 2),
    *(
        partial(second, digits, labels)
        for second in (texture_mnist_labels, texture_mnist_reader, texture_mnist_best)
        for digits in (1, 2)
        for labels in (1_000, 50_000)
    ),
    texture_mnist_2_either,
    texture_mnist_2_compact,
    texture_mnist_2_compact_labels_50k,
    texture_mnist_2_small,
    texture_mnist_2_small_labels_50k,
    tetrominoes,
    sprites,
    sprites_one_colour,
    sprites_texture,
    sprites_ladder,
    sprites_ladder_permuted,
)
RECIPES: dict[str, Callable[[], Config]] = {make().recipe: make for make in _ALL}


def summary(name: str) -> str:
    """What a recipe is, in one line."""
    make = RECIPES[name]
    return (getattr(make, "func", make).__doc__ or "").splitlines()[0]


def recipe(name: str) -> Config:
    """The configuration of a recipe by its name."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(RECIPES)}"
        raise ValueError(f"there is no recipe {name!r}: {hint}")
    return RECIPES[name]()
