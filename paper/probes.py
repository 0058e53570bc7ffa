"""What each part of a trained Tagger knows of the digits in TextureMNIST.

# n scenes · D digits per scene · K groups · F features

For every digit there is the group that wins most of its elements, by the truth. A logistic regression then reads the
digit's class from what that group holds: its mask, its z, and each level of the Ladder on the way up. High error on a
level means that the level describes something else, such as the texture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from paper.failure_analysis import contingency, flat_labels
from paper.records import Record
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.fileio import make_folder, write_json
from taggernet.nets.ladder import LadderMapping
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment

BACKGROUND = 1
"""Number of the background among a scene's true groups; the digits follow it."""
PENALTIES = (1e-3, 1e-2, 1e-1)
"""Inverse penalties of the regressions; the best one on the probe's own validation scenes is taken."""


def probe_levels(
    model: Tagger, train: Scenes, valid: Scenes, *, groups: int = 4, iterations: int = 4, batch: int = 100
) -> dict[str, float]:
    """Error of reading a digit's class, by what it is read from, on ``valid``; the regressions know ``train`` alone."""
    known = group_features(model, train, groups=groups, iterations=iterations, batch=batch)
    seen = group_features(model, valid, groups=groups, iterations=iterations, batch=batch)
    targets, truth = _digits(train), _digits(valid)
    return {name: _regression_error(known[name], targets, seen[name], truth) for name in known}


@torch.no_grad()
def group_features(
    model: Tagger, scenes: Scenes, *, groups: int, iterations: int, batch: int, seed: int = 0
) -> dict[str, Float[Tensor, "nD F"]]:
    """What the group of every digit holds after the last iteration: m, z, m z, and the levels of the Ladder."""
    if not isinstance(model.mapping, LadderMapping):
        raise ValueError("the levels of a Ladder are probed, and this model has another mapping")
    levels: dict[str, Tensor] = {}
    ladder = model.mapping.ladder
    hooks = [
        layer.register_forward_pre_hook(_keep_input(levels, f"level {number}"))
        for number, layer in enumerate(ladder.encoder)
    ]
    hooks.append(ladder.register_forward_hook(_keep_top(levels, f"level {len(ladder.encoder)}")))
    found: dict[str, list[Tensor]] = {}
    key = Key.of(seed, model.w.device).fold("probes")
    digits = _digits(scenes).shape[0] // len(scenes)
    try:
        for first in range(0, len(scenes), batch):
            part = scenes[first : first + batch]
            x = torch.from_numpy(np.ascontiguousarray(part.x)).flatten(1).to(model.w.device)
            *_, last = model.states(x, groups, iterations, key, first)
            m, z = last.m, last.z
            owner = _owners(part, m.argmax(-2), digits, groups)
            shown = {"m": m, "z": z, "m z": m * z} | {
                name: level.reshape(len(part), groups, -1) for name, level in levels.items()
            }
            for name, value in shown.items():
                index = owner[..., None].expand(-1, -1, value.shape[-1])
                found.setdefault(name, []).append(value.float().gather(1, index).flatten(0, 1).cpu())
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(parts) for name, parts in found.items()}


def _keep_input(levels: dict[str, Tensor], name: str) -> Callable[[nn.Module, Any], None]:
    def keep(_: nn.Module, args: Any) -> None:
        levels[name] = args[0]

    return keep


def _keep_top(levels: dict[str, Tensor], name: str) -> Callable[[nn.Module, Any, Any], None]:
    def keep(_: nn.Module, args: Any, result: Any) -> None:
        levels[name] = result[1]

    return keep


def _owners(scenes: Scenes, labels: Tensor, digits: int, groups: int) -> Int[Tensor, "n D"]:
    """The group that wins most elements of each digit."""
    true, _ = flat_labels(scenes, labels.device)
    parts = contingency(true, labels.to(torch.uint8)[None], digits + BACKGROUND, groups)[0]  # (n, D + 1, K)
    return parts[:, BACKGROUND:].argmax(-1)


def _digits(scenes: Scenes) -> Array:
    """(n D,): the class of every digit, scene by scene."""
    if scenes.classes is None:
        raise ValueError("these scenes have no classes: give TextureMNIST scenes")
    return scenes.classes.reshape(-1)


def _regression_error(known: Tensor, targets: Array, seen: Tensor, truth: Array) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    errors = []
    for inverse in PENALTIES:
        reader = make_pipeline(StandardScaler(), LogisticRegression(C=inverse, max_iter=300))
        reader.fit(known.numpy(), targets)
        errors.append(float((reader.predict(seen.numpy()) != truth).mean()))
    return min(errors)


# --- the command --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probes:
    """What a model's levels know of digits; validation scenes only."""

    model: str = "texture-mnist-2"
    """A shipped model, a model's folder or a run."""
    digits: Literal[1, 2] = 2
    """TextureMNIST with one or two digits."""
    depth: Literal["up-left", "random"] = "up-left"
    """Two digits: which one is on top."""
    scenes: int = 1_000
    """Scenes that the regressions know."""
    out: Path | None = None
    """File of the record."""
    quick: bool = False
    """The bundled digits and few scenes: shows that it works."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""

    def __call__(self) -> None:
        count = 200 if self.quick else 50_000
        data = DataConfig(
            name=f"texture-mnist-{self.digits}", depth=self.depth, train=count, valid=min(count, 10_000),
            digits="fixture" if self.quick else "mnist",
        )  # fmt: skip
        if self.out is not None:
            make_folder(self.out.parent)
        device = pick_device(self.device)
        model = Tagger.from_pretrained(self.model, device)
        train, valid = load_split(data, "train"), load_split(data, "valid")
        levels = probe_levels(model, train[: self.scenes], valid[:2_000])
        record: Record = {"model": self.model, "depth": self.depth, "levels": levels, "environment": environment()}
        for name, error in levels.items():
            print(f"{100 * error:5.1f} %  read from {name}")
        if self.out is not None:
            write_json(self.out, record)
