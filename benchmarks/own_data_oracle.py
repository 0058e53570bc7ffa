"""Is the truth of own data decidable? AMI of somebody who knows how a kind of data is made, on the test scenes.

    python benchmarks/own_data_oracle.py [--kinds letters signals] [--out results/own_data]

# n scenes · N elements · A atoms: everything that one object can look like

An oracle knows every shape that an object can have, but not which ones a scene shows nor where. It takes the two or
three that explain the scene best, and gives each element to the one that contributes most. What it misses of 1 is
hardly in the data. Of spoken digits it knows every recording but the two that it hears. Kinds that a classical method
solves have no oracle. Spoken digits are left out unless TAGGERNET_FSDD names a folder with fsdd.npz.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path

import numpy as np

from classical import ami
from own_data_sets import LETTERS, _glyphs, _needs, _recordings, _tone, make
from taggernet.arrays import Array
from taggernet.fileio import write_json

SCENES = 300


def baskets(x: Array) -> Array:
    """The three purposes with the highest likelihood; an item belongs to the first of them that it serves."""
    table = _needs()
    triples = list(combinations(range(len(table)), 3))
    serving = np.stack([table[list(three)].sum(0) for three in triples])  # (A, N): how many of the three it serves
    bought = 1 - 0.98 * 0.2**serving
    likelihood = x @ np.log(bought).T + (1 - x) @ np.log(1 - bought).T
    best = [table[list(triples[i])] for i in likelihood.argmax(1)]
    # Of an item that serves two nobody can tell more than that it may be either's alone.
    return np.stack([np.where(one.any(0), one.argmax(0), 3) for one in best])


def letters(x: Array, size: int = 18) -> Array:
    """The two letters whose union is the scene, or misses least of it."""
    atoms = []
    for glyph in _glyphs(LETTERS, 12):
        for top in range(size - glyph.shape[0] + 1):
            for left in range(size - glyph.shape[1] + 1):
                atoms.append(np.zeros((size, size), bool))
                atoms[-1][top : top + glyph.shape[0], left : left + glyph.shape[1]] = glyph
    flat = np.stack(atoms).reshape(len(atoms), -1)
    labels = np.zeros((len(x), size * size), np.int64)
    for i, scene in enumerate(x.reshape(len(x), -1) > 0):
        inside = flat[(flat & ~scene).sum(1) == 0]
        missed = [(scene & ~(a | b)).sum() for a, b in combinations(inside, 2)]
        first, second = list(combinations(inside, 2))[int(np.argmin(missed))]
        labels[i] = np.where(first, 1, np.where(second, 2, 0))
    return labels.reshape(x.shape)


def signals(x: Array) -> Array:
    """Phases of both waveforms on a grid; a step belongs to the nearer one, and switching has a price."""
    time, price = np.arange(64), 0.08
    sine = np.sin(2 * np.pi * (time / 32 + np.arange(0, 1, 1 / 64)[:, None]))
    saw = 2 * ((time / 8 + np.arange(0, 1, 1 / 32)[:, None]) % 1) - 1
    labels = np.zeros(x.shape, np.int64)
    for i, scene in enumerate(x):
        off = [np.minimum((scene - waves) ** 2, 1.0) for waves in (sine, saw)]
        best = np.minimum(off[0][:, None], off[1][None]).sum(2)
        at = np.unravel_index(best.argmin(), best.shape)
        labels[i] = _path(np.stack([off[0][at[0]], off[1][at[1]]], 1), price)
    return labels


def _path(costs: Array, price: float) -> Array:
    """The cheapest labels of a row of steps (Viterbi)."""
    total, came = costs[0], []
    for step in costs[1:]:
        stay, switch = total, total[::-1] + price
        came.append(np.where(stay <= switch, [0, 1], [1, 0]))
        total = np.minimum(stay, switch) + step
    found = [int(total.argmin())]
    for before in came[::-1]:
        found.append(int(before[found[-1]]))
    return np.array(found[::-1])


def tones(x: Array) -> Array:
    """Two tones of a grid of pitches, beginnings and decays, as loud as they fit the spectrogram's squares best."""
    lengths = np.geomspace(4, 12, 5)
    every = [(p, b, length) for p in range(2, 7) for b in range(9) for length in lengths]
    atoms = np.stack([_tone(*(np.array([v], float) for v in one))[0].ravel() for one in every])  # (A, N)
    pitch = np.array([one[0] for one in every])
    gram = atoms @ atoms.T
    apart = pitch[:, None] < pitch  # two tones never share a pitch
    determinant = np.diag(gram)[:, None] * np.diag(gram) - gram**2
    labels = []
    for scene in np.maximum(np.exp(x.reshape(len(x), -1)) - 0.066, 0):  # 0.05, and the mean of the noise
        along = atoms @ scene
        a = (along[:, None] * np.diag(gram) - along * gram) / np.where(apart, determinant, 1)
        b = (along * np.diag(gram)[:, None] - along[:, None] * gram) / np.where(apart, determinant, 1)
        gain = np.where(apart & (a > 0) & (b > 0), a * along[:, None] + b * along, -np.inf)
        i, j = np.unravel_index(gain.argmax(), gain.shape)
        labels.append((a[i, j] * atoms[i] < b[i, j] * atoms[j]).astype(np.int64))
    return np.stack(labels).reshape(x.shape)


def spoken_digits(x: Array, likely: int = 150) -> Array:
    """The two recordings, of those that explain many elements, whose sum is nearest to the scene; never its own two."""
    atoms = _recordings(*x.shape[1:]).reshape(-1, x[0].size)
    logs, labels = np.log(0.03 + atoms), []
    first, second = np.triu_indices(likely, 1)
    for scene in x.reshape(len(x), -1):
        theirs = (atoms <= np.exp(scene) - 0.03 + 1e-4).all(1)  # nothing of it is louder than the scene
        missed = np.minimum((logs - scene) ** 2, 0.25).sum(1) + np.where(theirs, np.inf, 0)
        near = atoms[missed.argsort()[:likely]]
        off = ((np.log(0.03 + near[first] + near[second]) - scene) ** 2).sum(1)
        one, other = near[first[off.argmin()]], near[second[off.argmin()]]
        labels.append((one < other).astype(np.int64))
    return np.stack(labels).reshape(x.shape)


ORACLES = {"baskets": baskets, "letters": letters, "signals": signals, "tones": tones, "spoken-digits": spoken_digits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", choices=list(ORACLES), default=list(ORACLES))
    parser.add_argument("--out", type=Path, help="folder of the records, into which the AMI goes")
    options = parser.parse_args()
    for kind in options.kinds:
        try:
            scenes = make(kind, SCENES, seed=1)
        except FileNotFoundError as missing:
            print(f"{kind}: left out, as {missing}")
            continue
        found = ami(scenes, ORACLES[kind])
        print(f"{kind:15} {found:.3f}", flush=True)
        path = options.out / f"{kind}.json" if options.out else None
        if path is not None and path.exists():
            write_json(path, json.loads(path.read_text("utf-8")) | {"oracle": found})


if __name__ == "__main__":
    main()
