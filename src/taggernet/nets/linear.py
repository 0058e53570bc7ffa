"""The one matrix product of the package, and the one place where its precision is decided.

# S seeds (optional) · R rows

Every parameter carries the dimensions it broadcasts over, so a module whose parameters are stacked along
a new leading dimension, (S, ...), computes S models at once with the same code.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.cpu import packed_product, packing_applies
from taggernet.nets.roles import ParameterRole, Roles


class Linear(nn.Module):
    """x W, computed in the weight's own dtype: training hands in the bfloat16 halves of float32 weights.

    No bias: a normalisation follows every product and would remove it.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        weight = torch.empty(inputs, outputs)
        if not weight.is_meta:  # there models are built before they are loaded; random numbers import the compiler
            weight.normal_().div_(math.sqrt(inputs))
        self.weight = nn.Parameter(weight)

    def forward(self, x: Float[Tensor, "*S R inputs"]) -> Float[Tensor, "*S R outputs"]:
        weight: Tensor = self.weight
        x = x.to(weight.dtype)
        if packing_applies(x, weight):
            return packed_product(self, x, weight)
        if not (x.is_cuda and weight.dtype == torch.bfloat16):
            return torch.matmul(x, weight)
        # Tensor cores want rows of 16 bytes: widths such as 500 are padded with zeros, and cut again.
        more_in, more_out = -self.inputs % 8, -self.outputs % 8
        if more_in:
            x = nn.functional.pad(x, (0, more_in))
        if more_in or more_out:
            weight = nn.functional.pad(weight, (0, more_out, 0, more_in))
        return torch.matmul(x, weight)[..., : self.outputs]

    def parameter_roles(self) -> Roles:
        return {self.weight: ParameterRole(fan_in=self.inputs)}

    def extra_repr(self) -> str:
        return f"{self.inputs} -> {self.outputs}"


def per_feature(width: int, value: float) -> nn.Parameter:
    """A learned number per feature, (1, width): broadcasts over rows, and over rows of each seed."""
    return nn.Parameter(torch.full((1, width), value))
