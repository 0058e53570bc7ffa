"""A model on disk: model.safetensors beside a config.json that a person can read. Never a pickle."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from taggernet.config.model import TaggerConfig, as_float
from taggernet.fileio import make_folder, read_json, read_tensors, write_json, write_tensors
from taggernet.nets.ladder import LadderMapping

if TYPE_CHECKING:
    from taggernet.tagger import Tagger

WEIGHTS, CARD = "model.safetensors", "config.json"
FORMAT = 1
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def model_config(content: Any, source: object) -> TaggerConfig:
    """The TaggerConfig in a card, with every field checked by name and type."""
    if not isinstance(content, dict):
        raise ValueError(f"{source}: model must be an object, not {type(content).__name__}")
    known = {field.name: field for field in fields(TaggerConfig)}
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ValueError(f"{source} has unknown model fields {unknown}: expected some of {sorted(known)}")
    values: dict[str, Any] = {}
    for name, value in content.items():
        default = known[name].default
        if isinstance(default, tuple):
            if not isinstance(value, list | tuple) or any(type(v) is not int for v in value):
                raise ValueError(f"{source}: field {name}={value!r} must be a list of integers")
            value = tuple(value)
        elif isinstance(default, float) and type(value) is int:
            value = as_float(name, value)
        if type(value) is not type(default):
            raise ValueError(f"{source}: field {name}={value!r} must be a {type(default).__name__}")
        values[name] = value
    try:
        return TaggerConfig(**values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def save_model(model: Tagger, folder: str | Path, card: dict[str, Any] | None = None, *, half: bool = False) -> Path:
    if not isinstance(model.mapping, LadderMapping):
        raise TypeError(
            f"the mapping is a {type(model.mapping).__name__}, but a card only describes a Ladder: "
            "keep model.state_dict() with write_tensors instead"
        )
    tensors = model.state_dict()
    if half:
        tensors = {name: _halved(name, tensor) if tensor.numel() > 1000 else tensor for name, tensor in tensors.items()}
    folder = Path(folder)
    make_folder(folder)
    write_tensors(folder / WEIGHTS, tensors)
    write_json(folder / CARD, {"format": FORMAT, "model": asdict(model.config), "card": card or {}})
    return folder


def _halved(name: str, tensor: Tensor) -> Tensor:
    halved = tensor.half()
    if not torch.isfinite(halved).all():
        raise ValueError(
            f"{name} holds {tensor.abs().max().item():g}, but half precision ends at 65504: save it with half=False"
        )
    return halved


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> Tagger:
    from taggernet.tagger import Tagger

    folder = Path(folder)
    content = read_json(folder / CARD)
    if content.get("format") != FORMAT or not isinstance(content.get("model"), dict):
        raise ValueError(f"{folder / CARD} is not a taggernet model card of format {FORMAT}: was it edited?")
    with torch.device("meta"):
        model = Tagger(model_config(content["model"], folder / CARD))
    tensors = read_tensors(folder / WEIGHTS, device)
    assign_weights(model, tensors, folder / WEIGHTS)
    return model.to(device).eval()


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
