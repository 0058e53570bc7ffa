"""A model on disk: model.safetensors beside a config.json that a person can read. Never a pickle.

This module knows a model's configuration and its tensors, not the model itself: ``Tagger.save`` and ``Tagger.load``
call it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from taggernet.config.model import TaggerConfig
from taggernet.config.run import build
from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, check_count
from taggernet.fileio import make_folder, read_json, read_tensors, write_json, write_tensors

WEIGHTS, CARD = "model.safetensors", "config.json"
FORMAT = 1
GROUPS, ITERATIONS = 4, 5
"""K and T of a model that names none: those of the paper, and of every model that version 0.1 wrote."""
Bits = Literal[32, 16, 8]
LARGE, WIDE = 1_000, 32
"""Numbers of a tensor that is worth packing, and the shorter side of a matrix whose rows are worth a scale each."""
ROW_SCALE = ".row_scale"
"""Behind the name of a matrix of int8: the number that each of its rows is multiplied by."""
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def write_model(
    folder: str | Path,
    config: TaggerConfig,
    weights: dict[str, Tensor],
    card: dict[str, Any] | None = None,
    *,
    groups: int = GROUPS,
    iterations: int = ITERATIONS,
    bits: Bits = 32,
    whole: Collection[str] = (),
) -> Path:
    """Write weights, configuration, K and T into a folder.

    ``bits`` of the numbers of large tensors, but for those in ``whole``. 8: matrices as int8 with a scale for each row,
    other tensors as float16.
    """
    if bits not in (32, 16, 8):
        raise ValueError(f"bits={bits!r} was given, but weights are stored in 32, 16 or 8 bits")
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        as_it_is = bits == 32 or name in whole or tensor.numel() <= LARGE
        packed |= {name: tensor} if as_it_is else _packed(name, tensor, bits)
    folder = Path(folder)
    make_folder(folder)
    write_tensors(folder / WEIGHTS, packed)
    use = {"groups": groups, "iterations": iterations}
    write_json(folder / CARD, {"format": FORMAT, "model": asdict(config), **use, "card": card or {}})
    return folder


def read_model(folder: str | Path, device: torch.device | str = "cpu") -> tuple[TaggerConfig, dict[str, Tensor]]:
    """What ``write_model`` wrote; the weights still have to be held against the model (``assign_weights``)."""
    folder = Path(folder)
    config = read_model_config(folder)
    return config, _unpacked(read_tensors(folder / WEIGHTS, device), folder / WEIGHTS)


def read_model_config(folder: Path) -> TaggerConfig:
    """The configuration of the model in a folder."""
    path = folder / CARD
    content = read_json(path)
    if content.get("format") != FORMAT or not isinstance(content.get("model"), dict):
        raise ValueError(f"{path} is not a taggernet model card of format {FORMAT}: was it edited?")
    return build(TaggerConfig, content["model"], path)


def read_use(folder: str | Path) -> tuple[int, int]:
    """K and T that the model in a folder is used with."""
    path = Path(folder) / CARD
    content = read_json(path)
    try:
        groups = check_count("groups", content.get("groups", GROUPS), low=1, high=MAX_GROUPS)
        return groups, check_count("iterations", content.get("iterations", ITERATIONS), low=1, high=MAX_ITERATIONS)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_card(folder: Path) -> dict[str, Any]:
    """What the card of the model in a folder says of its training and its metrics."""
    card = read_json(folder / CARD).get("card")
    return card if isinstance(card, dict) else {}


def assign_weights(model: torch.nn.Module, tensors: dict[str, Tensor], source: object) -> None:
    """Give the model these weights as float32, or say which one does not fit."""
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    missing, extra = sorted(set(wanted) - set(tensors)), sorted(set(tensors) - set(wanted))
    if missing or extra:
        raise ValueError(
            f"{source} does not fit its card: missing {missing or 'nothing'}, unknown {extra or 'nothing'}"
        )
    for name, shape in wanted.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"{source}: {name} has shape {tuple(tensors[name].shape)}, but its card says {shape}")
        if tensors[name].dtype not in _FLOATS:
            raise ValueError(f"{source}: {name} holds {tensors[name].dtype}, expected floating-point numbers")
        if not torch.isfinite(tensors[name].float()).all():
            raise ValueError(f"{source}: {name} holds NaN or infinite values: train or copy the model again")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)


def _packed(name: str, tensor: Tensor, bits: Bits) -> dict[str, Tensor]:
    """A large tensor in 16 bits; a wide matrix, if asked for, in 8 with its scales."""
    if bits == 8 and tensor.ndim == 2 and min(tensor.shape) >= WIDE:
        scale = (tensor.abs().amax(-1, keepdim=True) / 127).clamp_min(torch.finfo(torch.float32).tiny)
        return {name: (tensor / scale).round().to(torch.int8), name + ROW_SCALE: scale}
    halved = tensor.half()
    if not torch.isfinite(halved).all():
        raise ValueError(
            f"{name} holds {tensor.abs().max().item():g}, but half precision ends at 65504: save it with bits=32"
        )
    return {name: halved}


def _unpacked(tensors: dict[str, Tensor], source: object) -> dict[str, Tensor]:
    """Matrices of int8 multiplied by their scales; everything else as it is."""
    scales = {name.removesuffix(ROW_SCALE): tensors.pop(name) for name in list(tensors) if name.endswith(ROW_SCALE)}
    for name, scale in scales.items():
        matrix = tensors.get(name)
        if matrix is None or matrix.dtype != torch.int8 or scale.shape != (*matrix.shape[:-1], 1):
            raise ValueError(f"{source}: the row scales of {name} do not fit it: copy the model again")
        tensors[name] = matrix * scale
    return tensors
