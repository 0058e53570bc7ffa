"""TextureMNIST1 and 2: digits of one texture on a background of another (paper, section 3.2).

    S seeds · n scenes · D digits per scene (1 or 2) · N = 28 * 28 elements

The bank has 20 textures, each a plane wave on a grid of 38 x 38; a scene takes D + 1 different ones and
cuts each at a random window of 28 x 28. A digit's grey value is the opacity of its texture. With two digits
one is moved 2 up and left, the other 2 down and right. The up-left digit is on top, as in the paper's own data;
``depth="random"`` puts either on top, which is harder.

What is seen of each layer, from back to front (a and b: opacities of the lower and the upper digit):
    two digits   background (1 - a)(1 - b) · lower digit a (1 - b) · upper digit b
An element belongs to the layer (1 = background) of which more than 0.9 is seen, else it is unscored (0).
"""

from __future__ import annotations

import itertools
import math
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from taggernet.arrays import Array
from taggernet.config.validate import check_choice, check_count
from taggernet.data.checks import check_scene_count
from taggernet.data.mnist import mnist
from taggernet.data.scenes import Scenes, one_thread
from taggernet.rng import Key

Depth = Literal["up-left", "random"]
"""Which of two digits is on top: always the up-left one, or either."""
DigitPool = Literal["split", "shared"]
"""Whether training and validation scenes have digits of their own, or share one pool of 60,000."""
SPLITS = ("train", "valid", "test")
SIDE = 28
GRID = 38
MOVE = 2
VISIBLE = 0.9
_FREQUENCIES = tuple(itertools.product((4, 10, 21, 32, 37), (0, 4, 8, 12)))
_BANK_SEED = 2016
_TEXTURE, _ROW, _COL, _BELOW, _DIGIT = range(5)  # sub-streams; numbers, as a compiled step cannot hash names


def texture_bank(device: torch.device | str | None = None, seed: int = _BANK_SEED) -> Tensor:
    """The 20 textures, float32 (20, 38, 38) in [0, 1]; the default seed is every data set's bank."""
    phases = Key.of(seed).fold("textures").uniform(len(_FREQUENCIES)).double().numpy()
    row, col = np.meshgrid(np.arange(GRID), np.arange(GRID), indexing="ij")
    waves = []
    for index, ((down, right), phase) in enumerate(zip(_FREQUENCIES, phases, strict=True)):
        shifted = right + index // 4  # the second frequency moves by the index of the first
        wave = np.cos(2 * math.pi * ((down * row + shifted * col) / GRID + phase))
        waves.append((wave - wave.min()) / (wave.max() - wave.min()))
    return torch.from_numpy(np.stack(waves).astype(np.float32)).to(device)


def visible(opacity: Tensor) -> list[Tensor]:
    """What is seen of each layer, (..., N), from back to front; it sums to one. opacity (..., D, N) of the digits."""
    seen = [torch.ones_like(opacity[..., 0, :])]
    for upper in opacity.unbind(-2):
        seen = [(1 - upper) * layer for layer in seen] + [upper]
    return seen


def compose(opacity: Tensor, textures: Tensor) -> tuple[Tensor, Tensor]:
    """x (float32) and groups (uint8), each (..., N), from layers ordered from back to front.

    opacity (..., D, N) of the digits; textures (..., D + 1, N), the background's first.
    """
    x = textures[..., 0, :]
    for upper, texture in zip(opacity.unbind(-2), textures[..., 1:, :].unbind(-2), strict=True):
        x = upper * texture + (1 - upper) * x
    # As they sum to one, at most one layer passes 0.9: this is the argmax.
    groups = torch.zeros_like(x, dtype=torch.uint8)
    for number, layer in enumerate(visible(opacity), start=1):
        groups = groups + (layer > VISIBLE).to(torch.uint8) * number
    return x, groups


def _draw_layers(key: Key, n: int, digits: int, bank: Tensor, start: int | Tensor) -> Tensor:
    """Windows of digits + 1 different textures per scene, (*key, n, D + 1, 28, 28)."""
    chosen: list[Tensor] = []
    for layer in range(digits + 1):
        pick = key.fold(_TEXTURE, layer).integers(len(bank) - layer, n, start=start)
        taken = torch.stack(chosen).sort(dim=0).values.unbind(0) if chosen else ()
        for other in taken:  # skip those taken, from the lowest up: uniform over the rest
            pick = pick + (pick >= other)
        chosen.append(pick)
    windows = bank.unfold(1, SIDE, 1).unfold(2, SIDE, 1)  # a view (20, 11, 11, 28, 28)
    layers = digits + 1
    row = key.fold(_ROW).integers(windows.shape[1], n, layers, start=start * layers)
    col = key.fold(_COL).integers(windows.shape[2], n, layers, start=start * layers)
    return windows[torch.stack(chosen, dim=-1), row, col]


