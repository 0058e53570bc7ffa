"""FC MLP against numpy; what all classifiers share; population statistics against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_classifiers import make, rows
from torch import nn
from torch.func import stack_module_state

from paper.baselines.classifiers import FullyConnected, Moments, class_cost, clean_path, population_moments
from taggernet.rng import Key


def test_mlp_equals_a_numpy_transcription() -> None:
    model, x = make("mlp"), rows()
    p = {name: w.detach().double().numpy() for name, w in model.named_parameters()}
    h = x.double().numpy()
    for level in range(3):
        pre = h @ p[f"encoder.{level}.weight"]
        biased = (pre - pre.mean(0)) / np.sqrt(pre.var(0) + 1e-10) + p[f"bias.{level}"]
        h = np.maximum(biased, 0) if level < 2 else p["top_scale"] * biased
    expected = h - np.log(np.exp(h).sum(1, keepdims=True))
    (path,) = model.encode([x], [])
    np.testing.assert_allclose(path.log_p.detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "ladder", "convnet"])
@pytest.mark.parametrize("batch", [7, 100])
def test_population_moments_equal_full_batch_statistics(kind: str, batch: int) -> None:
    """Given moments over all rows, the clean path of all rows at once is what normalising that batch gives."""
    model, x = make(kind), rows(50)
    found = population_moments(model, dict(model.named_parameters()), x, batch=batch)
    (path,) = model.encode([x], [])
    for own, whole in zip(found, path.moments, strict=True):
        torch.testing.assert_close(own.mean, whole.mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(own.variance, whole.variance, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(x, found), path.log_p, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["mlp", "ladder", "convnet"])
def test_predictions_with_population_moments_do_not_depend_on_the_batch(kind: str) -> None:
    model, x = make(kind, **({"input_noise": 0.3} if kind != "ladder" else {})), rows(30)
    population = population_moments(model, dict(model.named_parameters()), x)
    whole = model(x, population)
    torch.testing.assert_close(torch.cat([model(row[None], population) for row in x]), whole, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(30))


@pytest.mark.parametrize("kind", ["mlp", "ladder", "convnet"])
def test_stacked_seeds_equal_each_alone(kind: str) -> None:
    models = [make(kind, seed) for seed in range(3)]
    weights = stack_module_state(models)[0]
    x, test = rows(40), rows(5, seed=1)
    population = population_moments(models[0], weights, x, batch=15)
    found = clean_path(models[0], weights, test, population)
    assert found.shape == (3, 5, 3)
    for index, model in enumerate(models):
        own = population_moments(model, dict(model.named_parameters()), x, batch=15)
        torch.testing.assert_close(found[index], model(test, own), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["mlp", "convnet"])
def test_noise_is_of_the_stated_size_and_only_in_training(kind: str) -> None:
    x = rows(400)
    model = make(kind, input_noise=0.5, layer_noise=0.2)
    (noisy,) = model.encode([x], [Key.of(0)])
    (clean,) = model.encode([x], [])
    assert (noisy.z[0] - clean.z[0]).std().item() == pytest.approx(0.5, rel=0.02)
    quiet = make(kind)
    (path,) = quiet.encode([x], [Key.of(0)])
    (same,) = quiet.encode([x], [])
    assert torch.equal(path.log_p, same.log_p)
    only_layers = make(kind, layer_noise=0.2)
    (noisy,) = only_layers.encode([x], [Key.of(0)])
    assert (noisy.z[1] - same.z[1]).std().item() == pytest.approx(0.2, rel=0.02)


def test_class_cost_is_the_cross_entropy_with_shared_targets() -> None:
    log_p = torch.log_softmax(rows(3)[:, :4], dim=-1)
    classes = torch.tensor([[0, 1], [2, 2], [3, 0]])
    target = torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0.5, 0, 0, 0.5]])
    torch.testing.assert_close(class_cost(log_p, classes), nn.functional.cross_entropy(log_p, target))
    single = nn.functional.nll_loss(log_p, classes[:, 0])
    torch.testing.assert_close(class_cost(log_p, classes[:, :1]), single)


def test_moments_are_float64_accurate_far_from_zero() -> None:
    """Chunks far from zero and from each other: sums of squares would cancel."""
    x = torch.cat([1000 + rows(10)[:, :3], 1010 + rows(30, seed=1)[:, :3]])
    model = FullyConnected((3, 3))
    with torch.no_grad():
        model.encoder[0].weight.copy_(torch.eye(3))
    (found,) = population_moments(model, dict(model.named_parameters()), x, batch=10)
    torch.testing.assert_close(found.variance.double()[0], x.double().var(0, correction=0), rtol=1e-4, atol=0)
    assert isinstance(found, Moments)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 classes"):
        FullyConnected((784, 1))
    with pytest.raises(ValueError, match="layer_noise=-1"):
        FullyConnected((784, 10), layer_noise=-1.0)
