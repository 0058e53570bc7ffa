"""Many seeds in one run: initial weights stacked (S, ...), each a function of its own seed alone.

# S seeds
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from taggernet.arrays import Array
from taggernet.nets.roles import named_roles
from taggernet.rng import Key
from taggernet.tag.informed import Silence, find_parts
from taggernet.tagger import Tagger, TaggerConfig


def initial_weights(
    config: TaggerConfig, seeds: list[int], device: torch.device | str, scenes: Array | None = None
) -> dict[str, Tensor]:
    """The weights at which training of these seeds starts; ``scenes`` (n, ...) are for masks that start from parts."""
    model = Tagger(config)
    weights = draw_weights(model, seeds, device)
    if config.start == "parts" and scenes is not None:
        x = model.inputs(torch.from_numpy(scenes.reshape(len(scenes), -1))).detach()
        silence: Silence = "zero" if config.kind != "real" else "mean" if len(config.shape) == 1 else "common"
        found = find_parts(torch.unflatten(x, -1, (-1, config.channels)), silence)
        for name, part in found._asdict().items():
            weights[f"start_{name}"] = part.to(device).repeat(len(seeds), 1, 1)
    return weights


def draw_weights(model: nn.Module, seeds: list[int], device: torch.device | str) -> dict[str, Tensor]:
    """Matrices from N(0, 1/fan_in), everything else at the constant the model was built with.

    The draw is keyed by seed and parameter name: it is the same on every device, and torch's generator plays no part.
    """
    key, roles = Key.of(seeds, device).fold("weights"), named_roles(model)
    weights: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        fan_in = roles[name].fan_in
        if fan_in is not None:
            weights[name] = key.fold(name).normal(*parameter.shape) * fan_in**-0.5
        else:
            weights[name] = parameter.detach().to(device).expand(len(seeds), *parameter.shape).clone()
    return weights


def one_seed(
    config: TaggerConfig, weights: dict[str, Tensor], index: int, *, groups: int = 4, iterations: int = 5
) -> Tagger:
    """The model of one seed out of stacked weights, on the CPU; groups and iterations are its own."""
    with torch.device("meta"):
        model = Tagger(config, groups=groups, iterations=iterations)
    # One copy at a time: a view of the stack would keep all of it alive.
    model.load_state_dict({name: w[index].detach().cpu().clone() for name, w in weights.items()}, assign=True)
    return model.eval()


def carry_over(fresh: dict[str, Tensor], trained: dict[str, Tensor]) -> dict[str, Tensor]:
    """Start of a second phase: every trained tensor whose name and shape are still there, the rest fresh.

    The first phase's topmost scale is dropped, as that level becomes a ReLU.
    """
    return {
        name: trained[name].detach().to(w.device, copy=True)
        if name in trained and trained[name].shape == w.shape
        else w
        for name, w in fresh.items()
    }
