"""Figure 5: textured digits and their groups, one digit taken away, and what each group says it is.

# n scenes · K groups · T iterations · C classes
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paper.figure4 import at_percentiles
from paper.figure_blocks import APART, Example, draw_examples, draw_inference, examples_height, inference_size, number
from paper.replay import Replay
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.tag import Grouping, State
from taggernet.tagger import Tagger
from taggernet.viz.layout import GAP, SMALL, Sheet, Trace, save, style

PERCENTILES = (95, 75, 50, 25, 10, 5, 1)
"""Of AMI over the test scenes: where the examples stand."""
LOWER, UPPER = 2, 3
"""Numbers of the digits among a scene's true groups."""
CANDIDATES = 25
"""Scenes looked at for the example of which a digit is taken away."""


def figure5(
    model: Tagger,
    model1: Tagger | None,
    out: str | Path,
    *,
    scenes: int = 1000,
    seed: int = 0,
    data: DataConfig | None = None,
    example: int | None = None,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
) -> dict[str, Any]:
    """Figure 5: scenes and groups in descending AMI, D (one digit), E1 and E2 (the upper digit taken away).

    The right column shows E1's inference, E2, and, of a model with classes, what each group says. ``model1`` groups D;
    without it ``model`` does, which has never seen one digit alone. ``example`` is the number of E's scene; by default
    it is, of the scenes grouped best, the one in which the lower digit's group fills in most. What is shown is
    returned: percentiles, scene numbers, AMI, digits and how they were read.
    """
    data = data or DataConfig(name="texture-mnist-2")
    gallery = _Gallery.of(Replay(model, data, scenes, seed, iterations, batch), 2, groups)
    watched = gallery.most_filled_in() if example is None else example
    if not 0 <= watched < len(gallery.scenes):
        raise ValueError(f"example={example} was asked for, but there are scenes 0 .. {len(gallery.scenes) - 1}")
    shown = at_percentiles(gallery.ami[-1], PERCENTILES, watched)
    examples = [gallery.example(i) for i in shown]
    single = _Gallery.of(Replay(model1 or model, data, scenes, seed, iterations, batch), 1, groups)
    alone = single.best()
    grouping = gallery.grouping(watched)
    upper = gallery.group_of(grouping, watched, UPPER)
    without = grouping.without(upper)
    taken = gallery.trace(watched, without)
    e1 = gallery.example(watched, "E1")
    e2 = Example(_filled_in(taken), f"filled in where\nthe {gallery.digits(watched)[1]} was", "E2")
    examples += [single.example(alone, "D"), replace(e1, note=e1.note + "\n(right)"), e2]
    with style():
        _sheet(examples, e1.trace, taken, gallery.classes(grouping), gallery.ami[:, watched], out)
    return {
        "percentiles": list(PERCENTILES),
        "examples": [gallery.described(i) for i in shown],
        "D": single.described(alone),
        "E": {**gallery.described(watched), "taken_away": upper},
        "inference": {"scene": watched, "ami": gallery.ami[:, watched].tolist()},
    }


def _filled_in(taken: Trace) -> Trace:
    """E2's row shows as its input what the remaining groups make of the scene."""
    return Trace((taken.m[-1] * taken.z[-1]).sum(0), taken.z, taken.m, taken.kind)


