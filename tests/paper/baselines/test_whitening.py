"""Whitening against numpy's covariance and its own properties."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paper.baselines.classifiers import FullyConnected
from paper.baselines.convnet import ConvNet
from paper.baselines.whitening import Whitening
from taggernet.rng import Key


def rows(n: int = 500, elements: int = 12, seed: int = 0) -> torch.Tensor:
    """Correlated elements with a mean, some directions of no variance at all."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((n, elements - 3)) @ rng.standard_normal((elements - 3, elements))
    return torch.from_numpy(mixed + rng.standard_normal(elements)).float()


def test_elements_come_out_uncorrelated_with_variance_one_on_average() -> None:
    x = rows(elements=8)[:, :5]  # of full rank
    y = Whitening.of(x, 1e-9)(x).double()
    np.testing.assert_allclose(np.cov(y.numpy().T), np.eye(5), atol=1e-4)
    assert y.mean(0).abs().max() < 1e-4
    for ridge in (0.01, 1.0):
        assert torch.isclose(Whitening.of(rows(), ridge)(rows()).var(0).mean(), torch.tensor(1.0), atol=1e-4)


def test_it_is_the_formula() -> None:
    x, ridge = rows(), 0.1
    c = np.cov(x.double().numpy().T)
    w, v = np.linalg.eigh(c + ridge * np.trace(c) / len(c) * np.eye(len(c)))
    p = (v / np.sqrt(w)) @ v.T
    p /= np.sqrt(np.trace(p @ c @ p) / len(c))
    expected = (x.double().numpy() - x.double().numpy().mean(0)) @ p
    np.testing.assert_allclose(Whitening.of(x, ridge)(x).numpy(), expected, atol=2e-5)


def test_elements_in_another_order_come_out_in_that_order() -> None:
    x, order = rows(), torch.randperm(12, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(Whitening.of(x[:, order], 0.1)(x[:, order]), Whitening.of(x, 0.1)(x)[:, order])


def test_nothing_to_whiten_by_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ridge=0\.0 would divide by variances of zero"):
        Whitening.of(rows(), 0.0)
    with pytest.raises(ValueError, match="1 row has no covariance"):
        Whitening.of(rows()[:1], 0.1)


@pytest.mark.parametrize("kind", ["mlp", "convnet"])
def test_a_classifier_with_it_reads_whitened_elements_with_noise_on_top(kind: str) -> None:
    x = rows(50, 100)
    model = FullyConnected((100, 8, 3), 0.2, 0.0) if kind == "mlp" else ConvNet((10, 10), 3, (4,) * 7, 0.2)
    noise = [Key.of(3)]
    (plain,) = model.encode([Whitening.of(x, 0.1)(x)], noise)
    model.whitening = Whitening.of(x, 0.1)
    (inside,) = model.encode([x], noise)
    torch.testing.assert_close(inside.z[0], plain.z[0])
    torch.testing.assert_close(inside.log_p, plain.log_p)
    assert not list(model.whitening.parameters())
    assert not any("whitening" in name for name in model.state_dict())
