"""Draw docs/images/how_it_works.png: one iteration of Tagger in pictures, everything in it computed by a model.

    python docs/images/how_it_works.py [MODEL]

# K groups · N elements · T iterations
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import taggernet as tn
from taggernet.tag.grouping import State, features
from taggernet.viz.colours import FAINT, INK, Array, group_colour, ink, paint
from taggernet.viz.layout import Sheet, style

GROUPS, ITERATIONS, SHOWN, CANDIDATES = 3, 5, 2, 3000
"""K; T; the iteration that is drawn in full; scenes from which one is chosen."""
WIDTH, HEIGHT, LEFT = 10.0, 4.98, 1.5
SIZE, GAP, HEADING = 0.72, 0.08, 0.11
LETTERS, WORDS = 13.0, 11.0
PANEL, MAPPING = "#F3F4F7", "#E3E6EE"


class Inference:
    """One scene on its way through the loop, all of it as images."""

    def __init__(self, model: tn.Tagger, candidates: int = CANDIDATES) -> None:
        side = model.config.shape[0]
        style_name = "paper" if side >= 16 else "small"
        scenes = tn.data.shapes(candidates, 0, 2, side, style=style_name, split="test")
        x = torch.from_numpy(scenes.x).flatten(1).float()
        key = tn.Key.of(0)
        with torch.no_grad():
            x_tilde = model.corrupt(x, key.fold("noise"))
            states = [model.start(len(x), GROUPS, key.fold("masks"))]
            states += model.iterate(x_tilde, states[0], ITERATIONS)
            seen = features(model.likelihood, x_tilde, states[SHOWN - 1], model.v)
        chosen = _telling(scenes, states)
        self.side, self.order = side, _by_place(states[-1].m[chosen] * states[-1].z[chosen])
        self.x, self.x_tilde = self._image(x[chosen]), self._image(x_tilde[chosen])
        self.z = [self._groups(state.z[chosen]) for state in states]
        self.m = [self._groups(state.m[chosen]) for state in states]
        delta_z, ratio = seen[chosen].chunk(4, dim=-1)[2:]
        self.delta_z, self.ratio = self._groups(delta_z), self._groups(ratio)

    def _image(self, values: torch.Tensor) -> Array:
        return values.reshape(self.side, self.side).numpy()

    def _groups(self, values: torch.Tensor) -> Array:
        return values[self.order].reshape(GROUPS, self.side, self.side).numpy()


def _telling(scenes: tn.data.Scenes, states: Sequence[State]) -> int:
    """Of the overlapping scenes half grouped before the iteration shown and wholly in the end, the clearest."""
    assert scenes.groups is not None
    ami = [
        np.asarray(
            tn.metrics.adjusted_mutual_information(scenes.groups.reshape(len(scenes), -1), s.m.argmax(-2).numpy())
        )
        for s in (states[SHOWN - 1], states[-1])
    ]
    covered = (scenes.x > 0) & (scenes.groups == 0)
    overlap = covered.reshape(len(scenes), -1).sum(1)
    good = (ami[1] > 0.999) & (overlap >= 3) & (ami[0] > 0.2) & (ami[0] < 0.8)
    last, x = states[-1], scenes.x.reshape(len(scenes), -1)
    wrong = np.abs((last.m * last.z).sum(-2).numpy() - x).sum(-1)
    unsure = ((1 - last.m.amax(-2).numpy()) * x).sum(-1)
    return int(np.where(good, wrong + 2 * unsure, np.inf).argmin())


def _by_place(share: torch.Tensor) -> list[int]:
    """Groups in the order of how much of the scene they hold, the emptiest last."""
    return share.sum(-1).argsort(descending=True).tolist()


def diverging(values: Array) -> Array:
    """Signed values in purple (below zero) and orange (above), white at zero."""
    limit = float(np.quantile(np.abs(values), 0.99))
    return mpl.colormaps["PuOr_r"](0.5 + 0.5 * np.clip(values / limit, -1, 1))[..., :3]


class Drawing:
    """The sheet and the few marks it needs; positions in inches from the upper left corner."""

    def __init__(self) -> None:
        self.sheet = Sheet(WIDTH, HEIGHT)

    def box(self, x: float, y: float, width: float, height: float, colour: str, edge: str = "none") -> None:
        corner = (x / WIDTH, 1 - (y + height) / HEIGHT)
        patch = FancyBboxPatch(
            corner, width / WIDTH, height / HEIGHT, boxstyle="round,pad=0,rounding_size=0.012",
            mutation_aspect=WIDTH / HEIGHT, facecolor=colour, edgecolor=edge, linewidth=1.0, zorder=-1,
            transform=self.sheet.figure.transFigure,
        )  # fmt: skip
        self.sheet.figure.add_artist(patch)

    def arrow(self, points: Sequence[tuple[float, float]], colour: str = INK) -> None:
        """Straight pieces, a head on the last."""
        for begin, end in itertools.pairwise(points[:-1]):
            self.sheet.line([begin[0], end[0]], [begin[1], end[1]], colour, 1.4)
        ends = [(x / WIDTH, 1 - y / HEIGHT) for x, y in points[-2:]]
        self.sheet.figure.add_artist(
            FancyArrowPatch(
                *ends,
                arrowstyle="-|>,head_length=5,head_width=2.6",
                color=colour,
                linewidth=1.4,
                shrinkA=0,
                shrinkB=0,
                transform=self.sheet.figure.transFigure,
                joinstyle="miter",
            )
        )

    def image(self, x: float, y: float, picture: Array, frame: str = FAINT, size: float = SIZE) -> None:
        self.sheet.image(x, y, size, picture, frame)

    def text(self, x: float, y: float, words: str, size: float = WORDS, **options: Any) -> None:
        self.sheet.text(x, y, words, size, **({"ha": "center", "linespacing": 1.2} | options))


def draw(found: Inference) -> Drawing:
    d = Drawing()
    rows = [0.86 + k * (SIZE + GAP) for k in range(GROUPS)]
    middle = (rows[0] + rows[-1] + SIZE) / 2
    _input(d, found, 0.12, rows)
    panel = LEFT
    _estimates(d, found, panel, rows)
    mapping = panel + 4 * (SIZE + GAP) + 0.49
    _mapping(d, mapping, rows, middle)
    out = mapping + 1.65
    _answers(d, found, out, rows)
    _outcome(d, found, out + 2 * (SIZE + GAP) + 0.48, rows, middle)
    _loop(d, panel, out, rows)
    _film(d, found)
    return d


def _input(d: Drawing, found: Inference, x: float, rows: Sequence[float]) -> None:
    d.text(x + SIZE / 2, rows[0] - HEADING, r"$\mathbf{x}$", LETTERS, va="baseline")
    d.image(x, rows[0], ink(found.x))
    low = rows[-1]
    d.arrow([(x + SIZE / 2, rows[0] + SIZE + 0.04), (x + SIZE / 2, low - 0.27)])
    d.text(x + SIZE / 2 + 0.07, (rows[0] + SIZE + low - 0.25) / 2, "noise", ha="left")
    d.text(x + SIZE / 2, low - HEADING, r"$\tilde{\mathbf{x}}$", LETTERS, va="baseline")
    d.image(x, low, ink(found.x_tilde))
    d.arrow([(x + SIZE + 0.06, low + SIZE / 2), (x + SIZE + 0.37, low + SIZE / 2)])


def _estimates(d: Drawing, found: Inference, x: float, rows: Sequence[float]) -> None:
    before = SHOWN - 1
    pad = 0.13
    height = rows[-1] + SIZE - rows[0] + 2 * pad
    d.box(x - 0.28, rows[0] - pad - 0.24, 4 * (SIZE + GAP) - GAP + 0.28 + pad, height + 0.24, PANEL)
    d.text(
        x - 0.2,
        0.34,
        "What each group holds now, and how well it explains $\\tilde{\\mathbf{x}}$",
        ha="left",
        va="baseline",
    )
    columns = (
        (r"$\mathbf{z}_k$", lambda k: ink(found.z[before][k], group_colour(k))),
        (r"$\mathbf{m}_k$", lambda k: ink(found.m[before][k], group_colour(k))),
        (r"$\delta\mathbf{z}_k$", lambda k: diverging(found.delta_z)[k]),
        (r"$L(\mathbf{m}_k)$", lambda k: ink(found.ratio[k], group_colour(k))),
    )
    for c, (name, picture) in enumerate(columns):
        at = x + c * (SIZE + GAP)
        d.text(at + SIZE / 2, rows[0] - HEADING, name, LETTERS, va="baseline")
        for k, y in enumerate(rows):
            d.image(at, y, picture(k))
    for k, y in enumerate(rows):
        d.sheet.line([x - 0.1] * 2, [y, y + SIZE], group_colour(k), 3.0)
        d.text(x - 0.2, y + SIZE / 2, str(k + 1), color=group_colour(k), weight="bold")


def _mapping(d: Drawing, x: float, rows: Sequence[float], middle: float) -> None:
    width, pad = 1.2, 0.13
    d.box(x, rows[0] - pad, width, rows[-1] + SIZE - rows[0] + 2 * pad, MAPPING, "#9AA3B8")
    d.text(x + width / 2, middle - 0.42, "mapping", LETTERS, weight="bold")
    d.text(
        x + width / 2,
        middle + 0.22,
        "a Ladder with the\nsame weights for\nevery group; it\nnever sees $\\mathbf{x}$",
    )
    for k, y in enumerate(rows):
        d.arrow([(x - 0.37, y + SIZE / 2), (x - 0.05, y + SIZE / 2)], group_colour(k))
        d.arrow([(x + width + 0.05, y + SIZE / 2), (x + width + 0.38, y + SIZE / 2)], group_colour(k))


def _answers(d: Drawing, found: Inference, x: float, rows: Sequence[float]) -> None:
    for c, (name, values) in enumerate(((r"$\mathbf{z}_k$", found.z), (r"$\mathbf{m}_k$", found.m))):
        at = x + c * (SIZE + GAP)
        d.text(at + SIZE / 2, rows[0] - HEADING, name, LETTERS, va="baseline")
        for k, y in enumerate(rows):
            d.image(at, y, ink(values[SHOWN][k], group_colour(k)))
    d.text(x + SIZE + GAP / 2, 0.34, "Better estimates", va="baseline")


def _outcome(d: Drawing, found: Inference, x: float, rows: Sequence[float], middle: float) -> None:
    size = SIZE
    y = middle - size / 2
    d.arrow([(x - 0.49, middle), (x - 0.07, middle)])
    d.text(x + size / 2, y - HEADING, r"$q_i(\mathbf{x})$", LETTERS, va="baseline")
    d.image(x, y, paint(found.z[SHOWN], found.m[SHOWN]), size=size)
    d.text(x + size / 2, y + size + 0.16, r"$\sum_k \mathbf{m}_k\, q(\mathbf{x}|g_k)$", WORDS)
    d.text(x + size / 2, y + size + 0.52, "trained to give\n$\\mathbf{x}$ high probability", WORDS)


def _loop(d: Drawing, left: float, right: float, rows: Sequence[float]) -> None:
    low = rows[-1] + SIZE
    turn, end = right + SIZE + GAP / 2, left + 2 * (SIZE + GAP) - GAP / 2
    d.arrow([(turn, low + 0.08), (turn, low + 0.34), (end, low + 0.34), (end, low + 0.15)])
    d.text(
        (turn + end) / 2,
        low + 0.47,
        r"again, $T$ times in all: the masks $\mathbf{m}$ compete in a softmax over the groups",
    )


def _film(d: Drawing, found: Inference) -> None:
    """The groups over all iterations, and each of the last in full."""
    y = HEIGHT - 0.98
    step = SIZE + 0.32
    d.text(LEFT - 0.16, y + SIZE / 2, "groups after\neach iteration", ha="right")
    for i, (z, m) in enumerate(zip(found.z, found.m, strict=True)):
        at = LEFT + i * step
        d.image(at, y, paint(z, m))
        d.text(at + SIZE / 2, y + SIZE + 0.14, "random start" if i == 0 else rf"$i={i}$")
        if i:
            d.arrow([(at - 0.28, y + SIZE / 2), (at - 0.05, y + SIZE / 2)])
    first = WIDTH - 0.12 - 2 * (SIZE + GAP) + GAP
    for k in range(2):
        d.image(first + k * (SIZE + GAP), y, ink(found.z[-1][k], group_colour(k)))
    d.text(first + SIZE + GAP / 2, y + SIZE + 0.14, r"$\mathbf{z}_1$, $\mathbf{z}_2$: also what is hidden")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw one iteration of Tagger in pictures.")
    parser.add_argument("model", nargs="?", default="shapes", help="a shipped model, a folder of one or of a run")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()
    with style():
        drawing = draw(Inference(tn.Tagger.from_pretrained(options.model)))
        drawing.sheet.figure.savefig(options.out, dpi=200)
    print(f"drawn in {options.out}")


if __name__ == "__main__":
    main()
