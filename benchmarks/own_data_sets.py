"""Kinds of data with known groups, none of them the paper's: what benchmarks/own_data.py measures on.

# n scenes · every maker returns Scenes; groups are counted from 1, and 0 is not scored

Where several sources add up, an element belongs to the one that contributes most, and is not scored where all are
silent or two contribute about the same. Digits are those of the Free Spoken Digit Dataset (Zohar Jackson and
contributors, CC BY-SA 4.0), which is not part of this repository: TAGGERNET_FSDD names the folder of its fsdd.npz.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from taggernet.arrays import Array
from taggernet.data import Scenes

Random = np.random.Generator
SILENT = 0.35
"""Contributions below this share of the loudest one in a scene are silence."""

LEAST = 3
"""Elements that an object must own to be seen."""
LETTERS = "AEHKLNTVXZ"
"""Those that a scene shows two of."""


class Kind(NamedTuple):
    """A kind of data."""

    make: Callable[[Random, int], Scenes]
    groups: int
    """K: the objects of a scene, and one more where the rest is a group or is not scored."""
    what: str
    """In a few words, for the table."""


# --- binary -------------------------------------------------------------------------------------------------------


def bars(random: Random, n: int, size: int = 10) -> Scenes:
    """Three bars, rows or columns; crossings are not scored."""
    chosen = np.argsort(random.random((n, 2 * size)), 1)[:, :3]
    parts = np.zeros((n, 3, size, size), bool)
    for k in range(3):
        for line in range(size):
            parts[chosen[:, k] == line, k, line, :] = True
            parts[chosen[:, k] == size + line, k, :, line] = True
    return _binary(parts)


def baskets(random: Random, n: int, items: int = 60, themes: int = 12) -> Scenes:
    """Items bought for three of twelve purposes; an item serves several, and a few are bought for none."""
    table = _needs(items, themes)
    chosen = np.argsort(random.random((n, themes)), 1)[:, :3]
    parts = table[chosen] & (random.random((n, 3, items)) < 0.8)
    scenes = _binary(parts)
    return Scenes.of(scenes.x | (random.random((n, items)) < 0.02), scenes.groups, kind="binary")


def _needs(items: int = 60, themes: int = 12) -> Array:
    """Which items each purpose needs, (themes, items): the same in every set."""
    needs = np.argsort(np.random.default_rng(0).random((themes, items)), 1)[:, :10]
    table = np.zeros((themes, items), bool)
    table[np.arange(themes)[:, None], needs] = True
    return table


def letters(random: Random, n: int, size: int = 18) -> Scenes:
    """Two letters of DejaVu Sans Bold that may overlap, of ten; black and white."""
    glyphs = _glyphs(LETTERS, 12)
    parts = np.zeros((n, 2, size, size), bool)
    which = np.argsort(random.random((n, len(glyphs))), 1)[:, :2]
    for k in range(2):
        for i in range(n):
            glyph = glyphs[which[i, k]]
            top, left = (random.integers(0, size - side + 1) for side in glyph.shape)
            parts[i, k, top : top + glyph.shape[0], left : left + glyph.shape[1]] = glyph
    return _binary(parts)


def _binary(parts: Array) -> Scenes:
    """x where any part is, owned where one alone is."""
    owner = (parts * np.arange(1, parts.shape[1] + 1).reshape(1, -1, *[1] * (parts.ndim - 2))).sum(1)
    return Scenes.of(parts.any(1).astype(np.uint8), np.where(parts.sum(1) == 1, owner, 0))


@cache
def _glyphs(text: str, height: int) -> list[Array]:
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans:bold"), height)
    found = []
    for letter in text:
        image = Image.new("L", (2 * height, 2 * height))
        ImageDraw.Draw(image).text((4, 2), letter, 255, font)
        ink = np.asarray(image) > 127
        rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
        found.append(ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    return found


# --- pictures -----------------------------------------------------------------------------------------------------


def grey(random: Random, n: int, size: int = 12) -> Scenes:
    """Two grey squares on black, the second in front; values in [0, 1] with a little noise. The ground is a group."""
    owner = _squares(random, n, size)
    levels = np.stack([np.zeros(n), *_apart(random, n, 0.3, 1.0, 0.2)], 1)
    x = np.take_along_axis(levels, owner.reshape(n, -1), 1).reshape(owner.shape)
    return _real(np.clip(x + 0.03 * random.standard_normal(x.shape), 0, 1), owner + 1)


def colour(random: Random, n: int, size: int = 12) -> Scenes:
    """Two squares of random colours on a grey ground, (size, size, 3)."""
    owner = _squares(random, n, size)
    corners = np.argsort(random.random((n, 8)), 1)[:, :2, None] >> np.arange(3) & 1  # two different ones of the cube
    colours = np.concatenate([np.full((n, 1, 3), 0.5), 0.1 + 0.8 * corners], 1) + random.uniform(-0.1, 0.1, (n, 3, 3))
    x = np.take_along_axis(colours, owner.reshape(n, -1, 1), 1).reshape(*owner.shape, 3)
    return _real(np.clip(x + 0.03 * random.standard_normal(x.shape), 0, 1), owner + 1)


def _squares(random: Random, n: int, size: int) -> Array:
    """0 where the ground shows, else which of two squares (n, size, size)."""
    owner = np.zeros((n, size, size), np.int64)
    at = np.arange(size)
    for k in (1, 2):
        side = random.integers(size // 3, size // 2 + 1, n)[:, None]
        top, left = (random.integers(0, size - side + 1) for _ in range(2))
        inside_rows, inside_columns = ((at >= first) & (at < first + side) for first in (top, left))
        owner[inside_rows[:, :, None] & inside_columns[:, None, :]] = k
    return owner


def _apart(random: Random, n: int, low: float, high: float, least: float) -> tuple[Array, Array]:
    """Two uniform numbers that differ by ``least`` at least."""
    first = random.uniform(low, high, n)
    gap = random.uniform(least, high - low - least, n)
    return first, low + (first - low + gap) % (high - low)


# --- signals ------------------------------------------------------------------------------------------------------


def level_signals(random: Random, n: int) -> Scenes:
    """A signal that switches between a sine around +1 and a saw-tooth around -1; the value tells the owner."""
    return _switched(random, n, 1.0)


def plain_signals(random: Random, n: int) -> Scenes:
    """A signal that switches between a slow sine and a fast saw-tooth around the same level."""
    return _switched(random, n, 0.0)


def _switched(random: Random, n: int, level: float, steps: int = 64) -> Scenes:
    time = np.arange(steps)
    phase = random.random((n, 2, 1))
    sine = np.sin(2 * np.pi * (time / 32 + phase[:, 0]))
    saw = 2 * ((time / 8 + phase[:, 1]) % 1) - 1
    owner = np.zeros((n, steps), np.int64)
    cuts = random.integers(8, steps - 7, (n, 3))
    for cut in cuts.T:
        owner += time >= cut[:, None]
    owner = (owner + random.integers(0, 2, (n, 1))) % 2
    x = np.where(owner == 0, level + 0.5 * sine, -level + 0.5 * saw) if level else np.where(owner == 0, sine, saw)
    return _real(x + 0.1 * random.standard_normal(x.shape), owner + 1)


def spikes(random: Random, n: int, electrodes: int = 4, steps: int = 24) -> Scenes:
    """Four electrodes hear two of five neurons fire, perhaps at once; each has a shape and a place of its own."""
    fixed = np.random.default_rng(1)
    time = np.arange(10)
    shapes = np.stack(
        [-np.exp(-(((time - 3) / w) ** 2)) + r * np.exp(-(((time - 6) / (2 * w)) ** 2)) for w, r in
         zip(np.linspace(0.8, 2.0, 5), np.linspace(0.1, 0.7, 5)[::-1], strict=True)]
    )  # fmt: skip
    places = fixed.uniform(0.1, 0.4, (5, electrodes))
    places[np.arange(5), np.arange(5) % electrodes] = 1.0
    waves = places[:, :, None] * shapes[:, None, :]
    which = np.argsort(random.random((n, 5)), 1)[:, :2]
    begin = random.integers(0, steps - 9, (n, 2))
    parts = np.zeros((n, 2, electrodes, steps))
    size = random.uniform(0.8, 1.2, (n, 2, 1, 1))
    for first in range(steps - 9):
        for k in range(2):
            here = begin[:, k] == first
            parts[here, k, :, first : first + 10] = (size[:, k] * waves[which[:, k]])[here]
    return _loudest(parts, parts.sum(1) + 0.05 * random.standard_normal((n, electrodes, steps)))


# --- sensors ------------------------------------------------------------------------------------------------------


def sensors(random: Random, n: int, count: int = 40) -> Scenes:
    """Sensors around a ring, each in units of its own; two events, a rise and a swing, each at a random place."""
    fixed = np.random.default_rng(2)
    gain, zero = 10 ** fixed.uniform(-2, 2, count), fixed.uniform(-50, 50, count)
    at = np.arange(count)
    parts = np.zeros((n, 2, count))
    centre = random.integers(0, count, (n, 2))
    # The events are apart by a quarter of the ring at least, so that neither hides the other.
    centre[:, 1] = (centre[:, 0] + random.integers(count // 4, 3 * count // 4, n)) % count
    for k in range(2):
        distance = (at - centre[:, k : k + 1] + count // 2) % count - count // 2
        wave = np.exp(-((distance / 4) ** 2)) if k == 0 else np.sin(distance / 1.5) * np.exp(-((distance / 6) ** 2))
        parts[:, k] = random.uniform(0.7, 1.3, (n, 1)) * random.choice([-1, 1], (n, 1)) * wave
    x = parts.sum(1) + 0.05 * random.standard_normal((n, count))
    return _loudest(parts, zero + gain * x)


def fixed_sensors(random: Random, n: int, count: int = 40) -> Scenes:
    """Each sensor always follows the same one of two hidden events: nothing about a single scene is to be found out."""
    fixed = np.random.default_rng(3)
    owner = np.argsort(fixed.random(count)) % 2
    weight = fixed.uniform(0.5, 1.5, count) * fixed.choice([-1, 1], count)
    events = random.standard_normal((n, 2))
    x = events[:, owner] * weight + 0.3 * random.standard_normal((n, count))
    return _real(x, np.broadcast_to(owner + 1, x.shape))


# --- sound --------------------------------------------------------------------------------------------------------


def tones(random: Random, n: int, bands: int = 16, frames: int = 16) -> Scenes:
    """A spectrogram of two tones with overtones, each with a pitch, a beginning and a decay of its own."""
    parts = np.zeros((n, 2, bands, frames))
    pitch = np.argsort(random.random((n, 5)), 1)[:, :2] + 2.0
    begin, length = random.integers(0, 9, (n, 2)), random.uniform(4, 12, (n, 2))
    for k in range(2):
        tone = _tone(pitch[:, k], begin[:, k], length[:, k], bands, frames)
        parts[:, k] = random.uniform(0.6, 1.4, (n, 1, 1)) * tone
    return _loudest(parts, np.log(0.05 + parts.sum(1) + 0.02 * np.abs(random.standard_normal((n, bands, frames)))), 0.1)


def _tone(pitch: Array, begin: Array, length: Array, bands: int = 16, frames: int = 16) -> Array:
    """n tones with overtones that decay, (n, bands, frames)."""
    since = np.arange(frames) - begin[:, None]
    envelope = np.where(since >= 0, np.exp(-since / length[:, None]), 0)
    spectrum: Array = sum(
        np.exp(-(((np.arange(bands) - overtone * pitch[:, None]) / 0.7) ** 2)) / overtone**0.5
        for overtone in range(1, 8)
    )
    return spectrum[:, :, None] * envelope[:, None, :]


def spoken_digits(random: Random, n: int, bands: int = 20, frames: int = 20) -> Scenes:
    """Spectrograms of two spoken digits at once, of two speakers; an element belongs to the louder one."""
    folder = os.environ.get("TAGGERNET_FSDD")
    if not folder or not (Path(folder) / "fsdd.npz").is_file():
        raise FileNotFoundError("spoken digits need fsdd.npz: set TAGGERNET_FSDD to its folder")
    loudness = _recordings(folder, bands, frames)
    first = random.integers(0, len(loudness), n)
    second = (first + random.integers(500, len(loudness) - 500, n)) % len(loudness)  # 500 recordings per speaker
    parts = np.stack([loudness[first], loudness[second]], 1)
    return _loudest(parts, np.log(0.03 + parts.sum(1)), silent=0.1)


@cache
def _recordings(folder: str, bands: int, frames: int) -> Array:
    """The magnitude in mel bands, (3000, bands, frames), speaker by speaker, the loudest element 1."""
    with np.load(Path(folder) / "fsdd.npz") as file:
        samples, offsets, speaker = file["samples"], file["offsets"], file["speaker"]
    window, hop = 400, 160  # 50 ms every 20 ms at 8 kHz
    mel = _mel(bands, window // 2 + 1, 8000)
    found = np.zeros((len(offsets) - 1, bands, frames), np.float32)
    for i, (begin, end) in enumerate(pairwise(offsets)):
        sound = samples[begin:end].astype(np.float32)
        sound = np.pad(sound, (0, max(0, window - len(sound))))
        pieces = np.lib.stride_tricks.sliding_window_view(sound, window)[::hop][:frames]
        power = np.abs(np.fft.rfft(pieces * np.hanning(window), axis=1))
        found[i, :, : len(pieces)] = (power @ mel).T
        found[i] /= found[i].max()
    return found[np.argsort(speaker, kind="stable")]


def _mel(bands: int, bins: int, rate: int) -> Array:
    """Triangles, equally wide on the mel scale, that turn bins of a Fourier transform into bands."""
    edges = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    frequency = np.linspace(0, rate / 2, bins)[:, None]
    rising = (frequency - hertz[:-2]) / (hertz[1:-1] - hertz[:-2])
    falling = (hertz[2:] - frequency) / (hertz[2:] - hertz[1:-1])
    return np.maximum(0, np.minimum(rising, falling))


# --- all ----------------------------------------------------------------------------------------------------------


def _real(x: Array, groups: Array) -> Scenes:
    return Scenes.of(x.astype(np.float32), groups, kind="real")


def _loudest(parts: Array, x: Array, silent: float = SILENT) -> Scenes:
    """Each element belongs to the part that contributes most, if that is no silence and no draw."""
    loud = np.sort(np.abs(parts), 1)
    most = loud[:, -1].reshape(len(x), -1).max(1).reshape(-1, *[1] * (x.ndim - 1))
    clear = (loud[:, -1] > silent * most) & (loud[:, -1] > 1.5 * loud[:, -2])
    return _real(x, np.where(clear, np.abs(parts).argmax(1) + 1, 0))


KINDS = {
    "bars": Kind(bars, 4, "three bars of 10 x 10, binary"),
    "baskets": Kind(baskets, 4, "60 items, three of twelve overlapping purposes, binary"),
    "letters": Kind(letters, 3, "two overlapping letters of a font, 18 x 18, binary"),
    "grey": Kind(grey, 3, "two grey squares, 12 x 12"),
    "colour": Kind(colour, 3, "two squares of random colours, 12 x 12 x 3"),
    "signals-level": Kind(level_signals, 2, "64 steps, sine and saw-tooth around their own levels"),
    "signals": Kind(plain_signals, 2, "64 steps, sine and saw-tooth around the same level"),
    "spikes": Kind(spikes, 3, "two of five neurons fire, 4 electrodes x 24 steps"),
    "sensors": Kind(sensors, 3, "40 sensors with units of their own, two events at random places"),
    "sensors-fixed": Kind(fixed_sensors, 2, "40 sensors, each always follows the same event"),
    "tones": Kind(tones, 3, "spectrogram of two tones, 16 x 16"),
    "spoken-digits": Kind(spoken_digits, 3, "spectrogram of two speakers, 20 x 20"),
}


def make(name: str, n: int, seed: int = 0) -> Scenes:
    """n scenes of a kind, in each of which two objects or more can be seen; a seed always gives the same."""
    drawn = KINDS[name].make(np.random.default_rng([seed, *name.encode()]), 2 * n)
    flat = drawn.groups.reshape(2 * n, -1)
    sizes = np.stack([(flat == k).sum(1) for k in range(1, flat.max() + 1)])
    seen = np.flatnonzero((sizes >= LEAST).sum(0) >= 2)
    if len(seen) < n:
        raise ValueError(f"{name}: only {len(seen)} of {2 * n} scenes show two objects")
    return drawn[seen[:n]]
