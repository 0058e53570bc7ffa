"""The update of a second phase as the authors' public code defines it, written out once more: cost and gradients.

# B batch · K groups · N elements · T iterations · R rows = B x K

Nothing here is the package's but the random numbers: what the network sees of a scene, and its first masks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.objective import LABELLED, Batch, Objective

B, K, N, T, SIGMA, CLASS_COST = 6, 4, 25, 4, 0.15, 0.1
LEVELS = 5
"""Of the Ladder above its input, the classes' included."""
Weights = dict[str, Tensor]


def trained_in_double() -> Tagger:
    """All parameters away from their start."""
    config = TaggerConfig(
        shape=(5, 5), kind="real", widths=(30, 20, 16, 12, 8), classes=10, noise=SIGMA, mean=0.5,
        ratio_variance="reference",
    )  # fmt: skip
    random = torch.Generator().manual_seed(0)
    model = Tagger(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return model


def batch_normalised(a: Tensor) -> Tensor:
    return (a - a.mean(0)) / torch.sqrt(a.var(0, unbiased=False) + 1e-10)


def ladder(h: Tensor, w: Weights) -> tuple[Tensor, Tensor]:
    """The denoised lowest level, and the softmax of classes with 'no class'."""
    lateral = [h]
    for level in range(LEVELS):
        lateral.append(batch_normalised(h @ w[f"ladder.encoder.{level}.weight"]))
        h = torch.relu(lateral[-1] + w[f"ladder.bias.{level}"])
    top = torch.softmax((lateral[-1] + w[f"ladder.bias.{LEVELS - 1}"]) * w["ladder.top_scale"], -1)
    u = batch_normalised(top)
    for level in range(LEVELS, -1, -1):
        a = w[f"ladder.combine.{level}.a"].squeeze(1)
        mu = a[0] * torch.sigmoid(a[1] * u + a[2]) + a[3] * u + a[4]
        gate = torch.sigmoid(a[5] * torch.sigmoid(a[6] * u + a[7]) + a[8] * u + a[9])
        estimate = (lateral[level] - mu) * gate + mu
        if level:
            u = batch_normalised(estimate @ w[f"ladder.decoder.{level - 1}.weight"])
    return estimate, top


def costs(x: Tensor, x_tilde: Tensor, m: Tensor, classes: Tensor | None, v: Tensor, w: Weights) -> Tensor:
    """One pass: the class cost of scenes with classes, else the denoising cost."""
    z, noisy, denoising = torch.full((B, K, N), 0.5).double(), x_tilde.unsqueeze(1), []
    for _ in range(T):
        variance = SIGMA**2 + v**2
        fit = torch.exp(-(0.5 * torch.log(variance) + (z - noisy) ** 2 / (2 * variance)))
        rows = torch.cat([z, m, m * (noisy - z), fit / fit.sum(1, keepdim=True)], -1).flatten(0, 1)
        estimate, top = ladder(torch.relu(batch_normalised(rows @ w["W_h.weight"]) + w["bias_h"]), w)
        z_u, m_u = (batch_normalised(part) for part in (estimate @ w["W_u.weight"]).split(N, -1))
        z = (z_u * w["z_scale"] + w["z_bias"]).unflatten(0, (B, K))
        m = torch.softmax((m_u * w["m_scale"]).unflatten(0, (B, K)), 1)
        log_p = -0.5 * (torch.log(v) + (x.unsqueeze(1) - z) ** 2 / v) + torch.log(m + 1e-5)
        denoising.append(-torch.logsumexp(log_p, 1).mean())
    if classes is None:
        return torch.stack(denoising).mean()
    shares = top.unflatten(0, (B, K))[..., :-1]
    p = (shares / shares.sum((1, 2), keepdim=True)).sum(1)
    target = 0.5 * torch.nn.functional.one_hot(classes, 10).sum(1)
    return -(target * torch.log(p)).sum(1).mean()


def test_costs_and_gradients_are_those_of_the_public_code() -> None:
    model, random = trained_in_double(), torch.Generator().manual_seed(1)
    x, labelled = torch.rand(2, B, N, generator=random, dtype=torch.float64)
    classes = torch.randint(0, 10, (B, 2), generator=random)
    noise, masks = Key.of(3).fold("noise"), Key.of(3).fold("masks")
    parameters = list(model.parameters())

    found = Objective(model, K, T, CLASS_COST)(Batch(x, labelled, classes), noise, masks)

    weights = dict(model.mapping.named_parameters())
    v = model.w.reshape(()) + torch.sqrt(model.w.reshape(()) ** 2 + 1)
    passes = []
    for scenes, known, own_noise, own_masks in (
        (x, None, noise, masks), (labelled, classes, noise.fold(LABELLED), masks.fold(LABELLED))
    ):  # fmt: skip
        start = model.start(B, K, own_masks).m.double()
        passes.append(costs(scenes, model.corrupt(scenes, own_noise), start, known, v, weights))
    denoising, classification = passes
    # The public code leaves out the constant of the normal density.
    expected = denoising + 0.5 * math.log(2 * math.pi) + CLASS_COST * classification
    torch.testing.assert_close(found.total, expected, rtol=1e-10, atol=0)
    of_package, of_transcription = (torch.autograd.grad(total, parameters) for total in (found.total, expected))
    for ours, theirs in zip(of_package, of_transcription, strict=True):
        assert theirs.abs().max() > 1e-4, "every parameter matters"
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * float(theirs.abs().max()))
