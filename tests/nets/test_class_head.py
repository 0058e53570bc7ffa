"""The reader of classes against numpy, what it may see, and dropout on the way up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from taggernet.config.run import Config
from taggernet.nets.class_head import ClassHead, MaskConvolutions
from taggernet.nets.disturbance import Disturbance
from taggernet.nets.ladder import LadderMapping
from taggernet.nets.roles import named_roles
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.seeds import carry_over, initial_weights

N, R, C = 5, 12, 3


def reader(seed: int = 0, reads: Any = "features", norm: Any = "batch") -> ClassHead:
    """All parameters away from their start."""
    torch.manual_seed(seed)
    made = ClassHead(N, (7, 6), C, reads, norm)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def image_reader(seed: int = 0, norm: Any = "batch", channels: tuple[int, ...] = (3, 4)) -> ClassHead:
    """The same for masks of 5 x 6, through convolutions."""
    torch.manual_seed(seed)
    made = ClassHead(30, (7,), C, "masks", norm, convolutions=MaskConvolutions((5, 6), channels, norm))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def image_rows(seed: int = 0) -> Tensor:
    return torch.rand(R, 4 * 30, generator=torch.Generator().manual_seed(seed))


def rows(seed: int = 0) -> Tensor:
    return torch.randn(R, 4 * N, generator=torch.Generator().manual_seed(seed))


def oracle(made: ClassHead, h: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    weights = [layer.weight.detach().double().numpy() for layer in made.layers]  # type: ignore[union-attr]
    biases = [bias.detach().double().numpy() for bias in made.biases]
    for weight, bias in zip(weights, biases, strict=True):
        x = h @ weight
        x = (x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True)
        h = np.maximum(x + bias, 0)
    pre = made.scale.detach().double().numpy() * (x + biases[-1])
    powers = np.exp(pre - pre.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


@pytest.mark.parametrize(("norm", "axis"), [("batch", 0), ("layer", 1)])
@pytest.mark.parametrize("reads", ["features", "masks"])
def test_what_it_computes(norm: str, axis: int, reads: str) -> None:
    made, x = reader(reads=reads, norm=norm), rows()
    seen = x.double().numpy()
    if reads == "masks":
        seen = seen[:, N : 2 * N]
    np.testing.assert_allclose(made(x).detach().numpy(), oracle(made, seen, axis), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_what_its_convolutions_compute(norm: str) -> None:
    """Against torch's own convolutions, channels first, in double: 5 x 6 becomes 3 x 3 and 2 x 2."""
    made, x = image_reader(norm=norm), image_rows()
    convolutions = made.convolutions
    assert convolutions is not None
    h = x[:, 30:60].double().reshape(R, 1, 5, 6)
    for number, (conv, bias) in enumerate(zip(convolutions.convolutions, convolutions.biases, strict=True)):
        h = torch.nn.functional.conv2d(h, conv.weight.double(), stride=(1, 2, 1, 2)[number], padding=1)
        axes = (0, 2, 3) if norm == "batch" else (1, 2, 3)
        h = (h - h.mean(axes, keepdim=True)) / h.std(axes, correction=0, keepdim=True)
        h = torch.relu(h + bias.double().reshape(1, -1, 1, 1))
    assert h.shape == (R, 4, 2, 2)
    flat = h.permute(0, 2, 3, 1).reshape(R, -1).detach().numpy()
    assert flat.shape[1] == convolutions.features
    expected = oracle(made, flat, 0 if norm == "batch" else 1)
    np.testing.assert_allclose(made(x).detach().numpy(), expected, rtol=1e-3, atol=1e-6)


def test_its_convolutions_say_where_they_are_used() -> None:
    roles = named_roles(image_reader())
    uses = [roles[f"convolutions.convolutions.{number}.weight"].uses for number in range(4)]
    assert uses == [30, 9, 9, 4]
    assert roles["convolutions.convolutions.2.weight"].fan_in == 27


def test_masks_alone_know_nothing_of_the_appearance() -> None:
    made, x = reader(reads="masks"), rows()
    other = x.clone()
    other[:, :N] += 1
    other[:, 2 * N :] -= torch.rand(R, 1)
    assert torch.equal(made(x), made(other))
    other[:, N] += torch.randn(R)
    assert not torch.equal(made(x), made(other))


