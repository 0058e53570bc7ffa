"""What training must know of a parameter beside its value, declared by the modules that own it.

A module with a method ``parameter_roles`` speaks for all parameters inside it; others hand on what their children say.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from torch import nn

TOP = sys.maxsize
"""The topmost layer, however many there are."""


@dataclass(frozen=True)
class ParameterRole:
    """By default that of a bias, a scale or another number per feature, next to the input."""

    fan_in: int | None = None
    """Of a matrix or a convolution's kernel: how many inputs each output sums. It starts from N(0, 1/fan_in), and
    products may read it in bfloat16. None: neither."""
    layer: int = 0
    """The layer it belongs to, counted from 0 next to the input."""
    uses: int = 1
    """Of a matrix or a kernel: by how many vectors it is multiplied for each row, the positions of a convolution."""
    is_variance: bool = False
    """Whether it sets the variance of the Gaussian groups."""


Roles = dict[nn.Parameter, ParameterRole]


@runtime_checkable
class DeclaresRoles(Protocol):
    def parameter_roles(self) -> Roles: ...


def roles_of(module: nn.Module) -> Roles:
    """The roles of all parameters of a module."""
    return module.parameter_roles() if isinstance(module, DeclaresRoles) else inner_roles(module)


def inner_roles(module: nn.Module) -> Roles:
    """What its children declare, and the default for its own parameters."""
    found = {parameter: ParameterRole() for parameter in module.parameters(recurse=False)}
    for child in module.children():
        found |= roles_of(child)
    return found


def in_layer(layer: int, *parts: nn.Module | nn.Parameter, uses: int = 1) -> Roles:
    """The roles of these parts, placed in a layer and used so many times as often."""
    found: Roles = {}
    for part in parts:
        found |= {part: ParameterRole()} if isinstance(part, nn.Parameter) else roles_of(part)
    return {parameter: replace(role, layer=layer, uses=uses * role.uses) for parameter, role in found.items()}


def named_roles(model: nn.Module) -> dict[str, ParameterRole]:
    """The role of every parameter, by its name in the state dict."""
    found = roles_of(model)
    return {name: found[parameter] for name, parameter in model.named_parameters()}
