"""The convolutional mapping: its parts against torch's own, rows treated alike, many seeds at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from stacked import check_seeds_equal_each_alone
from torch import Tensor, nn

from taggernet import Tagger, TaggerConfig
from taggernet.nets import ConvMapping
from taggernet.nets.norm import NormKind
from taggernet.nets.roles import named_roles
from taggernet.rng import Key

SHAPE, CHANNELS = (7, 9), 3
P = SHAPE[0] * SHAPE[1]
N = P * CHANNELS


def mapping(norm: NormKind = "layer", patch: int = 1, **options: Any) -> ConvMapping:
    torch.manual_seed(0)
    return ConvMapping(SHAPE, CHANNELS, (4, 6), (8, 5), norm, patch=patch, eps=1e-3, **options)


def test_without_lateral_connections_a_row_passes_through_its_code() -> None:
    """What comes out has no more directions than the topmost level is wide."""
    net, row = mapping(top="relu", lateral=False).double(), rows(1).double()

    def out(x: Tensor) -> Tensor:
        mapped = net(x)
        return torch.cat([mapped.z_pre, mapped.m_pre], dim=-1)

    jacobian = torch.autograd.functional.jacobian(out, row).reshape(N + P, -1)
    assert 1 <= torch.linalg.matrix_rank(jacobian, rtol=1e-5) <= 5
    open_net = mapping(top="relu").double()
    jacobian = torch.autograd.functional.jacobian(lambda x: open_net(x).z_pre, row).reshape(N, -1)
    assert torch.linalg.matrix_rank(jacobian, rtol=1e-5) > 5


def rows(count: int, seed: int = 1) -> Tensor:
    return torch.randn(count, 2 * N + 2 * P, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("patch", [1, 2])
@pytest.mark.parametrize("heads", ["plain", "normalised"])
def test_shapes_and_gradients_of_every_parameter(patch: int, heads: Any) -> None:
    """At the start a combinator hands on nothing from above, so its numbers are drawn here."""
    net = mapping("batch", patch, heads=heads)
    for name, parameter in net.named_parameters():
        if name.endswith(".a"):
            nn.init.normal_(parameter)
    mapped = net(rows(10))
    assert [tuple(part.shape) for part in mapped] == [(10, N), (10, P), (10, 5)]
    (mapped.z_pre.pow(3).sum() + mapped.m_pre.pow(3).sum()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_row_depends_on_itself_alone() -> None:
    net, x = mapping("layer", 2), rows(5)
    whole = net(x)
    for one, part in zip(net(x[3:4]), whole, strict=True):
        torch.testing.assert_close(one, part[3:4])


def test_rows_keep_their_order_with_batch_norm() -> None:
    net, x = mapping("batch"), rows(6)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    for moved, part in zip(net(x[order]), net(x), strict=True):
        torch.testing.assert_close(moved, part[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_stacked_seeds_equal_each_alone(norm: NormKind) -> None:
    net = mapping(norm, 2, heads="normalised" if norm == "batch" else "plain")
    check_seeds_equal_each_alone(net, torch.stack([rows(4, 1), rows(4, 2)]))


def test_far_positions_reach_each_other() -> None:
    """Through the Ladder at the top: its level sees the whole image."""
    net, x = mapping(), rows(1).requires_grad_()
    for part in (*net.combine, *net.ladder.combine):
        nn.init.normal_(part.a)  # type: ignore[arg-type]
    (gradient,) = torch.autograd.grad(net(x).m_pre[0, 0], x)
    assert (gradient[0].split([N, P, N, P])[1] != 0).all()


def test_kernels_start_from_their_fan_in_and_layers_count_from_the_input() -> None:
    roles = named_roles(mapping())
    assert roles["up.1.weight"].fan_in == 4 * 9
    layers = {name: roles[name].layer for name in ("up.0.weight", "up.1.weight", "down.0.weight", "combine.0.a")}
    assert layers == {"up.0.weight": 0, "up.1.weight": 1, "down.0.weight": 1, "combine.0.a": 0}
    assert roles["ladder.encoder.0.weight"].layer == 2


CONFIG = TaggerConfig(
    SHAPE, "real", (8, 5), norm="layer", channels=CHANNELS, mapping="conv", conv_channels=(4, 6), norm_eps=1e-3
)


def test_groups_and_iterations_are_free_and_groups_symmetric() -> None:
    torch.manual_seed(0)
    model = Tagger(CONFIG)
    x = torch.rand(2, *SHAPE, CHANNELS)
    for groups, iterations in ((2, 1), (5, 3)):
        assert model.group(x, groups, iterations).masks.shape == (2, groups, *SHAPE)
    start = model.start(2, 3, Key.of(0))
    order = torch.tensor([2, 0, 1])
    *_, last = model.iterate(x.flatten(1), start, 2)
    *_, moved = model.iterate(x.flatten(1), start.map(lambda part: part[:, order]), 2)
    torch.testing.assert_close(moved.m, last.m[:, order], rtol=1e-4, atol=1e-5)


def test_a_convolutional_model_is_saved_with_its_configuration(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Tagger(replace(CONFIG, patch=2)), torch.rand(3, *SHAPE, CHANNELS)
    again = Tagger.load(model.save(tmp_path))
    assert again.config == model.config
    assert torch.equal(again.group(x).masks, model.group(x).masks)


def test_frozen_statistics_make_results_independent_of_the_batch() -> None:
    torch.manual_seed(0)
    model = Tagger(replace(CONFIG, norm="batch", patch=2), groups=2, iterations=2)
    x = torch.rand(6, *SHAPE, CHANNELS)
    model.freeze_statistics(x)
    torch.testing.assert_close(model.group(x[:1]).masks, model.group(x).masks[:1], rtol=1e-4, atol=1e-5)


def test_classes_are_read_at_the_top_or_beside_it() -> None:
    torch.manual_seed(0)
    x = torch.rand(3, *SHAPE, CHANNELS)
    for config in (replace(CONFIG, classes=4), replace(CONFIG, classes=4, class_widths=(6,), class_input="masks")):
        torch.testing.assert_close(Tagger(config).predict(x).sum(-1), torch.ones(3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (63,)}, r"needs images of shape \(height, width\), but shape=\(63,\): choose mapping='ladder'"),
        ({"shape": (3, 7, 9)}, r"or set channels if one dimension is that of colour"),
        ({"conv_channels": (4,) * 5}, r"5 levels, which with patch=1 need images of at least 16 x 16, but shape="),
        ({"patch": 8}, r"give fewer levels, a smaller patch, or mapping='ladder'"),
        ({"patch": 0}, r"patch=0 is out of range: give an integer from 1 to 64"),
    ],
)
def test_a_mapping_that_does_not_fit_the_shape_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)
