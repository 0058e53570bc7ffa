"""Many seeds in one run: their initial weights, stacked (S, ...), each a function of its seed alone.

# S seeds
"""

from __future__ import annotations

import torch
from torch import Tensor

from taggernet.nets.linear import Linear
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig


def initial_weights(config: TaggerConfig, seeds: list[int], device: torch.device | str) -> dict[str, Tensor]:
    """Matrices from N(0, 1/fan_in), everything else at its constant start; S seeds at once."""
    # One thread-independent way for every device: the key decides, not torch's global generator.
    model = Tagger(config)
    matrices = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, Linear)}
    key = Key.of(seeds, device).fold("weights")
    weights: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if name in matrices:
            weights[name] = key.fold(name).normal(*parameter.shape) * parameter.shape[0] ** -0.5
        else:
            weights[name] = parameter.detach().to(device).expand(len(seeds), *parameter.shape).clone()
    return weights


def one_seed(config: TaggerConfig, weights: dict[str, Tensor], index: int) -> Tagger:
    """The model of one seed out of stacked weights, on the CPU."""
    with torch.device("meta"):
        model = Tagger(config)
    # One copy at a time: a view of the stack would keep all of it alive.
    model.load_state_dict({name: w[index].detach().cpu().clone() for name, w in weights.items()}, assign=True)
    return model.eval()


def carry_over(fresh: dict[str, Tensor], trained: dict[str, Tensor]) -> dict[str, Tensor]:
    """Second phase: take every trained tensor that still has its place, keep the fresh upper layers.

    The trained model's own topmost scale has no place any more: its level becomes a ReLU.
    """
    return {
        name: trained[name].detach().to(w.device, copy=True)
        if name in trained and trained[name].shape == w.shape
        else w
        for name, w in fresh.items()
    }
