"""Trace the update of small runs as torch.compile does, without generating code.

What cannot be traced would train uncompiled, with a warning, dozens of times slower. Prints a line for each run; the
traced batch and costs must be the plain ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from toys import fixture_digits, shrunk

from taggernet.training import Config, datasets
from taggernet.training.adam import TrainState
from taggernet.training.assembly import update_for
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part


def runs() -> dict[str, Config]:
    """Between them all parts of the model: both mappings and norms, all kinds of masks and starts, classes."""
    shapes, sprites, reader = shrunk("shapes-any"), shrunk("sprites"), shrunk("texture-mnist-2-best-labels-1k")
    places: dict[str, Any] = {"start": "places", "start_apart": 0.3, "start_sizes": True}
    departures: dict[str, Any] = {
        "masks": "posterior", "start_patch": 4, "decoder": "mirror", "start": "random", "start_apart": 0.0
    }  # fmt: skip
    return {
        "attention between groups": replace(shapes, model=replace(shapes.model, group_attention=4), seeds=2),
        "classes on top": shrunk("texture-mnist-2-labels-1k"),
        "classes beside, taught by twins and distorted masks": replace(
            reader, data=replace(reader.data, twins=True), class_distortion=0.5
        ),
        "convolutions": sprites,
        "departures from the paper": replace(sprites, model=replace(sprites.model, **departures)),
        "starts from values": replace(sprites, model=replace(sprites.model, start="values", start_apart=0.0, tie=0.5)),
        "starts from parts": replace(shapes, model=replace(shapes.model, start="parts"), seeds=2),
        "starts from places": replace(shapes, model=replace(shapes.model, **places), seeds=2),
        "starts from textures": replace(shapes, model=replace(shapes.model, start="places", start_smooth=3)),
    }


def trace(config: Config) -> None:
    cpu, part = torch.device("cpu"), Part.of(config.optimiser.batch)
    source = datasets.source(config, cpu, config.seed_list, part, datasets.training_set(config))
    state = TrainState.fresh(initial_weights(config.model, config.seed_list, cpu), ema=False)
    update = update_for(config, source, state, cpu, part, shared_statistics=False)
    source.prepare(0)
    options: dict[str, Any] = {"backend": "eager", "fullgraph": True, "dynamic": False}
    batch, cost = torch.compile(source.batch, **options), torch.compile(update.cost, **options)
    weights, step = update.adam.weights, update.step
    torch.testing.assert_close(batch(step), source.batch(step))
    plain = update.cost(weights, source.batch(step), step)
    torch.testing.assert_close(tuple(cost(weights, batch(step), step)), tuple(plain))
    torch.compiler.reset()


if __name__ == "__main__":
    with fixture_digits():
        for name, config in runs().items():
            trace(config)
            print(f"{name}: traced", flush=True)
