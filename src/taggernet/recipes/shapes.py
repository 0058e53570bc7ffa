"""Shapes: Table 1, our best of it, any number of objects, and the small preset."""

from __future__ import annotations

from dataclasses import replace

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
    """The same with half the width, which groups best."""
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
