"""What modules declare of their parameters, against what the names of a Ladder's parameters say."""

from __future__ import annotations

import re

import pytest
from torch import nn

from taggernet.nets import Linear, MLPMapping
from taggernet.nets.convolution import Conv
from taggernet.nets.linear import per_feature
from taggernet.nets.roles import TOP, ParameterRole, in_layer, named_roles
from taggernet.tagger import Tagger, TaggerConfig

CONFIGS = {
    "binary": TaggerConfig(shape=(4, 4), widths=(12, 8, 6)),
    "classes on top": TaggerConfig(shape=(4, 4), widths=(12, 8, 6, 5), classes=3),
    "class head": TaggerConfig(shape=(4, 4), kind="real", widths=(12, 8), classes=3, class_widths=(7,)),
}


def layer_by_name(name: str) -> int:
    """Encoder, bias and decoder number i belong to layer i + 1, combinator number i to layer i."""
    if name.endswith("top_scale") or ".reader." in name:
        return TOP
    found = re.search(r"\.ladder\.(encoder|bias|decoder|combine)\.(\d+)", name)
    return 0 if found is None else int(found[2]) + (found[1] != "combine")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_parameters_of_a_tagger(config: TaggerConfig) -> None:
    model = Tagger(config)
    parameters, roles = dict(model.named_parameters()), named_roles(model)
    assert list(roles) == list(parameters)
    for name, role in roles.items():
        assert role.fan_in == (parameters[name].shape[0] if name.endswith(".weight") else None), name
        assert role.layer == layer_by_name(name), name
        assert role.is_variance == (name == "w"), name
    assert len({role.layer for role in roles.values()}) >= len(config.widths)


def test_modules_without_roles_hand_on_those_inside() -> None:
    model = nn.ModuleDict({"deep": nn.Sequential(Linear(3, 2), Conv(4, 5))})
    model.register_parameter("own", per_feature(2, 0.0))
    roles = named_roles(model)
    assert roles == {
        "own": ParameterRole(),
        "deep.0.weight": ParameterRole(fan_in=3),
        "deep.1.weight": ParameterRole(fan_in=36),
    }
    matrices = {name for name, role in named_roles(MLPMapping(3, (5, 4))).items() if role.fan_in}
    assert matrices == {"hidden.0.weight", "hidden.1.weight", "out.weight"}


def test_a_place_in_a_layer_keeps_the_rest_of_a_role() -> None:
    linear, bias = Linear(3, 2), per_feature(2, 0.0)
    assert in_layer(4, linear, bias) == {
        linear.weight: ParameterRole(fan_in=3, layer=4),
        bias: ParameterRole(layer=4),
    }
