"""The multilayer perceptron as a mapping, against its formula."""

from __future__ import annotations

import torch
from torch import nn

from taggernet.nets import MLPMapping

N = 5


def test_mlp_against_its_formula() -> None:
    torch.manual_seed(0)
    mapping = MLPMapping(N, (8,), "layer")
    nn.init.normal_(mapping.out_bias)
    nn.init.normal_(mapping.bias[0])
    x = torch.randn(12, 4 * N)
    h = x @ mapping.hidden[0].weight  # type: ignore[operator]
    h = torch.relu(nn.functional.layer_norm(h, (8,), eps=1e-10) + mapping.bias[0])
    out = h @ mapping.out.weight + mapping.out_bias
    mapped = mapping(x)
    torch.testing.assert_close(mapped.z_pre, out[:, :N])
    torch.testing.assert_close(mapped.m_pre, out[:, N:])
    torch.testing.assert_close(mapped.top, h)
