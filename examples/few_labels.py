"""Few labels: 30 of 2,000 scenes are labelled; each scene is a textured digit on a background of another texture.

    python examples/few_labels.py

A toy problem of bundled MNIST digits: three classes, brightened so that a minute of training suffices, and shrunk to
14 x 14. The script trains twice with the same labels, once on the labelled scenes only and once on all scenes, and
prints both test errors.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

import taggernet as tn
from taggernet.training.auto_config import config_for

DIGITS = (0, 1, 7)


def scenes(split: str, n: int, seed: int = 0) -> tn.data.Scenes:
    """TextureMNIST1 scenes of the chosen digits at half size; class i is DIGITS[i]."""
    images, labels = tn.data.fixture_digits(split)
    chosen = np.isin(labels, DIGITS)
    made = tn.data.texture_mnist(1, split, seed, n=n, images=images[chosen], labels=labels[chosen])
    digit = made.groups == made.groups.max()  # the background is group 1
    x = (0.5 * made.x + 0.5 * digit).reshape(n, 14, 2, 14, 2).mean((2, 4))
    return tn.data.Scenes.of(x, classes=np.searchsorted(DIGITS, made.classes))


def few(train: tn.data.Scenes, labels: int) -> tn.data.Scenes:
    """Keep this many labels, the same number per class, and hide the others."""
    kept = tn.data.labelled_subset(train.classes, labels, n_classes=len(DIGITS))
    classes = np.full(len(train), -1)
    classes[kept] = train.classes[kept]
    return tn.data.Scenes.of(train.x, classes=classes)


def error(train: tn.data.Scenes, test: tn.data.Scenes, updates: int) -> float:
    """Train on partly labelled scenes and return the error rate on the test scenes."""
    config = config_for(train)
    config = replace(
        config,
        model=replace(config.model, widths=(128, 64, 32)),
        data=replace(config.data, valid=0, test=0, train=len(train)),
        optimiser=replace(config.optimiser, updates=updates, batch=min(30, len(train)), lr=3e-3, warmup=0),
        runtime=replace(config.runtime, progress=False, device="cpu", evaluate_every=0),
        groups=2,
        iterations=2,
        class_cost=1.0,
    )
    model = tn.train(config, scenes=train).model()
    guesses = model.predict(test.x, groups=2, iterations=2)
    return float(np.mean(tn.metrics.classification_error(guesses, test.classes)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Classify textured digits from few labels.")
    parser.add_argument("--labels", type=int, default=30, help="labelled scenes, a multiple of 3")
    parser.add_argument("--scenes", type=int, default=2000, help="training scenes")
    parser.add_argument("--updates", type=int, default=400, help="training updates of each of the two runs")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the matrices are small: more threads would only wait for each other

    begun = time.perf_counter()
    train, test = few(scenes("train", options.scenes), options.labels), scenes("test", 600)
    alone = error(train[train.labelled], test, options.updates)
    print(f"error from the {options.labels} labelled scenes alone: {alone:.3f} (chance {1 - 1 / len(DIGITS):.3f})")
    both = error(train, test, options.updates)
    print(f"error with {options.scenes - options.labels} more without a label: {both:.3f}")
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
