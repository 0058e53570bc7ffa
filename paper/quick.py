"""Runs of the paper at another size: so many seeds, on a device, or at toy size to see that everything works."""

from __future__ import annotations

from dataclasses import replace

from taggernet.training import Config

SIDES = {"tetrominoes": 14, "sprites": 16}
"""Of pictures at toy size."""


def sized_config(config: Config, seeds: int, device: str, quick: bool) -> Config:
    """The configuration with this many seeds on a device, at toy size if ``quick``."""
    config = replace(config, seeds=seeds, runtime=replace(config.runtime, device=device))
    return quick_config(config) if quick else config


def quick_config(config: Config) -> Config:
    """The same run at toy size, on the bundled digits: it takes seconds, and its metrics mean nothing."""
    texture = config.data.name.startswith("texture")
    model = replace(config.model, widths=_narrow(config.model.widths), class_widths=_narrow(config.model.class_widths))
    side = SIDES.get(config.data.name, config.data.size)
    if model.mapping == "conv":
        model = replace(model, shape=(side, side), conv_channels=(4, 6), patch=1, start_patch=min(model.start_patch, 4))
    return replace(
        config,
        model=model,
        data=replace(
            config.data,
            size=side,
            train=400 if texture else 200,
            valid=100,
            test=100,
            labels=min(400, 10 * -(-config.data.labels // 500)),
            digits="fixture" if texture else config.data.digits,
        ),
        optimiser=replace(
            config.optimiser,
            batch=20,
            updates=20,
            warmup=min(config.optimiser.warmup, 5),
            lower_wait=min(config.optimiser.lower_wait, 5),
        ),
        runtime=replace(config.runtime, log_every=10, evaluate_every=0, evaluate_scenes=100, checkpoint_every=0),
    )


def _narrow(widths: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(8, width // 50) for width in widths)