@dataclass(frozen=True)
class _Gallery:
    """A model's test scenes of so many digits, and how it did on each."""

    replay: Replay
    scenes: Scenes
    groups: int
    ami: Array
    """(T, n)"""
    error: Array | None
    """(n,) after the last iteration, where the model has classes."""

    @staticmethod
    def of(replay: Replay, digits: int, groups: int) -> _Gallery:
        scenes = replay.load_scenes(digits)
        found = evaluate_weights(
            replay.model, stack_weights([replay.model]), scenes, groups=groups, iterations=replay.iterations,
            batch=replay.batch, seed=replay.seed,
        )  # fmt: skip
        assert found.ami is not None
        return _Gallery(replay, scenes, groups, found.ami[0], None if found.error is None else found.error[0, -1])

    def digits(self, scene: int) -> list[int]:
        """The true ones, the lower first."""
        assert self.scenes.classes is not None
        return [int(c) for c in np.atleast_1d(self.scenes.classes[scene])]

    def read(self, grouping: Grouping, digits: list[int]) -> list[int] | None:
        """The most probable classes, as many as there are different digits."""
        if not self.replay.model.config.classes:
            return None
        p = self.replay.model.class_probabilities(grouping.history[-1])[0]
        return [int(c) for c in p.argsort(descending=True)[: len(set(digits))]]

    def classes(self, grouping: Grouping) -> Array | None:
        """(K, C + 1): what each group says it is."""
        top = grouping.history[-1].top
        return top[0].numpy() if top is not None and self.replay.model.config.classes else None

    def grouping(self, scene: int) -> Grouping:
        return self.replay.group(self.scenes, [scene], self.groups)

    def trace(self, scene: int, grouping: Grouping) -> Trace:
        return Trace.of(self.scenes[scene], grouping, 0, self.replay.order)

    def example(self, scene: int, letter: str = "") -> Example:
        grouping = self.grouping(scene)
        digits = self.digits(scene)
        note = f"AMI {number(self.ami[-1, scene])}"
        if len(digits) == 2:
            note += f"\n{digits[1]} over {digits[0]}"
        else:
            note = f"one digit, {digits[0]}\n{note}"
        read = self.read(grouping, digits)
        if read is not None:
            right = sorted(read) == sorted(set(digits))
            note += f"\nread {', '.join(map(str, sorted(read)))} {'✓' if right else '×'}"
        return Example(self.trace(scene, grouping), note, letter)

    def described(self, scene: int) -> dict[str, Any]:
        digits = self.digits(scene)
        read = self.read(self.grouping(scene), digits)
        return {"scene": scene, "ami": float(self.ami[-1, scene]), "digits": digits, "read": read}

    def ranked(self) -> list[int]:
        """Scenes from the best to the worst: those read right first, then by AMI."""
        error = np.zeros(len(self.scenes)) if self.error is None else self.error
        return [int(i) for i in np.lexsort((-self.ami[-1], error > 0))]

    def best(self) -> int:
        return self.ranked()[0]

    def most_filled_in(self) -> int:
        """Of the best scenes of two different digits, the one where most goes to the lower digit's group when the
        upper one's is taken away."""
        ranked = [i for i in self.ranked() if len(set(self.digits(i))) == 2][:CANDIDATES] or self.ranked()[:1]
        return max(ranked, key=self._filled_in)

    def _filled_in(self, scene: int) -> float:
        grouping = self.grouping(scene)
        lower, upper = (self.group_of(grouping, scene, which) for which in (LOWER, UPPER))
        if lower == upper:
            return -1.0
        before, after = (g.history[-1].m[0, lower].sum() for g in (grouping, grouping.without(upper)))
        return float(after - before)

    def group_of(self, grouping: Grouping, scene: int, which: int) -> int:
        """The group that holds most of a digit's visible elements."""
        assert self.scenes.groups is not None
        visible = torch.from_numpy(self.scenes.groups[scene].reshape(-1) == which)
        last: State = grouping.history[-1]
        return int(last.m[0, :, visible].sum(-1).argmax())


def _sheet(
    examples: list[Example], inference: Trace, taken: Trace, classes: Array | None, ami: Array, out: str | Path
) -> None:
    margin, header, letters, notes, gutter, between = 0.08, 0.22, 0.24, 0.74, 0.24, 0.22
    size, foot, bars = 0.56, 0.18, 0.0 if classes is None else 1.05
    height = examples_height(len(examples), size, between)
    steps, groups = inference.z.shape[:2]
    larger = min((height - foot - groups * 3.5 * GAP) / (1 + 2 * groups), 1.2 * size)
    left, top = margin + letters, margin + header
    right = left + 2 * size + GAP + notes + gutter
    width, block = inference_size(groups, steps - 1, larger, bars, edited=True)
    sheet = Sheet(right + width + margin, top + height + margin)
    draw_examples(sheet, left, top, size, examples, between)
    draw_inference(sheet, right, top, larger, inference, classes=classes, bars=bars, edited=("E2", taken))
    first = right + width - (bars + GAP if bars else 0) - larger - APART - steps * (larger + GAP) + GAP
    sheet.text(first - 0.09, top + block + foot / 2, "AMI", SMALL, ha="right")
    for i, score in enumerate(ami, start=1):
        sheet.text(first + i * (larger + GAP) + larger / 2, top + block + foot / 2, number(score), SMALL, ha="center")
    if bars:
        sheet.text(right + width, top + block + foot / 2, "–: no class", SMALL, ha="right")
    save(sheet.figure, out)
