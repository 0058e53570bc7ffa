"""The matrix product: its start and its precision."""

from __future__ import annotations

import pytest
import torch

from taggernet.nets import Linear


def test_linear_starts_with_variance_one_over_fan_in() -> None:
    torch.manual_seed(0)
    weight = Linear(400, 300).weight
    assert weight.shape == (400, 300)
    assert weight.mean().item() == pytest.approx(0, abs=1e-3)
    assert weight.std().item() == pytest.approx(1 / 20, rel=0.01)


def test_linear_computes_in_the_dtype_of_its_weight() -> None:
    linear = Linear(6, 3)
    x = torch.randn(4, 6)
    torch.testing.assert_close(linear(x), x @ linear.weight)
    assert linear.to(torch.bfloat16)(x).dtype == torch.bfloat16
    assert linear.double()(x).dtype == torch.float64
