"""What could be read from perfect masks: the limit of whatever reads the classes of TextureMNIST's digits from masks.

A digit's perfect mask says how much of it is seen at each position. One network reads all of them; it learns from new
compositions of training digits that are turned and bent, and is scored on the digits of validation.

# n scenes · D digits per scene · N = H x W elements
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paper.records import Record
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.config.validate import check_count
from taggernet.data.textures import SIDE, Depth, place_digits, visible
from taggernet.fileio import make_folder, write_json
from taggernet.nets.class_head import ClassHead, MaskConvolutions
from taggernet.nets.distortion import distort
from taggernet.nets.disturbance import Disturbance
from taggernet.rng import Key
from taggernet.training.datasets import digits_of
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment, progress_bar

Digits = tuple[Array, Array]
"""Images and labels."""


def perfect_mask_error(
    train: Digits, valid: Digits, digits: int, depth: Depth = "up-left", *, updates: int,
    channels: tuple[int, ...] = (24, 48), device: torch.device | None = None, progress: bool = False,
) -> list[float]:  # fmt: skip
    """The share of digits that are read wrongly, the lower digit's first."""
    device = torch.device("cpu") if device is None else device
    torch.manual_seed(0)
    head = ClassHead(SIDE**2, (256,), 10, convolutions=MaskConvolutions((SIDE, SIDE), channels)).to(device)
    key = Key.of(0, device).fold("perfect masks")
    images, labels = _on(device, train)
    adam = torch.optim.Adam(head.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, updates)
    with progress_bar(updates, 0, progress, what="perfect masks") as bar:
        for update in range(updates):
            first, batch = 50 * update, (50, digits)
            index = key.integers(len(images), *batch, start=first * digits)
            opacity, classes = place_digits(key, index, images, labels, first, depth)
            assert classes is not None
            bent = distort(key.fold("bent"), opacity.flatten(0, 1), 0.5, first * digits).reshape(opacity.shape)
            said = head(_masks(bent), Disturbance(0.1, key.fold("left out"), first * digits))
            cost = -said.gather(-1, classes.reshape(-1, 1)).clamp(min=1e-7).log().mean()
            adam.zero_grad()
            torch.autograd.backward(cost)
            adam.step()
            schedule.step()
            bar(update + 1, loss=f"{cost.item():.4f}")
    images, labels = _on(device, valid)
    order = torch.stack([key.fold("valid", place).permutation(len(images)) for place in range(digits)], dim=-1)
    wrong: list[Tensor] = []
    with torch.no_grad():
        for first in range(0, len(order), 500):
            opacity, classes = place_digits(key.fold("valid"), order[first : first + 500], images, labels, first, depth)
            assert classes is not None
            wrong.append((head(_masks(opacity)).argmax(-1) != classes.flatten()).reshape(-1, digits))
    errors: list[float] = torch.cat(wrong).float().mean(0).tolist()
    return errors


def _on(device: torch.device, digits: Digits) -> tuple[Tensor, Tensor]:
    images, labels = digits
    return torch.from_numpy(np.ascontiguousarray(images)).to(device), torch.from_numpy(labels).to(device).long()


def _masks(opacity: Float[Tensor, "n D H W"]) -> Float[Tensor, "nD N"]:
    """What is seen of every digit, scene by scene."""
    return torch.stack(visible(opacity.flatten(-2))[1:], dim=1).flatten(0, 1)


@dataclass(frozen=True)
class PerfectMasks:
    """What could be read from perfect masks of TextureMNIST's digits; validation digits only."""

    digits: Literal[1, 2] = 2
    """TextureMNIST with one or two digits."""
    depth: Depth = "up-left"
    """Two digits: which one is on top."""
    updates: int = 12_000
    """Updates of the network that reads them."""
    out: Path | None = None
    """File of the record."""
    quick: bool = False
    """The bundled digits and few updates: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        check_count("updates", self.updates, low=1)
        if self.out is not None:
            make_folder(self.out.parent)
        updates, device = 20 if self.quick else self.updates, pick_device(self.device)
        data = DataConfig(name=f"texture-mnist-{self.digits}", digits="fixture" if self.quick else "mnist")
        errors = perfect_mask_error(
            digits_of(data, "train"), digits_of(data, "valid"), self.digits, self.depth, updates=updates,
            device=device, progress=True,
        )  # fmt: skip
        record: Record = {
            "digits": self.digits, "depth": self.depth, "updates": updates, "error_by_digit": errors,
            "environment": environment(),
        }  # fmt: skip
        each = f" ({', '.join(f'{100 * error:.2f}' for error in errors)}, lower digit first)"
        print(f"{100 * float(np.mean(errors)):.2f} %  read from perfect masks{each if self.digits == 2 else ''}")
        if self.out is not None:
            write_json(self.out, record)
