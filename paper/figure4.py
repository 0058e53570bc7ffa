"""Figure 4 of the paper: shapes and their groups.

# n scenes · K groups · T iterations
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.failure_analysis import overlap, smallest_visible
from paper.figure_blocks import Example, draw_examples, draw_inference, examples_height, inference_size, number
from paper.replay import Replay
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.tagger import Tagger
from taggernet.viz.layout import GAP, SMALL, Sheet, Trace, save, style

PERCENTILES = (75, 50, 25, 10, 5, 1)
"""Of AMI over the test scenes: where Figure 4's examples stand, besides the one whose inference is shown."""
CASES = {"A": (2, 3), "B": (4, 4), "C": (4, 2)}
"""Figure 4's cases: groups and objects."""


def figure4(
    model: Tagger,
    out: str | Path,
    *,
    scenes: int = 1000,
    seed: int = 0,
    data: DataConfig | None = None,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
) -> dict[str, Any]:
    """Figure 4: scenes and groups in descending AMI, the cases A to C, and one inference over iterations.

    The examples are the scene of the inference and those at fixed percentiles of AMI over the test scenes, so bad ones
    are shown too. What is shown is returned: percentiles, scene numbers and AMI.
    """
    replay = Replay(model, data, scenes, seed, iterations, batch)
    drawn = replay.load_scenes(replay.data.objects)
    ami = replay.ami(drawn, groups)
    watched = forming(ami, drawn)
    shown = sorted([watched, *at_percentiles(ami[-1], PERCENTILES, watched)], key=lambda i: -float(ami[-1, i]))
    traces = replay.traces(drawn, shown, groups)
    notes = [f"AMI {number(ami[-1, i])}" + ("\n(right)" if i == watched else "") for i in shown]
    examples = [Example(trace, note) for trace, note in zip(traces, notes, strict=True)]
    cases = {}
    for letter, (k, j) in CASES.items():
        other = replay.load_scenes(j)
        scores = replay.ami(other, k)[-1]
        best = telling(scores, other)
        cases[letter] = {"groups": k, "objects": j, "scene": best, "ami": float(scores[best])}
        note = f"{k} groups,\n{j} objects\nAMI {number(scores[best])}"
        examples.append(Example(replay.traces(other, [best], k)[0], note, letter))
    with style():
        _figure4_sheet(examples, traces[shown.index(watched)], ami[:, watched], out)
    return {
        "percentiles": list(PERCENTILES),
        "examples": [{"scene": i, "ami": float(ami[-1, i])} for i in shown],
        "cases": cases,
        "inference": {"scene": watched, "ami": ami[:, watched].tolist()},
    }


def _figure4_sheet(examples: list[Example], inference: Trace, ami: Array, out: str | Path) -> None:
    margin, header, letters, notes, gutter, between = 0.08, 0.22, 0.2, 0.62, 0.22, 0.22
    size, foot = 0.56, 0.18
    height = examples_height(len(examples), size, between)
    steps, groups = inference.z.shape[:2]
    larger = (height - foot - groups * 3.5 * GAP) / (1 + 2 * groups)
    larger = min(larger, 1.2 * size)
    left = margin + letters
    right = left + 2 * size + GAP + notes + gutter
    width, _ = inference_size(groups, steps - 1, larger)
    sheet = Sheet(right + width + margin, margin + header + height + margin)
    top = margin + header
    draw_examples(sheet, left, top, size, examples, between)
    draw_inference(sheet, right, top, larger, inference)
    _, block = inference_size(groups, steps - 1, larger)
    first = right + width - steps * (larger + GAP) + GAP
    sheet.text(first - 0.09, top + block + foot / 2, "AMI", SMALL, ha="right")
    for i, score in enumerate(ami, start=1):
        sheet.text(first + i * (larger + GAP) + larger / 2, top + block + foot / 2, number(score), SMALL, ha="center")
    save(sheet.figure, out)


def at_percentiles(scores: Array, percentiles: Sequence[int], but: int) -> list[int]:
    """The scenes at these percentiles of the score, one scene left out."""
    order = [int(i) for i in np.argsort(-scores, kind="stable") if i != but]
    return [order[round((1 - p / 100) * (len(order) - 1))] for p in percentiles]


def telling(scores: Array, scenes: Scenes) -> int:
    """The best grouped of the clear scenes."""
    return int(np.where(_clear(scenes), scores, -np.inf).argmax())


def forming(ami: Array, scenes: Scenes) -> int:
    """Of the clear scenes grouped best in the end, the one worst after the first iteration."""
    final = np.where(_clear(scenes), ami[-1], -np.inf)
    return int(np.where(final == final.max(), ami[0], np.inf).argmin())


def _clear(scenes: Scenes) -> Array:
    """Scenes that are not too easy, as shapes overlap, yet show enough of each; all if there are none."""
    shares, seen = overlap(scenes), smallest_visible(scenes)
    good: Array = (shares > 0) & (shares >= np.quantile(shares, 0.3)) & (seen >= np.median(seen))
    return good if good.any() else np.ones_like(good)
