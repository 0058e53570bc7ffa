"""A toy model of each kind that the explorer's page runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from taggernet import Tagger, TaggerConfig
from taggernet.training.seeds import initial_weights

TOYS = {
    "binary-layer": TaggerConfig(shape=(10, 10), widths=(40, 20, 10), norm="layer", mean=0.28),
    "binary-batch": TaggerConfig(shape=(10, 10), widths=(40, 20), norm="batch", feedback="probabilities", top="relu"),
    "real-layer": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", offset=3.0, scale=2.0, delta_z="exact", v_start=0.3,
        heads="normalised", gate="plain",
    ),
    "real-batch-classes": TaggerConfig(shape=(28, 28), kind="real", widths=(40, 20), classes=10, v_start=0.2),
    "real-batch-head": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), classes=3, class_widths=(12,), class_input="masks",
        delta_z="algorithm", ratio_variance="reference",
    ),
    "real-image-head": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), classes=3, class_widths=(12,), class_input="masks",
        class_conv_channels=(4, 6),
    ),
    "layer-image-head": TaggerConfig(
        shape=(7, 6), widths=(30, 20), norm="layer", classes=3, class_widths=(12,), class_input="masks",
        class_conv_channels=(4,),
    ),
    "real-layer-head": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", classes=3, class_widths=(12, 8),
    ),
    "each-element-scaled": TaggerConfig(
        shape=(3, 4), kind="real", widths=(30, 20), norm="layer", group_attention=5,
        offsets=tuple(map(float, range(12))), scales=tuple(1 + number / 4 for number in range(12)),
    ),
    "colour-layer": TaggerConfig(
        shape=(8, 9), channels=3, kind="real", widths=(40, 20), norm="layer", delta_z="exact", v_start=0.2,
    ),
    "colour-batch": TaggerConfig(
        shape=(5, 6), channels=3, kind="real", widths=(30, 20), delta_z="algorithm", v_start=0.3, classes=3,
        class_widths=(12,), class_input="masks", group_attention=6,
    ),
    "bits-batch": TaggerConfig(shape=(7, 7), channels=3, widths=(40, 20)),
    "states-layer": TaggerConfig(shape=(6, 8), channels=4, kind="categorical", widths=(40, 20), norm="layer"),
    "conv-colour": TaggerConfig(
        shape=(16, 16), channels=3, kind="real", widths=(30, 10), norm="layer", v_start=0.05, noise=0.15,
        mapping="conv", conv_channels=(8, 12), patch=2, heads="normalised", group_attention=4,
    ),
    "conv-bits-batch": TaggerConfig(
        shape=(7, 14), channels=3, widths=(30, 10), mapping="conv", conv_channels=(8, 12, 10), top="relu",
    ),
    "conv-states-classes": TaggerConfig(
        shape=(9, 11), channels=5, kind="categorical", widths=(30, 10), norm="layer", mapping="conv", patch=2,
        conv_channels=(6, 9), classes=3, feedback="probabilities",
    ),
    "conv-code": TaggerConfig(
        shape=(9, 8), channels=3, widths=(30, 10), norm="layer", mapping="conv", conv_channels=(6, 9), top="relu",
        lateral=False,
    ),
    "conv-broadcast": TaggerConfig(
        shape=(9, 14), channels=3, widths=(30, 12), heads="plain", mapping="conv", conv_channels=(6, 9), patch=2,
        top="relu", lateral=False, decoder="broadcast", start_patch=3,
    ),
    "code-batch": TaggerConfig(shape=(6, 9), kind="real", widths=(30, 10), lateral=False, v_start=0.3),
    "conv-grey-head": TaggerConfig(
        shape=(6, 5), kind="real", widths=(20, 10), mapping="conv", conv_channels=(6,), classes=2, class_widths=(8,),
    ),
    "bits-posterior": TaggerConfig(shape=(6, 9), channels=2, widths=(30, 20), norm="layer", masks="posterior"),
    "states-posterior": TaggerConfig(
        shape=(6, 8), channels=4, kind="categorical", widths=(40, 20), norm="layer", masks="posterior",
    ),
    "binary-posterior": TaggerConfig(shape=(6, 9), widths=(30, 20), norm="layer", masks="posterior"),
    "colour-variant": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), masks="posterior", start_patch=2,
    ),
    "grey-values": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", start="values", offset=3.0, scale=2.0, v_start=0.3,
    ),
    "colour-values": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), start="values", tie=0.5,
    ),
    "binary-parts": TaggerConfig(shape=(6, 9), widths=(30, 20), norm="layer", start="parts", masks="posterior"),
    "grey-parts": TaggerConfig(shape=(6, 9), kind="real", widths=(30, 20), start="parts", tie=0.5),
    "colour-parts": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), norm="layer", start="parts",
    ),
    "binary-places": TaggerConfig(
        shape=(6, 9), widths=(30, 20), norm="layer", start="places", masks="posterior-result",
    ),
    "colour-places": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), norm="layer", start="places", tie=0.5, place_weight=5.0,
        start_apart=0.6,
    ),
    "colour-result": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), start="places", tie=0.0, masks="posterior-result",
        v_start=0.3, origin="scene",
    ),
    "grey-smooth": TaggerConfig(
        shape=(6, 9), kind="real", widths=(30, 20), norm="layer", start="places", start_apart=0.3, start_smooth=3,
    ),
    "colour-sizes": TaggerConfig(
        shape=(6, 9), channels=3, kind="real", widths=(30, 20), norm="layer", start="places", start_apart=0.3,
        start_sizes=True,
    ),
}  # fmt: skip
"""Every kind of input, LayerNorm and frozen BatchNorm, classes on top or beside, heads with and without convolutions,
every form of delta z, both mappings, with and without lateral connections, both decoders, groups that talk, variants of
the loop, every start."""


def toy_inputs(config: TaggerConfig, n: int) -> Any:
    """Random inputs, their channels last."""
    generator = torch.Generator().manual_seed(7)
    shape = (n, *config.input_shape)
    if config.kind == "binary":
        return torch.bernoulli(torch.full(shape, 0.3), generator=generator).numpy()
    if config.kind == "categorical":
        states = torch.randint(config.channels, shape[:-1], generator=generator)
        return torch.eye(config.channels)[states].numpy()
    scale, offset = (
        torch.tensor(each).reshape(config.input_shape) if each else one
        for each, one in ((config.scales, config.scale), (config.offsets, config.offset))
    )
    return (torch.rand(shape, generator=generator) * scale + offset).numpy()


def toy(config: TaggerConfig) -> Tagger:
    """Untrained, but with weights large enough for its groups to differ; BatchNorm frozen for three iterations."""
    torch.manual_seed(0)
    model = Tagger(config, groups=3, iterations=4)
    with torch.no_grad():
        for weights in model.parameters():
            if weights is not model.w:  # the variance stays what it was
                weights.add_(0.3 * torch.randn_like(weights))
        if config.start == "parts":
            first = initial_weights(config, [0], "cpu", toy_inputs(config, 40))
            for name in (name for name in first if name.startswith("start_")):
                model.get_parameter(name).copy_(first[name][0])
    if config.norm == "batch":
        model.freeze_statistics(toy_inputs(config, 40), 3, 3, batch_size=20)
    return model.eval()


@dataclass(frozen=True)
class Site:
    """The page, being served, and the toy models whose files lie beside it."""

    url: str
    toys: dict[str, Tagger]


Visit = Callable[..., Any]
"""Show a model, and a view of it, in a tab of the browser."""
