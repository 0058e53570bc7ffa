"""Convolutions and patches against torch's own, and against sums written out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from taggernet.nets.convolution import Conv, EnlargingConv, fold_patches, unfold_patches

SHAPE = (7, 9)


@pytest.mark.parametrize("side", [1, 2, 4])
def test_patches_go_there_and_back(side: int) -> None:
    images = torch.randn(2, 3, *SHAPE, 5)
    folded = fold_patches(images, side)
    assert folded.shape == (2, 3, -(-SHAPE[0] // side), -(-SHAPE[1] // side), 5 * side**2)
    assert torch.equal(unfold_patches(folded, side, *SHAPE), images)


def test_a_patch_holds_its_own_positions() -> None:
    """Against torch's pixel_unshuffle, which puts the features before the positions of a patch."""
    images = torch.randn(3, 6, 4, 5)
    theirs = nn.functional.pixel_unshuffle(images.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)
    ours = fold_patches(images, 2).reshape(3, 3, 2, 4, 5).transpose(-1, -2).reshape(3, 3, 2, 20)
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_sums_over_its_neighbourhood(stride: int) -> None:
    conv = Conv(4, 6, stride)
    x = torch.randn(2, *SHAPE, 4)
    padded = nn.functional.pad(x, (0, 0, 1, 1, 1, 1))
    out = conv(x)
    for i, j in ((0, 0), (1, 2), (out.shape[1] - 1, out.shape[2] - 1)):
        near = padded[:, i * stride : i * stride + 3, j * stride : j * stride + 3]
        torch.testing.assert_close(out[:, i, j], torch.einsum("rhwf,gfhw->rg", near, conv.weight))


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_an_enlarging_convolution_is_one_of_an_enlarged_image(times: int) -> None:
    conv, images = EnlargingConv(6, 5, times).double(), torch.randn(7, 3, 4, 6, dtype=torch.float64)
    images.requires_grad_()
    large = nn.Upsample(scale_factor=times, mode="nearest")(images.permute(0, 3, 1, 2))
    plain = nn.functional.conv2d(large, conv.weight, padding=1).permute(0, 2, 3, 1)
    ours = unfold_patches(conv(images), times, 3 * times, 4 * times)
    torch.testing.assert_close(ours, plain, rtol=1e-6, atol=1e-6)
    for a, b in zip(*(torch.autograd.grad(y.pow(3).sum(), (images, conv.weight)) for y in (ours, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
