"""A toy model of each kind that the explorer's page runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from taggernet import Tagger, TaggerConfig

TOYS = {
    "binary-layer": TaggerConfig(shape=(10, 10), widths=(40, 20, 10), norm="layer", mean=0.28),
    "binary-batch": TaggerConfig(shape=(10, 10), widths=(40, 20), norm="batch", feedback="probabilities", top="relu"),
    "real-layer": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", offset=3.0, scale=2.0, delta_z="exact", v_start=0.3,
        heads="normalised", gate="plain",
    ),
    "real-batch-classes": TaggerConfig(shape=(28, 28), kind="real", widths=(40, 20), classes=10, v_start=0.2),
    "real-batch-head": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), classes=3, class_widths=(12,), class_input="masks",
        delta_z="algorithm", ratio_variance="reference",
    ),
    "real-layer-head": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", classes=3, class_widths=(12, 8),
    ),
    "binary-posterior": TaggerConfig(shape=(6, 9), widths=(30, 20), norm="layer", masks="posterior"),
    "real-variant": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), masks="posterior", levels=0.7, residual=0.3,
    ),
}  # fmt: skip
"""Binary and real, LayerNorm and frozen BatchNorm, classes on top or beside, every form of delta z,
variants of the loop."""


def toy_inputs(config: TaggerConfig, n: int) -> Any:
    generator = torch.Generator().manual_seed(7)
    if config.kind == "binary":
        return torch.bernoulli(torch.full((n, *config.shape), 0.3), generator=generator).numpy()
    return (torch.rand(n, *config.shape, generator=generator) * config.scale + config.offset).numpy()


def toy(config: TaggerConfig) -> Tagger:
    """Untrained, but with weights large enough for its groups to differ; BatchNorm frozen for three iterations."""
    torch.manual_seed(0)
    model = Tagger(config, groups=3, iterations=4)
    with torch.no_grad():
        for weights in model.parameters():
            if weights is not model.w:  # the variance stays what it was
                weights.add_(0.3 * torch.randn_like(weights))
    if config.norm == "batch":
        model.freeze_statistics(toy_inputs(config, 40), 3, 3, batch_size=20)
    return model.eval()


@dataclass(frozen=True)
class Site:
    """The page, being served, and the toy models whose files lie beside it."""

    url: str
    toys: dict[str, Tagger]


Visit = Callable[..., Any]
"""Show a model, and a view of it, in a tab of the browser."""
