"""A short moving picture of groups forming, for a README.

# n scenes · K groups · T iterations
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from paper.failure_analysis import overlap
from paper.replay import Replay
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import coincident
from taggernet.fileio import make_folder
from taggernet.tagger import Tagger
from taggernet.viz.layout import GAP, Sheet, Trace, enlarged, style

BETWEEN = 6
"""Frames from one iteration to the next; those between are mixtures of the two."""
FRAME, FIRST, LAST = 70, 900, 2500
"""How long a frame, the start and the result are shown, in milliseconds."""
SHADES = 128
LETTERS = 12.0


def animation(
    model: Tagger,
    out: str | Path,
    *,
    scenes: int = 7,
    seed: int = 0,
    data: DataConfig | None = None,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
    dpi: int = 110,
) -> Path:
    """Write a GIF: the inputs above, their groups below, from the random start to the last iteration.

    The scenes are the first of the test split with some overlap, whatever comes out of them.
    """
    replay = Replay(model, data, max(100, 4 * scenes), seed, iterations, batch)
    drawn = replay.load_scenes(replay.data.objects)
    clear = np.flatnonzero((overlap(drawn) > 0.05) & ~coincident(drawn))
    chosen = [int(i) for i in (clear if len(clear) >= scenes else np.arange(len(drawn)))[:scenes]]
    traces = replay.traces(drawn, chosen, groups)
    with style():
        pictures = list(_frames(traces, np.linspace(0, iterations, iterations * BETWEEN + 1), dpi))
    # One palette for all frames, taken from the last and the first: no flicker, and a small file.
    both = Image.fromarray(np.concatenate([np.asarray(pictures[0]), np.asarray(pictures[-1])]))
    palette = both.quantize(SHADES, method=Image.Quantize.MEDIANCUT)
    frames = [_white_paper(picture.quantize(palette=palette, dither=Image.Dither.NONE)) for picture in pictures]
    path = Path(out)
    make_folder(path.parent)
    durations = [FIRST, *[FRAME] * (len(frames) - 2), LAST]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)
    return path


def _white_paper(frame: Image.Image) -> Image.Image:
    """The shade of the margin, which quantising dims a little, set to white."""
    shades = frame.getpalette() or []
    paper = 3 * int(np.asarray(frame)[0, 0])
    frame.putpalette([*shades[:paper], 255, 255, 255, *shades[paper + 3 :]])
    return frame


def _frames(traces: list[Trace], positions: Float[Array, "frames"], dpi: int) -> Iterator[Image.Image]:
    """One sheet, on which only the groups and the words above them change."""
    size, margin, label, head = 1.0, 0.1, 0.62, 0.28
    sheet = Sheet(2 * margin + label + len(traces) * (size + GAP) - GAP, 2 * margin + head + 2 * size + GAP)
    title = sheet.text(margin + label, margin + head / 2 - 0.03, "", LETTERS)
    for name, row in (("input", 0), ("groups", 1)):
        sheet.text(margin + label - 0.1, margin + head + row * (size + GAP) + size / 2, name, LETTERS, ha="right")
    groups = []
    for column, trace in enumerate(traces):
        x = margin + label + column * (size + GAP)
        sheet.image(x, margin + head, size, trace.input())
        groups.append(sheet.image(x, margin + head + size + GAP, size, trace.groups(0)).images[0])
    sheet.figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(sheet.figure)
    for position in positions:
        done = int(position + 1e-6)
        title.set_text("random start" if done == 0 else f"iteration {done}")
        for image, trace in zip(groups, traces, strict=True):
            image.set_data(enlarged(trace.between(float(position)).groups()))
        canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
