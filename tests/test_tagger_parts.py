"""From a configuration to the parts of a model."""

from __future__ import annotations

import pytest

from taggernet import TaggerConfig
from taggernet.nets.ladder import Combinator
from taggernet.tag import BernoulliGroups, BitFlip, GaussianGroups, GaussianNoise
from taggernet.tagger_parts import corruption_for, likelihood_for, mapping_for


def test_binary_inputs_flip_and_real_ones_get_noise() -> None:
    binary, real = TaggerConfig(noise=0.1), TaggerConfig(kind="real", noise=0.3, delta_z="exact")
    assert (corruption_for(binary), likelihood_for(binary)) == (BitFlip(0.1), BernoulliGroups(0.1, "logits"))
    assert (corruption_for(real), likelihood_for(real)) == (GaussianNoise(0.3), GaussianGroups(0.3, "exact"))


@pytest.mark.parametrize(
    ("options", "widths", "top", "reader"),
    [
        ({}, (8, 4), "softmax", False),
        ({"top": "relu"}, (8, 4), "relu", False),
        ({"classes": 10, "top": "relu"}, (8, 4, 11), "softmax", False),
        ({"classes": 10, "class_widths": (6,)}, (8, 4), "softmax", True),
    ],
)
def test_where_the_classes_are(options: dict, widths: tuple[int, ...], top: str, reader: bool) -> None:  # type: ignore[type-arg]
    mapping = mapping_for(TaggerConfig(shape=(3, 3), widths=(8, 4), **options))
    assert (mapping.ladder.widths, mapping.ladder.top, mapping.reader is not None) == (widths, top, reader)


@pytest.mark.parametrize(
    ("options", "gate", "normalised"),
    [
        ({}, "plain", True),
        ({"kind": "real"}, "stable", True),
        ({"kind": "real", "gate": "plain"}, "plain", True),
        ({"norm": "layer"}, "plain", False),
        ({"norm": "layer", "heads": "normalised"}, "plain", True),
    ],
)
def test_what_auto_means(options: dict, gate: str, normalised: bool) -> None:  # type: ignore[type-arg]
    mapping = mapping_for(TaggerConfig(shape=(3, 3), widths=(8, 4), **options))
    assert {part.gate for part in mapping.ladder.combine if isinstance(part, Combinator)} == {gate}
    assert (mapping.norm_z is not None) == normalised
