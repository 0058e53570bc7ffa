"""Your own data, end to end: make a file, train on it, see the groups.

    python examples/own_data.py

The data are synthetic: 40 detectors in a row, each on or off, with a few misreadings. Two machines trigger them,
anywhere along the row: one switches on six neighbours, the other every second of nine. The network is not told. The
script prints how well its groups match the machines (adjusted mutual information: 0 is chance, 1 is perfect) and draws
a few rows as text.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import taggernet as tn

DETECTORS = 40
MACHINES = (np.ones(6, bool), np.arange(9) % 2 == 0)


def write_file(path: Path, n: int, seed: int = 0) -> None:
    """x (n, 40) of 0 and 1, and groups: the machine that caused each 1 (1 or 2), 0 for none, both or a misreading."""
    rng = np.random.default_rng(seed)
    on = np.zeros((2, n, DETECTORS), bool)
    for marks, pattern in zip(on, MACHINES, strict=True):
        places = rng.integers(0, DETECTORS - len(pattern) + 1, n)
        for row, place in zip(marks, places, strict=True):
            row[place : place + len(pattern)] = pattern
    first, second = on
    misread = rng.random(first.shape) < 0.03
    groups = np.where(first & second | misread, 0, first + 2 * second)
    np.savez(path, x=((first | second) ^ misread).astype(np.uint8), groups=groups)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on a file of your own, from the file to the groups.")
    parser.add_argument("--scenes", type=int, default=4000, help="rows in the file")
    parser.add_argument("--updates", type=int, default=1200, help="training updates")
    parser.add_argument("--out", type=Path, help="keep the file and the run in this folder")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the matrices are small: more threads would only wait for each other

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "detectors.npz"
        if not path.exists():
            write_file(path, options.scenes)

        # The same as: taggernet train detectors.npz --out run --updates 1200 --batch 50 --lr 5e-3 --widths 96 48 24
        config = tn.config_for(path)
        config = replace(
            config,
            model=replace(config.model, widths=(96, 48, 24)),
            optimiser=replace(config.optimiser, updates=options.updates, batch=50, lr=5e-3, warmup=20),
            runtime=replace(config.runtime, progress=False, device="cpu"),
        )
        run = tn.train(config, folder / "run")
        print(f"{config.model.kind} data, K={config.groups}: {run.seconds:.0f} s for {run.step} updates")
        figures = tn.evaluate(folder / "run", device="cpu")["figures"]
        print(f"AMI on rows it has not seen: {figures['ami'][0][-1]:.3f}")

        model = tn.Tagger.from_pretrained(folder / "run")
        x = np.load(path)["x"][:4]
        for row, labels in zip(x, model.group(x, groups=config.groups).labels, strict=True):
            print("".join("abcdefgh"[k] if on else "." for on, k in zip(row, labels, strict=True)))


if __name__ == "__main__":
    main()
