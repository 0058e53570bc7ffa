"""The models of the baselines: from a configuration to a network, its start, its cost and its errors.

# S seeds · n scenes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from paper.baselines.classifiers import Classifier, FullyConnected, Moments, clean_path
from paper.baselines.convnet import ConvNet
from paper.baselines.ladder_classifier import LadderClassifier
from paper.baselines.recipes import BaselineConfig
from paper.baselines.sources import tensors
from taggernet.data import Scenes
from taggernet.metrics import classification_error
from taggernet.rng import Key
from taggernet.training.objective import Batch, Costs, Objective
from taggernet.training.seeds import draw_weights

Weights = dict[str, Tensor]

CLASSES = 10
SIDE = 28


def network(config: BaselineConfig) -> Classifier:
    """The untrained model of a configuration."""
    noise = (config.input_noise, config.layer_noise)
    if config.method == "convnet":
        return ConvNet((SIDE, SIDE), CLASSES, config.widths, *noise)
    widths = (SIDE * SIDE, *config.widths, CLASSES)
    if config.method == "mlp":
        return FullyConnected(widths, *noise)
    return LadderClassifier(widths, *noise, config.lambdas or None, config.normalise_estimates)


def initial_weights(model: Classifier, seeds: list[int], device: torch.device) -> Weights:
    """Matrices and kernels from N(0, 1/fan_in), everything else at its constant; each seed's a function of it alone."""
    return draw_weights(model, seeds, device)


class ClassifierObjective(Objective):
    """The cost of a classifier in the place of Tagger's, so that the same update minimises it."""

    def __init__(self, model: Classifier) -> None:
        nn.Module.__init__(self)
        self.add_module("model", model)

    def forward(self, batch: Batch, noise: Key, masks: Key, first: int = 0) -> Costs:
        assert batch.classes is not None
        model = cast(Classifier, self._modules["model"])
        labelled = batch.x if batch.labelled is None else batch.labelled
        classification, denoising = model.costs(labelled, batch.classes, batch.x, noise)
        return Costs(classification + denoising, denoising, classification)


@torch.no_grad()
def errors(
    model: Classifier, weights: Weights, population: Sequence[Moments], scenes: Scenes, batch: int = 1000
) -> Tensor:
    """Top-1 error per scene, top-2 where scenes show two digits, (S, n)."""
    x, classes = tensors(scenes, next(iter(weights.values())).device)
    log_p = torch.cat([clean_path(model, weights, rows, population) for rows in torch.split(x, batch)], dim=1)
    return torch.stack([classification_error(one, classes) for one in log_p])
