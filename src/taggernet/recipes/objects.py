"""The field's own benchmarks: tetrominoes and sprites."""

from __future__ import annotations

from dataclasses import replace

from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig


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
        optimiser=OptimiserConfig(lr=2e-3, batch=32, updates=30_000, schedule="cosine", warmup=500, clip=1.0),
        runtime=RuntimeConfig(evaluate_every=5_000, evaluate_scenes=200, checkpoint_every=5_000),
        groups=4,
        test_groups=4,
        test_starts=8,
    )


def sprites() -> Config:
    """Two to five coloured sprites over one another on 64 x 64; masks stay with their start.

    z is relative to the scene's background.
    """
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
            tie=1.0,
        ),
        data=replace(base.data, name="sprites", test=2_000, objects=5, min_objects=2, size=64),
        optimiser=replace(base.optimiser, updates=8_000),
        runtime=replace(base.runtime, evaluate_every=2_000, checkpoint_every=2_000),
        groups=6,
        test_groups=6,
        test_starts=1,
    )


def sprites_one_colour() -> Config:
    """The same with one colour for all sprites of a scene: only places tell them apart."""
    base = sprites()
    return replace(
        base,
        recipe="sprites-one-colour",
        model=replace(base.model, place_weight=20.0, start_apart=0.325, start_sizes=True),
        data=replace(base.data, variant="one-colour"),
        optimiser=replace(base.optimiser, updates=2_000, warmup=200),
        test_starts=8,
    )


def sprites_texture() -> Config:
    """The same with a grey texture for each sprite, told apart by the direction and fineness of its stripes.

    z is too smooth to draw it. A large v that stays as it is keeps groups from sharing a sprite, one its bright and
    another its dark spots.
    """
    base = sprites()
    return replace(
        base,
        recipe="sprites-texture",
        model=replace(base.model, place_weight=1.5, start_apart=0.45, start_smooth=5, v_start=1.0, masks="mapping"),
        data=replace(base.data, variant="texture"),
        optimiser=replace(base.optimiser, updates=500, warmup=50, v_rate=0.0),
    )


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
        data=replace(base.data, test=10_000, size=16),
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
