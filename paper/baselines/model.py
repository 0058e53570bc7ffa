"""The models of the baselines: from a configuration to a network, its start, its cost and its errors.

# S seeds · n scenes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from paper.baselines.classifiers import Classifier, FullyConnected, Moments, clean_path
from paper.baselines.convnet import ConvNet, Convolution
from paper.baselines.ladder_classifier import LadderClassifier
from paper.baselines.recipes import BaselineConfig
from paper.baselines.sources import tensors
from taggernet.data import Scenes
from taggernet.metrics import classification_error
from taggernet.nets.linear import Linear
from taggernet.rng import Key
from taggernet.training.objective import Batch, Costs, Objective

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
    """Products from N(0, 1/fan_in), everything else at its constant start; each seed's a function of it alone."""
    fan_in = {f"{name}.weight": m.inputs for name, m in model.named_modules() if isinstance(m, Linear)}
    fan_in |= {f"{name}.weight": m.fan_in for name, m in model.named_modules() if isinstance(m, Convolution)}
    key = Key.of(seeds, device).fold("weights")
    return {
        name: key.fold(name).normal(*start.shape) * fan_in[name] ** -0.5
        if name in fan_in
        else start.detach().to(device).expand(len(seeds), *start.shape).clone()
        for name, start in model.named_parameters()
    }


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
