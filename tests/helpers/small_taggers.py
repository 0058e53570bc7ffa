"""Taggers of six elements, and scenes for them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig

BINARY = TaggerConfig(shape=(2, 3), widths=(12, 8, 5), norm="layer", mean=0.3)
REAL = replace(BINARY, kind="real", mean=0.5)


def tagger(config: TaggerConfig = BINARY, seed: int = 0) -> Tagger:
    """All parameters away from their start, at which a plain gate lets nothing through."""
    torch.manual_seed(seed)
    model = Tagger(config)
    with torch.no_grad():
        for name, parameter in model.mapping.named_parameters():  # type: ignore[union-attr]
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def scenes(count: int = 7, seed: int = 3) -> Tensor:
    return (Key.of(seed).uniform(count, 2, 3) > 0.5).float()