def place_digits(
    key: Key, index: Tensor, images: Tensor, labels: Tensor | None, start: int | Tensor, depth: Depth
) -> tuple[Tensor, Tensor | None]:
    """Opacities (*key, n, D, 28, 28) of chosen digits in their places, from back to front, and their classes.

    index (*key, n, D); of two digits the first is the up-left one. Scenes start .. start+n-1 of the key's stream.
    """
    n, digits = index.shape[-2:]
    opacity = images[index]  # (*key, n, D, 28, 28)
    if images.dtype == torch.uint8:
        opacity = opacity.to(torch.float32) / 255
    classes = None if labels is None else labels[index]
    if digits == 1:
        classes = None if classes is None else classes.squeeze(-1)
    else:
        up_left = pad(opacity[..., 0, MOVE:, MOVE:], (0, MOVE, 0, MOVE))
        down_right = pad(opacity[..., 1, :-MOVE, :-MOVE], (MOVE, 0, MOVE, 0))
        if depth == "up-left":
            opacity = torch.stack([down_right, up_left], dim=-3)
            classes = None if classes is None else classes.flip(-1)
        else:
            second_below = key.fold(_BELOW).integers(2, n, start=start)[..., None]  # (*key, n, 1) of 0 and 1
            swap = second_below[..., None].bool()
            lower, upper = torch.where(swap, down_right, up_left), torch.where(swap, up_left, down_right)
            opacity = torch.stack([lower, upper], dim=-3)
            if classes is not None:
                order = torch.cat([second_below, 1 - second_below], dim=-1)
                classes = torch.gather(classes, -1, order)
    return opacity, classes


