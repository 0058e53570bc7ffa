"""Draw docs/images/data_sets.png: scenes of the data sets in colour, and their true groups.

python docs/images/data_sets.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import taggernet as tn
from taggernet.viz.colours import palette

SHOWN = 5


def rows() -> dict[str, tn.Scenes]:
    """Title -> scenes."""
    return {
        "tetrominoes": tn.data.tetrominoes(SHOWN),
        "sprites": tn.data.sprites(SHOWN, seed=1),
        "sprites, one colour": tn.data.sprites(SHOWN, seed=1, variant="one-colour"),
        "sprites, textures": tn.data.sprites(SHOWN, seed=1, variant="texture"),
    }


def draw() -> Figure:
    """Two data sets side by side, scenes above their groups."""
    sets = rows()
    mpl.rcParams["font.size"] = 9
    figure = Figure(figsize=(10, 4.5), facecolor="white")
    colours = np.concatenate([np.ones((1, 3)), palette(8)])
    for number, (title, scenes) in enumerate(sets.items()):
        down, right = divmod(number, 2)
        assert scenes.groups is not None
        for i in range(SHOWN):
            for below, image in enumerate((scenes.x[i].astype(float), colours[scenes.groups[i]])):
                left, top = 0.01 + 0.5 * right + i * 0.097, 0.945 - 0.5 * down - below * 0.215
                axes = figure.add_axes((left, top - 0.205, 0.0923, 0.205))
                axes.imshow(image, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set_color("#B8B8B8")
        figure.text(0.01 + 0.5 * right, 0.958 - 0.5 * down, title)
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).with_name("data_sets.png"), dpi=150)
