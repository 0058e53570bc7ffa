"""FC MLP and ConvNet against numpy and torch's own layers; population statistics against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from paper.baselines.classifiers import Classifier, FullyConnected, Moments, class_cost, clean_path, population_moments
from paper.baselines.convnet import CHANNELS, ConvNet, Convolution, pooled
from paper.baselines.ladder_classifier import LadderClassifier
from taggernet.rng import Key

SMALL = (3, 4, 5, 4, 3, 4, 2)


def moved(model: Classifier) -> Any:
    """The same model with every parameter away from its start."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def make(kind: str, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    if kind == "convnet":
        return moved(ConvNet((10, 9), 3, SMALL, **options))
    if kind == "ladder":
        return moved(LadderClassifier((90, 12, 8, 3), **options))
    return moved(FullyConnected((90, 12, 8, 3), **options))


def rows(n: int = 20, seed: int = 0) -> Tensor:
    return torch.randn(n, 90, generator=torch.Generator().manual_seed(seed))


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


def test_convnet_equals_torch_layers() -> None:
    """Model C written with torch's own layers, BatchNorm2d in training mode included."""
    model, x = make("convnet"), rows()
    layers: list[nn.Module] = []
    for level, convolution in enumerate(model.convolutions):
        weight = convolution.weight.detach()
        padding = 0 if level >= 4 else 1
        plain = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], padding=padding, bias=False)
        norm = nn.BatchNorm2d(weight.shape[0], eps=1e-10)
        with torch.no_grad():
            plain.weight.copy_(weight)
            norm.bias.copy_(model.bias[level].reshape(-1))
        layers += [plain, norm, nn.ReLU()]
        if level in (1, 3):
            layers.append(nn.MaxPool2d(3, stride=2, padding=1))
    h = nn.Sequential(*layers)(x.reshape(-1, 1, 10, 9)).flatten(1) @ model.out.weight
    h = nn.functional.batch_norm(h, None, None, training=True, eps=1e-10)
    expected = torch.log_softmax(model.top_scale * (h + model.bias[7]), dim=-1)
    (path,) = model.encode([x], [])
    torch.testing.assert_close(path.log_p, expected, rtol=1e-4, atol=1e-5)


def test_model_c_has_its_published_shape() -> None:
    model = ConvNet()
    assert tuple(c.weight.shape[0] for c in model.convolutions) == CHANNELS == (96, 96, 192, 192, 192, 192, 10)
    assert [c.weight.shape[-1] for c in model.convolutions] == [3, 3, 3, 3, 3, 1, 1]
    assert model.out.inputs == 10 * 5 * 5
    assert ConvNet((32, 32)).out.inputs == 10 * 6 * 6  # Springenberg et al. average over 6 x 6


def test_stacked_convolution_equals_a_grouped_one() -> None:
    """S models side by side are one convolution in S groups of channels."""
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(3, 4, 2, 7, 6, generator=generator), torch.randn(3, 5, 2, 3, 3, generator=generator)
    found = functional_call(Convolution(2, 5, 3, 1), {"weight": weight}, (x,))
    grouped = nn.functional.conv2d(x.transpose(0, 1).flatten(1, 2), weight.flatten(0, 1), padding=1, groups=3)
    torch.testing.assert_close(found, grouped.unflatten(1, (3, 5)).transpose(0, 1), rtol=1e-4, atol=1e-5)
    assert pooled(x).shape == (3, 4, 2, 4, 3)


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
    with pytest.raises(ValueError, match="7 positive numbers"):
        ConvNet(channels=(96, 96))
    with pytest.raises(ValueError, match="9 x 9"):
        ConvNet((8, 28))
    with pytest.raises(ValueError, match="at least 2 classes"):
        FullyConnected((784, 1))
    with pytest.raises(ValueError, match="layer_noise=-1"):
        FullyConnected((784, 10), layer_noise=-1.0)
