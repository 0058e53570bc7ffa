"""Stacked seeds: what they give together is what each gives alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from taggernet.training.seeds import draw_weights


def check_seeds_equal_each_alone(net: nn.Module, x: Tensor) -> None:
    """``x`` is (seeds, rows, numbers); the mapping's results are compared one by one."""
    weights = draw_weights(net, list(range(3, 3 + len(x))), "cpu")
    together = functional_call(net, weights, (x,))
    for seed, own in enumerate(x):
        alone = functional_call(net, {name: w[seed] for name, w in weights.items()}, (own,))
        for part, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(part[seed], expected, rtol=1e-4, atol=1e-5)
