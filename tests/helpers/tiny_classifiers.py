"""The paper's classifiers at toy size, on inputs of 90 elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from paper.baselines.classifiers import Classifier, FullyConnected
from paper.baselines.convnet import ConvNet
from paper.baselines.ladder_classifier import LadderClassifier

SMALL = (3, 4, 5, 4, 3, 4, 2)


def moved(model: Classifier) -> Any:
    """The same model with every parameter away from its start."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def make(kind: str, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    if kind == "convnet":
        return moved(ConvNet((10, 9), 3, SMALL, **options))
    if kind == "ladder":
        return moved(LadderClassifier((90, 12, 8, 3), **options))
    return moved(FullyConnected((90, 12, 8, 3), **options))


def rows(n: int = 20, seed: int = 0) -> Tensor:
    return torch.randn(n, 90, generator=torch.Generator().manual_seed(seed))