@pytest.mark.parametrize("reads", ["features", "masks", "images"])
def test_every_parameter_learns_and_seeds_are_alone(reads: str) -> None:
    images = reads == "images"
    models = [image_reader(seed) if images else reader(seed, reads) for seed in range(3)]
    x = torch.stack([image_rows(seed) if images else rows(seed) for seed in range(3)])
    parameters, _ = stack_module_state(models)  # type: ignore[arg-type]
    together = functional_call(models[0], parameters, (x,))
    for seed, model in enumerate(models):
        torch.testing.assert_close(together[seed], model(x[seed]), rtol=1e-3, atol=1e-5)
    models[0](x[0])[:, 0].square().sum().backward()
    for name, parameter in models[0].named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_a_model_with_a_reader_groups_as_it_did_before() -> None:
    """Phase 2 takes all of phase 1 over, so that z and m are what they were, to the last bit."""
    config = TaggerConfig(shape=(4, 4), kind="real", widths=(12, 8), norm="batch", v_start=0.3)
    with_classes = replace(config, classes=C, class_widths=(7, 6), class_input="masks")
    first = initial_weights(config, [0, 1], "cpu")
    second = carry_over(initial_weights(with_classes, [5, 6], "cpu"), first)
    assert all(torch.equal(second[name], w) for name, w in first.items())
    before, after = Tagger(config), Tagger(with_classes)
    before.load_state_dict({name: w[0] for name, w in first.items()})
    after.load_state_dict({name: w[0] for name, w in second.items()})
    x = torch.rand(6, 16)
    old, new = before.group(x, 3, 2), after.group(x, 3, 2)
    assert torch.equal(old.masks, new.masks)
    assert torch.equal(old.reconstructions, new.reconstructions)
    assert after.predict(x, 3, 2).shape == (6, C)
    torch.testing.assert_close(after.predict(x, 3, 2).sum(1), torch.ones(6))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"class_widths": (7,)}, "needs classes: set classes"), ({"classes": 3, "class_widths": (0,)}, "is out of range"),
     ({"classes": 3, "class_widths": (10**9,)}, "is out of range: give 0 to 100 integers from 1 to 100,000"),
     ({"classes": 3, "class_input": "masks"}, "set class_widths, e.g."),
     ({"classes": 3, "class_widths": (7,), "class_conv_channels": (4,)}, "reads the masks of images: set class_widths"),
     ({"shape": (9,), "classes": 3, "class_widths": (7,), "class_input": "masks", "class_conv_channels": (4,)},
      "reads the masks of images: set class_widths"),
     ({"classes": 3, "class_widths": (7,), "class_input": "masks", "class_conv_channels": (0,)}, "is out of range")],
)  # fmt: skip
def test_bad_settings_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TaggerConfig(**options)


@pytest.mark.parametrize("widths", [None, 0, 500, "500", [7, 5.5], [True]])
def test_widths_in_a_file_that_are_none(widths: Any, tmp_path: Path) -> None:
    """What a config.json may hold, past the types that tests check."""
    folder = Tagger(TaggerConfig(shape=(4, 4), widths=(8, 4), classes=3, class_widths=(7,))).save(tmp_path)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    content["model"]["class_widths"] = widths
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="class_widths"):
        Tagger.load(folder)


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=rf"class_dropout={share} is out of range: give a number from 0 to below 1"):
        Config(class_dropout=share)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_agreement_without_a_reader_or_dropout_is_refused(dropout: float) -> None:
    model = TaggerConfig(classes=3) if dropout else TaggerConfig(classes=3, class_widths=(7,))
    with pytest.raises(ValueError, match=r"class_agreement=1.0 needs .*: set class_widths, e.g. \(1000, 500\)"):
        Config(model=model, class_cost=1.0, class_dropout=dropout, class_agreement=1.0)


def test_twins_without_agreement_fresh_scenes_or_a_partner_are_refused() -> None:
    base = recipe("texture-mnist-2-best-labels-1k")
    both = replace(base.data, twins=True)
    assert replace(base, data=both).data.twins
    for changes in ({"class_agreement": 0.0}, {"data": replace(both, mode="fixed")}):
        with pytest.raises(ValueError, match="twins are for fresh scenes of TextureMNIST and class_agreement"):
            replace(base, **{"data": both, **changes})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="twins come in pairs, but batch=33: give an even number"):
        replace(base, data=both, optimiser=replace(base.optimiser, batch=33))


def test_a_reach_without_a_reader_is_refused() -> None:
    with pytest.raises(ValueError, match=r"set class_widths, e.g. \(1000, 500\)"):
        Config(class_reach="reader")


def test_distortion_of_anything_but_the_masks_of_images_is_refused() -> None:
    base = recipe("texture-mnist-2-best-labels-1k")
    alone = replace(base, class_distortion=0.5, class_dropout=0.0)
    assert alone.class_agreement, "distorted masks are something to agree on, without dropout too"
    for model in (replace(base.model, class_input="features"), replace(base.model, shape=(784,))):
        with pytest.raises(
            ValueError, match=r"class_distortion=0.5 is for a class head that reads the masks of images"
        ):
            replace(base, class_distortion=0.5, model=model)
    with pytest.raises(ValueError, match="permuted elements form none: leave one of them out"):
        replace(base, class_distortion=0.5, data=replace(base.data, permuted=True))


def test_dropout_is_for_the_way_up_alone() -> None:
    """With a reader z and m do not change; without, only the way up does: a Ladder whose upper levels say nothing."""
    torch.manual_seed(0)
    dropout = Disturbance(0.5, Key.of(0))
    with_reader = LadderMapping(N, (8, 6), reader=reader())
    plain, thinned = with_reader(rows()), with_reader(rows(), dropout)
    assert torch.equal(plain.z_pre, thinned.z_pre)
    assert torch.equal(plain.m_pre, thinned.m_pre)
    assert not torch.equal(plain.top, thinned.top)
    alone = LadderMapping(N, (8, 6))
    with torch.no_grad():
        alone.ladder.decoder[0].weight.zero_()  # type: ignore[union-attr,operator]
    plain, thinned = alone(rows()), alone(rows(), dropout)
    assert torch.equal(plain.z_pre, thinned.z_pre)
    assert not torch.equal(plain.top, thinned.top)
