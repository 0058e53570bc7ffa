"""Runs small enough for tests: the same code as a full run, seconds instead of hours.

``python tests/helpers/toys.py [RECIPE ...]`` writes the golden loss curves (of all recipes by default), after a change
of the mathematics that is meant.

The epsilons of the norms and of Adam are large here. With the real ones a gradient that is zero but for rounding moves
a weight by a whole learning rate, and two runs that differ in one bit soon differ by percents. For the same reason v of
convolutions, whose sums differ from CPU to CPU, starts high.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from taggernet import data
from taggernet.data import textures
from taggernet.recipes import RECIPES, recipe
from taggernet.tagger import TaggerConfig
from taggernet.training import Config, DataConfig, OptimiserConfig, RuntimeConfig, train

SOFT_NORM, SOFT_ADAM = 1e-3, 1e-4
GOLDEN = Path(__file__).parents[1] / "training" / "golden"
STEPS = 20


def toy(norm: str = "layer", mode: str = "fresh", *, seeds: int = 1, first_seed: int = 0, **optimiser: Any) -> Config:
    """Two solid shapes on 8 x 8, three levels of at most 24 features."""
    return Config(
        recipe="small",
        model=TaggerConfig(shape=(8, 8), widths=(24, 16, 8), norm=norm, mean=0.3, norm_eps=SOFT_NORM),
        data=DataConfig(mode=mode, train=25, valid=20, test=20, objects=2, size=8, style="small"),
        optimiser=OptimiserConfig(**({"lr": 0.01, "batch": 10, "updates": 12, "eps": SOFT_ADAM} | optimiser)),
        runtime=quiet(log_every=4, evaluate_every=6, checkpoint_every=5),
        groups=3,
        iterations=2,
        test_groups=3,
        test_iterations=2,
        evaluation_batch=10,
        seeds=seeds,
        first_seed=first_seed,
    )


def quiet(**changes: Any) -> RuntimeConfig:
    settings = {"device": "cpu", "progress": False, "tensorboard": False, "evaluate_every": 0, "checkpoint_every": 0}
    return RuntimeConfig(**(settings | changes))


def records(run: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without its times; a torn line fails here."""
    found = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in record.items() if name not in ("time", "seconds_trained")} for record in found
    ]


# --- recipes at toy size ------------------------------------------------------------------------------------------


@contextmanager
def fixture_digits() -> Iterator[None]:
    """TextureMNIST from the digits that travel with the package: the MNIST files may be absent."""
    with mock.patch.object(textures, "mnist", data.fixture_digits):
        with mock.patch.object(data, "mnist", data.fixture_digits):
            yield


def shrunk(name: str, updates: int = STEPS) -> Config:
    """A recipe with everything kept but its size, its epsilons and v (see above) and a rate that suits few updates."""
    full = recipe(name)
    texture, conv = full.data.name.startswith("texture"), full.model.mapping == "conv"
    size = {"tetrominoes": 14, "sprites": 16}.get(full.data.name, full.data.size)
    widths, class_widths = (tuple(max(6, w // 100) for w in ws) for ws in (full.model.widths, full.model.class_widths))
    return replace(
        full,
        model=replace(
            full.model,
            widths=widths,
            class_widths=class_widths,
            class_conv_channels=tuple(c // 8 for c in full.model.class_conv_channels),
            norm_eps=SOFT_NORM,
            **({"shape": (size, size), "conv_channels": (4, 6), "v_start": 1.0} if conv else {}),
        ),
        data=replace(
            full.data,
            train=400 if texture else 60,
            valid=20,
            test=20,
            labels=min(10 * -(-full.data.labels // 200), 200),
            size=size,
        ),
        optimiser=replace(
            full.optimiser,
            lr=5 * full.optimiser.lr / max(1.0, full.optimiser.lower_rate),
            batch=10,
            updates=updates,
            eps=SOFT_ADAM,
            warmup=min(full.optimiser.warmup, 5),
            lower_wait=min(full.optimiser.lower_wait, 5),
        ),
        runtime=quiet(log_every=1, evaluate_scenes=10),
        iterations=min(full.iterations, 2 if texture or conv else 3),
        precision="float32",
    )


def curve(name: str, folder: Path) -> dict[str, list[float]]:
    """The costs of every update of a recipe at toy size."""
    with fixture_digits():
        train(shrunk(name), folder)
    losses = [record for record in records(folder) if "loss" in record]
    assert [record["step"] for record in losses] == list(range(1, STEPS + 1))
    named = {key: [record[key][0] for record in losses] for key in losses[0] if key != "step"}
    assert all(math.isfinite(value) for values in named.values() for value in values)
    return named


def main() -> None:
    import tempfile

    import torch

    torch.set_num_threads(1)
    GOLDEN.mkdir(exist_ok=True)
    for name in sys.argv[1:] or RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            rounded = {key: [float(f"{v:.7g}") for v in values] for key, values in curve(name, Path(folder)).items()}
        (GOLDEN / f"{name}.json").write_text(json.dumps(rounded, indent=1) + "\n")
        print(f"wrote {name}: {rounded['loss'][0]:.4f} -> {rounded['loss'][-1]:.4f}")


if __name__ == "__main__":
    main()