def _scenes_of(
    key: Key, index: Tensor, images: Tensor, labels: Tensor | None, bank: Tensor, start: int | Tensor, depth: Depth
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The scenes of chosen digits, as in ``place_digits``."""
    opacity, classes = place_digits(key, index, images, labels, start, depth)
    n, digits = index.shape[-2:]
    layers = _draw_layers(key, n, digits, bank, start)
    return *compose(opacity.flatten(-2), layers.flatten(-2)), classes


def fresh_texture_mnist(
    key: Key,
    images: Tensor,
    labels: Tensor,
    bank: Tensor,
    n: int,
    digits: int = 2,
    start: int | Tensor = 0,
    depth: Depth = "up-left",
    subset: Tensor | None = None,
    twins: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scenes start .. start+n-1 of the key's stream, of digits drawn with replacement, on the key's device.

    images (m, 28, 28), uint8 or float in [0, 1], labels (m,) and bank (``texture_bank``) lie on that device.
    Returns x float32 (*key, n, N), groups uint8 (*key, n, N) and classes, (*key, n) for one digit and
    (*key, n, 2) for two: the lower digit's, then the upper one's. ``subset`` restricts the digits to those numbers:
    (m,) for all streams, or (*key, m) where each has its own. With ``twins`` every second scene has the digits of the
    one before it, which then change places; start and n are even. Works inside a compiled or captured step.
    """
    count = len(images) if subset is None else subset.shape[-1]
    different = 2 if twins else 1
    index = key.fold(_DIGIT).integers(count, n // different, digits, start=start // different * digits)
    if subset is not None:
        index = subset.expand(*index.shape[:-2], -1).gather(-1, index.flatten(-2)).reshape(index.shape)
    if twins:
        index = torch.stack([index, index.flip(-1)], dim=-2).flatten(-3, -2)
    x, groups, classes = _scenes_of(key, index, images, labels, bank, start, depth)
    assert classes is not None
    return x, groups, classes


@one_thread()
def texture_mnist(
    digits: int,
    split: str = "train",
    seed: int = 0,
    *,
    images: Array | None = None,
    labels: Array | None = None,
    n: int | None = None,
    depth: Depth = "up-left",
    digit_pool: DigitPool = "split",
) -> Scenes:
    """TextureMNIST1 or 2 (``digits``): as many scenes as the split has digits, each used once per place.

    Of two digits, ``depth`` says which is on top. train is MNIST 0 .. 49,999, valid 50,000 .. 59,999, test its 10,000.
    With ``digit_pool="shared"`` train and valid are 50,000 and 10,000 scenes of all 60,000 digits, as in the notebook
    that made the paper's data. ``images`` and ``labels`` stand in for the split's digits (or for the pool of train and
    valid). n scenes go round the digits in a new order each time they are used up.
    """
    check_count("digits", digits, low=1, high=2)
    check_choice("split", split, SPLITS)
    check_choice("depth", depth, get_args(Depth))
    check_choice("digit_pool", digit_pool, get_args(DigitPool))
    pooled = digit_pool == "shared" and split != "test"
    if n is not None:
        check_scene_count(n, SIDE)
    if images is None:
        if labels is not None:
            raise ValueError("labels were given without images: pass both, or neither to use MNIST")
        images, labels = mnist("train+valid" if pooled else split)
    pictures, marks = _check_digits(images, labels)
    first, size = _part_of_pool(split, len(pictures)) if pooled else (0, len(pictures))
    n = size if n is None else n

    root = Key.of(seed)
    key = root.fold(f"texture-mnist-{digits}", split)
    orders = root.fold(f"texture-mnist-{digits}", "pool") if pooled else key
    places = [_order(orders.fold(_DIGIT, place), len(pictures), first, size, n) for place in range(digits)]
    bank, index = texture_bank(), torch.stack(places, dim=-1)

    x = np.empty((n, SIDE, SIDE), dtype=np.float32)
    groups = np.empty((n, SIDE, SIDE), dtype=np.uint8)
    classes = None if marks is None else np.empty((n, 2) if digits == 2 else (n,), dtype=np.int64)
    chunk = 512  # stays within a CPU's cache
    for begin in range(0, n, chunk):
        part = slice(begin, min(begin + chunk, n))
        seen, owner, label = _scenes_of(key, index[part], pictures, marks, bank, begin, depth)
        x[part] = seen.numpy().reshape(-1, SIDE, SIDE)
        groups[part] = owner.numpy().reshape(-1, SIDE, SIDE)
        if classes is not None and label is not None:
            classes[part] = label.numpy()
    return Scenes(x, groups, classes, kind="real", background=1)


def _part_of_pool(split: str, digits: int) -> tuple[int, int]:
    """Where in a shared pool a split begins, and how many digits it has: five sixths train, the rest valid."""
    train = digits * 5 // 6
    return (0, train) if split == "train" else (train, digits - train)


def _order(key: Key, m: int, first: int, size: int, n: int) -> Tensor:
    """n digits out of m: ``size`` of each random order from ``first`` on, in a new order each time round."""
    laps = (key.fold(lap).permutation(m)[first : first + size] for lap in range(-(-n // size)))
    return torch.cat(list(laps))[:n]


def _check_digits(images: object, labels: object) -> tuple[Tensor, Tensor | None]:
    pictures = np.asarray(images)
    if pictures.ndim != 3 or pictures.shape[1:] != (SIDE, SIDE) or len(pictures) == 0:
        raise ValueError(f"images has shape {pictures.shape}, expected (n, {SIDE}, {SIDE}) with n at least 1")
    if pictures.dtype.kind == "f":
        if not (pictures.min() >= 0 and pictures.max() <= 1):
            raise ValueError("images holds values outside 0 .. 1 (or NaN): scale them, or pass uint8 0 .. 255")
        pictures = pictures.astype(np.float32, copy=False)
    elif pictures.dtype != np.uint8:
        raise TypeError(f"images has dtype {pictures.dtype}, expected uint8 (0 .. 255) or float (0 .. 1)")
    if labels is None:
        return torch.from_numpy(np.ascontiguousarray(pictures)), None
    marks = np.asarray(labels)
    if marks.dtype.kind not in "iu":
        raise TypeError(f"labels has dtype {marks.dtype}, expected integers")
    if marks.shape != (len(pictures),):
        raise ValueError(f"labels has shape {marks.shape}, but there are {len(pictures)} images: one label each")
    return torch.from_numpy(np.ascontiguousarray(pictures)), torch.from_numpy(marks.astype(np.int64))
