"""RC's denoising autoencoder against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paper.rc.autoencoder import DenoisingAutoencoder, SaltAndPepper
from taggernet.rng import Key


def test_salt_and_pepper_replaces_the_stated_share_by_zeros_and_ones_alike() -> None:
    key, grey = Key.of(0), torch.full((100, 400), 0.5)
    noisy = SaltAndPepper(0.4).apply(grey, key)
    assert (noisy == 0.5).float().mean().item() == pytest.approx(0.6, abs=0.01)
    assert (noisy == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert (noisy == 1).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert torch.equal(SaltAndPepper(0.0).apply(grey, key), grey)


def test_autoencoder_is_the_formula() -> None:
    network = DenoisingAutoencoder(6, 4)
    network.start(Key.of(3), output_bias=-1.5)
    x = torch.rand(5, 6, generator=torch.Generator().manual_seed(0))
    w, v = network.encode.weight.detach().numpy(), network.decode.weight.detach().numpy()
    by_hand = np.tanh(x.numpy() @ w) @ v - 1.5
    np.testing.assert_allclose(network(x).detach().numpy(), by_hand, rtol=1e-5, atol=1e-6)
