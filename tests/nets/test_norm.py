"""BatchNorm and LayerNorm against numpy, in few rows and in extreme ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from taggernet.nets.norm import BatchNorm, LayerNorm, make_norm


@pytest.mark.parametrize(("norm", "axis"), [(BatchNorm(), 0), (LayerNorm(), 1)])
@given(seed=st.integers(0, 2**31), rows=st.integers(2, 9), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_zero_mean_and_unit_variance(norm: Any, axis: int, seed: int, rows: int, scale: float) -> None:
    x = scale * (np.random.default_rng(seed).standard_normal((rows, 6)) + 3)
    expected = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-10)
    np.testing.assert_allclose(norm(torch.tensor(x).float()).numpy(), expected, rtol=1e-3, atol=2e-3)


def test_one_row_of_batchnorm_is_zero() -> None:
    """Its own mean is all that BatchNorm knows of a single row; the gradient stays finite (and is zero)."""
    x = torch.randn(1, 7, requires_grad=True)
    out = BatchNorm()(x)
    assert torch.equal(out, torch.zeros(1, 7))
    (gradient,) = torch.autograd.grad((out * torch.arange(7.0)).sum(), x)
    assert torch.equal(gradient, torch.zeros(1, 7))


def test_constant_rows_of_layernorm_are_zero() -> None:
    x = torch.full((3, 8), 5.0, requires_grad=True)
    out = LayerNorm()(x)
    assert torch.equal(out, torch.zeros(3, 8))
    assert torch.isfinite(torch.autograd.grad((out * torch.arange(8.0)).sum(), x)[0]).all()


def test_layernorm_does_not_look_at_other_rows() -> None:
    x = torch.randn(9, 6)
    assert torch.equal(LayerNorm()(x)[2:4], LayerNorm()(x[2:4]))
    assert not torch.allclose(BatchNorm()(x)[2:4], BatchNorm()(x[2:4]), atol=1e-2)


@pytest.mark.parametrize("norm", [BatchNorm(), LayerNorm()])
def test_each_seed_has_its_own_statistics(norm: Any) -> None:
    x = torch.randn(3, 5, 6) * torch.tensor([1.0, 10.0, 100.0]).reshape(3, 1, 1)
    for seed in range(3):
        torch.testing.assert_close(norm(x)[seed], norm(x[seed]))


@pytest.mark.parametrize("norm", [BatchNorm(), LayerNorm()])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_half_precision_are_float32(norm: Any, dtype: torch.dtype) -> None:
    """The squares of 1000 do not fit in float16."""
    x = (torch.randn(8, 8) * 1000).to(dtype)
    out = norm(x)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, norm(x.float()))
    assert torch.isfinite(out).all()


def test_shared_statistics_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two processes that hold the halves of a batch, each normalises by the whole batch."""
    x = torch.randn(6, 4)
    halves = [x[:3], x[3:]]
    means = torch.stack([half.mean(0, keepdim=True) for half in halves])
    spreads = torch.stack([(half - x.mean(0)).square().mean(0, keepdim=True) for half in halves])
    answers = iter([means.sum(0), spreads.sum(0)])
    monkeypatch.setattr("taggernet.nets.norm.dist_fn.all_reduce", lambda _: next(answers))
    monkeypatch.setattr("taggernet.nets.norm.dist.get_world_size", lambda: 2)
    norm = BatchNorm()
    norm.shared_statistics = True
    torch.testing.assert_close(norm(halves[0]), BatchNorm()(x)[:3])


def test_epsilon_is_added_to_the_variance() -> None:
    x = torch.tensor([[1.0, -1.0], [1.0, -1.0]])
    torch.testing.assert_close(LayerNorm(eps=3.0)(x), x / 2)
    torch.testing.assert_close(BatchNorm(eps=3.0)(x.T), x.T / 2)


@pytest.mark.usefixtures("without_typecheck")
def test_make_norm() -> None:
    assert isinstance(make_norm("batch", 1e-3), BatchNorm)
    assert make_norm("layer", 1e-3).eps == 1e-3
    with pytest.raises(ValueError, match="norm 'group' is not known: choose 'batch' or 'layer'"):
        make_norm("group")  # type: ignore[arg-type]
