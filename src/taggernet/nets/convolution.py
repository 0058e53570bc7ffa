"""Convolutions of images, channels last, and patches of positions.

# S seeds (optional) · R rows · H x W positions · F features
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.norm import BatchNorm, Iteration, at_iteration
from taggernet.nets.roles import ParameterRole, Roles

Images = Float[Tensor, "*S R H W F"]
SIDE = 3
"""Height and width of a kernel."""


class Conv(nn.Module):
    """A convolution with zeros around the image, in the weight's own dtype like ``Linear``; no bias.

    Stacked weights (S, ...) are S convolutions, one after the other: each is large enough to fill a GPU.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1, side: int = SIDE, padding: int = SIDE // 2) -> None:
        super().__init__()
        self.stride, self.padding, self.fan_in = stride, padding, inputs * side**2
        self.weight = nn.Parameter(torch.randn(outputs, inputs, side, side) / math.sqrt(self.fan_in))

    def forward(self, x: Images) -> Float[Tensor, "*S R h w G"]:
        return self.convolved(x, self.weight)

    def convolved(self, x: Images, weight: Tensor) -> Float[Tensor, "*S R h w G"]:
        if weight.ndim == 4:
            return self._one(x, weight)
        return torch.stack([self._one(*pair) for pair in zip(x.unbind(0), weight.unbind(0), strict=True)])

    def _one(self, x: Tensor, weight: Tensor) -> Tensor:
        # With its channels last in memory an image is already what the fast kernels want.
        rows = x.to(weight.dtype).permute(0, 3, 1, 2)
        return nn.functional.conv2d(rows, weight, stride=self.stride, padding=self.padding).permute(0, 2, 3, 1)

    def parameter_roles(self) -> Roles:
        return {self.weight: ParameterRole(fan_in=self.fan_in)}


def fold_patches(images: Images, side: int) -> Float[Tensor, "*S R h w G"]:
    """Every patch of side x side positions becomes one position with as many times the features."""
    if side == 1:
        return images
    *front, height, width, features = images.shape
    images = nn.functional.pad(images, (0, 0, 0, -width % side, 0, -height % side))
    h, w = -(-height // side), -(-width // side)
    return images.reshape(*front, h, side, w, side, features).transpose(-4, -3).reshape(*front, h, w, -1)


def unfold_patches(patches: Float[Tensor, "*S R h w G"], side: int, height: int, width: int) -> Images:
    """The inverse of ``fold_patches``, cut to the image's height and width."""
    if side == 1:
        return patches
    *front, h, w, features = patches.shape
    images = patches.reshape(*front, h, w, side, side, features // side**2).transpose(-4, -3)
    return images.reshape(*front, h * side, w * side, -1)[..., :height, :width, :]


class EnlargingConv(Conv):
    """The convolution of an image that is first enlarged ``times`` x ``times``, as patches at the image's own size.

    Every position becomes a patch of outputs, and the kernel of each is the given one with those of its weights added
    up that fall on the same position: a quarter of the memory of an enlarged image, for twice the size.
    """

    taps: Float[Tensor, "a i d"]
    """1 where output a of a patch sees position i, of three, through weight d of the kernel."""

    def __init__(self, inputs: int, outputs: int, times: int) -> None:
        super().__init__(inputs, outputs)
        self.times = times
        output, position, weight = torch.meshgrid(
            *(torch.arange(n, device="cpu") for n in (times, SIDE, SIDE)), indexing="ij"
        )
        seen = torch.div(output + weight - 1, times, rounding_mode="floor") == position - 1
        self.register_buffer("taps", seen.float(), persistent=False)

    def forward(self, x: Images) -> Float[Tensor, "*S R h w G"]:
        kernels = torch.einsum("aid,bje,...ocde->...abocij", self.taps, self.taps, self.weight.to(self.taps.dtype))
        return self.convolved(x, kernels.flatten(-6, -4).to(self.weight.dtype))

    def parameter_roles(self) -> Roles:
        return {self.weight: ParameterRole(fan_in=self.fan_in, uses=self.times**2)}


def normed_images(norm: nn.Module, x: Images, iteration: Iteration | None) -> Images:
    """BatchNorm: every position is a row; LayerNorm: the whole image is one."""
    rows = x.flatten(-4, -2) if isinstance(norm, BatchNorm) else x.flatten(-3)
    return at_iteration(norm, iteration)(rows).reshape(x.shape)
