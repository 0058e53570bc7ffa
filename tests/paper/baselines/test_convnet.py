"""The ConvNet against torch's own layers, and against the shape of Model C."""

from __future__ import annotations

import pytest
import torch
from tiny_classifiers import make, rows
from torch import nn
from torch.func import functional_call

from paper.baselines.convnet import CHANNELS, ConvNet, pooled
from taggernet.nets.convolution import Conv


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
    h = nn.Sequential(*layers)(x.reshape(-1, 1, 10, 9)).permute(0, 2, 3, 1).flatten(1) @ model.out.weight
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
    x, weight = torch.randn(3, 4, 7, 6, 2, generator=generator), torch.randn(3, 5, 2, 3, 3, generator=generator)
    found = functional_call(Conv(2, 5), {"weight": weight}, (x,))
    side_by_side = x.permute(1, 0, 4, 2, 3).flatten(1, 2)
    grouped = nn.functional.conv2d(side_by_side, weight.flatten(0, 1), padding=1, groups=3)
    expected = grouped.unflatten(1, (3, 5)).permute(1, 0, 3, 4, 2)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert pooled(x).shape == (3, 4, 4, 3, 2)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="7 positive numbers"):
        ConvNet(channels=(96, 96))
    with pytest.raises(ValueError, match="9 x 9"):
        ConvNet((8, 28))
