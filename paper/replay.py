"""Run a model again on single scenes of an evaluation, with the same random start and the same batch.

# n scenes · K groups · T iterations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from paper.generalisation import draw_shapes
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.data.textures import SIDE
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.rng import Key
from taggernet.tag import Grouping
from taggernet.tag.grouping import join_histories
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split, permutation
from taggernet.viz.layout import Trace


class Replay:
    """A model, its test scenes, and how they are evaluated."""

    def __init__(
        self, model: Tagger, data: DataConfig | None, count: int, seed: int, iterations: int, batch: int
    ) -> None:
        self.model, self.data = model, data or DataConfig()
        self.count, self.seed, self.iterations, self.batch = count, seed, iterations, batch
        side = self.data.size if self.data.name == "shapes" else SIDE
        if model.config.shape != (side, side):
            raise ValueError(
                f"the model has shape {model.config.shape}, but scenes of {self.data.name} are {side} x {side} here: "
                "give a model that was trained on this data, or the data configuration it was trained with"
            )
        self.order = permutation(self.data, model.config.positions) if self.data.permuted else None

    def load_scenes(self, objects: int) -> Scenes:
        """Test scenes with this many shapes or digits."""
        if self.data.name == "shapes":
            return draw_shapes(self.data, self.count, self.seed, objects)
        return load_split(replace(self.data, name=f"texture-mnist-{objects}", test=self.count), "test")

    def ami(self, scenes: Scenes, groups: int) -> Array:
        """(T, n): AMI of every scene after each iteration."""
        found = evaluate_weights(
            self.model, stack_weights([self.model]), scenes, groups=groups, iterations=self.iterations,
            batch=self.batch, seed=self.seed,
        )  # fmt: skip
        assert found.ami is not None
        ami: Array = found.ami[0]
        return ami

    def traces(self, scenes: Scenes, indices: Sequence[int], groups: int) -> list[Trace]:
        grouping = self.group(scenes, indices, groups)
        chosen = scenes[np.array(indices)]
        return [Trace.of(chosen, grouping, i, self.order) for i in range(len(indices))]

    def group(self, scenes: Scenes, indices: Sequence[int], groups: int) -> Grouping:
        """These scenes as their evaluation grouped them."""
        return replay_grouping(
            self.model, scenes, indices, groups=groups, iterations=self.iterations, batch=self.batch, seed=self.seed
        )


@torch.no_grad()
def replay_grouping(
    model: Tagger, scenes: Scenes, indices: Sequence[int], *, groups: int, iterations: int, batch: int, seed: int
) -> Grouping:
    """These scenes as their evaluation grouped them: its random start and, for BatchNorm, its whole batch."""
    key = Key.of(seed, model.w.device).fold("evaluation", "masks")
    cpu = torch.device("cpu")
    histories = []
    for index in indices:
        first = index // batch * batch
        x = torch.from_numpy(np.ascontiguousarray(scenes.x[first : first + batch])).flatten(1)
        states = model.states(x, groups, iterations, key, first)
        histories.append([state.rows(index - first, index - first + 1).to(cpu) for state in states])
    return Grouping(join_histories(histories), scenes.shape, as_numpy=True, units=model.units, channels=scenes.channels)
