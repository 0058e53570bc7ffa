"""The full Ladder against a numpy transcription of Rasmus et al.'s algorithm, and its parts one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from paper.baselines.ladder_classifier import LadderClassifier, default_lambdas
from taggernet.rng import Key

WIDTHS = (6, 5, 4, 3)
ROWS = 9
Array = np.ndarray[Any, np.dtype[np.float64]]


def ladder(seed: int = 0, **options: Any) -> LadderClassifier:
    """All parameters away from their start."""
    torch.manual_seed(seed)
    model = LadderClassifier(WIDTHS, **options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


class CostsOf(nn.Module):
    """``costs`` as the forward of a module, for functional_call."""

    def __init__(self, model: LadderClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any) -> tuple[Tensor, Tensor]:
        return self.model.costs(*args)


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, WIDTHS[0], generator=generator)
    classes = torch.randint(WIDTHS[-1], (ROWS, 2), generator=generator)
    return x, classes, torch.randn(ROWS, WIDTHS[0], generator=generator)


def numpy_costs(
    model: LadderClassifier, x: Tensor, classes: Tensor, unlabelled: Tensor, noise: Key
) -> tuple[float, float]:
    """Algorithm 1 of the Ladder paper, row by row of its listing, with numpy in float64."""
    p = {name: w.detach().double().numpy() for name, w in model.named_parameters()}
    top = len(WIDTHS) - 1

    def noise_of(part: int, level: int, rows: int) -> Array:
        drawn: Array = noise.fold(part).fold(level).normal(rows, WIDTHS[level]).double().numpy()
        return model.noise[level] * drawn

    def softmax(a: Array) -> Array:
        e = np.exp(a - a.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def up(rows: Array, part: int | None) -> tuple[list[Array], list[tuple[Array, Array]], Array]:
        h = rows + (0 if part is None else noise_of(part, 0, len(rows)))
        z, statistics = [h], []
        for level in range(1, top + 1):
            pre = h @ p[f"encoder.{level - 1}.weight"]
            mean, sd = pre.mean(0), np.sqrt(pre.var(0) + 1e-10)
            z_level = (pre - mean) / sd + (0 if part is None else noise_of(part, level, len(rows)))
            biased = z_level + p[f"bias.{level - 1}"]
            h = np.maximum(biased, 0) if level < top else softmax(p["top_scale"] * biased)
            z.append(z_level)
            statistics.append((mean, sd))
        return z, statistics, h

    def sigmoid(a: Array) -> Array:
        return 1 / (1 + np.exp(-a))

    def g(level: int, z: Array, u: Array) -> Array:
        a = p[f"combine.{level}.a"][:, 0]
        mu = a[0] * sigmoid(a[1] * u + a[2]) + a[3] * u + a[4]
        v = a[5] * sigmoid(a[6] * u + a[7]) + a[8] * u + a[9]
        return (z - mu) * v + mu

    _, _, y = up(x.double().numpy(), 0)
    target = np.zeros_like(y)
    for row, pair in enumerate(classes.tolist()):
        for label in pair:
            target[row, label] += 0.5
    classification = -(target * np.log(y)).sum(1).mean()

    noisy, _, y_noisy = up(unlabelled.double().numpy(), 1)
    clean, statistics, _ = up(unlabelled.double().numpy(), None)
    denoising, estimate = 0.0, np.zeros(0)
    for level in range(top, -1, -1):
        u = y_noisy if level == top else estimate @ p[f"decoder.{level}.weight"]
        u = (u - u.mean(0)) / np.sqrt(u.var(0) + 1e-10)
        estimate = g(level, noisy[level], u)
        judged = estimate
        if level and model.normalise_estimates:
            mean, sd = statistics[level - 1]
            judged = (estimate - mean) / sd
        squares = ((judged - clean[level]) ** 2).sum(1).mean()
        denoising += model.lambdas[level] * squares / WIDTHS[level]
    return float(classification), float(denoising)


@pytest.mark.parametrize("normalise_estimates", [True, False])
@pytest.mark.parametrize("lambdas", [None, (3.0, 0.0, 2.0, 0.5)])
def test_costs_equal_a_numpy_transcription(normalise_estimates: bool, lambdas: tuple[float, ...] | None) -> None:
    model = ladder(normalise_estimates=normalise_estimates, lambdas=lambdas)
    inputs, noise = batch(), Key.of(3)
    found = [float(cost.detach()) for cost in model.costs(*inputs, noise)]
    np.testing.assert_allclose(found, numpy_costs(model, *inputs, noise), rtol=1e-4)


def test_defaults_are_the_papers() -> None:
    model = LadderClassifier((784, 1000, 500, 10))
    assert model.noise == (0.3, 0.3, 0.3, 0.3)
    assert model.lambdas == (1000.0, 10.0, 0.1, 0.1)
    assert default_lambdas(6) == (1000.0, 10.0, 0.1, 0.1, 0.1, 0.1, 0.1)
    assert model.normalise_estimates
    assert all(combinator.gate == "plain" for combinator in model.combine)


def test_labelled_and_unlabelled_rows_do_not_share_statistics() -> None:
    """Shifting and stretching one part leaves the other's cost as it was, to the last bit of float32's mean."""
    model, noise = ladder(input_noise=0.0), Key.of(1)
    x, classes, unlabelled = batch()
    classification, denoising = model.costs(x, classes, unlabelled, noise)
    other_unlabelled, _ = model.costs(x, classes, 5 * unlabelled + 2, noise)
    _, other_labelled = model.costs(5 * x + 2, classes, unlabelled, noise)
    torch.testing.assert_close(other_unlabelled, classification)
    torch.testing.assert_close(other_labelled, denoising)


def test_parts_of_other_sizes_are_refused() -> None:
    x, classes, unlabelled = batch()
    with pytest.raises(ValueError, match="have 8, 9, 9 rows: give as many labelled rows as unlabelled ones"):
        ladder().costs(x[:-1], classes[:-1], unlabelled, Key.of(0))


def test_the_class_cost_is_that_of_the_noisy_path() -> None:
    x, classes, unlabelled = batch()
    quiet = ladder(input_noise=0.0, layer_noise=0.0)
    noisy = ladder()
    first, again, other = (noisy.costs(x, classes, unlabelled, Key.of(seed))[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.isclose(first, other)
    assert not torch.isclose(first, quiet.costs(x, classes, unlabelled, Key.of(0))[0])


@pytest.mark.parametrize("name", ["encoder.0.weight", "bias.0", "decoder.1.weight", "combine.2.a"])
def test_gradients_are_those_of_the_whole_cost(name: str) -> None:
    """Finite differences of the transcription: nothing is held constant, the clean path included."""
    model, inputs, noise = ladder(), batch(), Key.of(3)
    parameter = model.get_parameter(name)
    (gradient,) = torch.autograd.grad(model.costs(*inputs, noise)[1], [parameter])
    index = tuple(int(i) for i in np.unravel_index(int(gradient.abs().argmax()), gradient.shape))
    costs, step = [], 1e-3
    for sign in (1, -1):
        with torch.no_grad():
            parameter[index] += sign * step
            costs.append(numpy_costs(model, *inputs, noise)[1])
            parameter[index] -= sign * step
    assert gradient[index].item() == pytest.approx((costs[0] - costs[1]) / (2 * step), rel=0.01)


def test_only_levels_that_cost_are_decoded() -> None:
    model = ladder(lambdas=(0.0, 0.0, 0.0, 2.0))
    noisy = model.encode([batch()[2]], [Key.of(0)])[0]
    assert list(model.decode(noisy.z, noisy.log_p.exp())) == [3]
    supervised = ladder(lambdas=(0.0,) * 4)
    assert float(supervised.costs(*batch(), Key.of(0))[1].detach()) == 0


def test_stacked_seeds_equal_each_alone() -> None:
    models = [ladder(seed) for seed in range(3)]
    batches = [batch(seed) for seed in range(3)]
    together = [torch.stack(parts) for parts in zip(*batches, strict=True)]
    key = Key.of([4, 5, 6])
    weights = {f"model.{name}": w for name, w in stack_module_state(models)[0].items()}
    found = functional_call(CostsOf(models[0]), weights, (*together, key))
    for index, (model, parts) in enumerate(zip(models, batches, strict=True)):
        alone = model.costs(*parts, Key(key.word[index]))
        for many, one in zip(found, alone, strict=True):
            torch.testing.assert_close(many[index], one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lambdas", [(1.0, 1.0), (1.0, 1.0, -1.0, 1.0)])
def test_wrong_lambdas_are_refused(lambdas: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="give 4 weights"):
        LadderClassifier(WIDTHS, lambdas=lambdas)


@pytest.mark.parametrize("widths", [(784,), (784, 0, 10), (784, 100, 1)])
def test_wrong_widths_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="widths"):
        LadderClassifier(widths)


def test_negative_noise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"input_noise=-0\.1"):
        LadderClassifier(WIDTHS, input_noise=-0.1)
