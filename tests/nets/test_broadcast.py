"""The broadcast decoder: against a plain 1 x 1 convolution, rows treated alike, many seeds at once, in a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stacked import check_seeds_equal_each_alone
from torch import Tensor, nn
from torch.func import functional_call

from taggernet import Tagger, TaggerConfig
from taggernet.export import export, session
from taggernet.nets import ConvMapping
from taggernet.nets.broadcast import WAVES, BroadcastLadder, coordinates
from taggernet.nets.norm import NormKind
from taggernet.nets.roles import named_roles
from taggernet.rng import Key

SIZE, FEATURES, WIDTHS = (3, 5), 6, (8, 4)
SHAPE, CHANNELS = (7, 9), 3
P = SHAPE[0] * SHAPE[1]
N = P * CHANNELS


def broadcast(norm: NormKind = "layer") -> BroadcastLadder:
    torch.manual_seed(0)
    return BroadcastLadder(SIZE, FEATURES, WIDTHS, norm, "stable", "relu", 1e-3)


def mapping(norm: NormKind = "layer", **options: Any) -> ConvMapping:
    torch.manual_seed(0)
    options = {"top": "relu", "lateral": False, "decoder": "broadcast", "eps": 1e-3} | options
    return ConvMapping(SHAPE, CHANNELS, (4, 6), WIDTHS, norm, **options)


def rows(count: int, seed: int = 1) -> Tensor:
    return torch.randn(count, 2 * N + 2 * P, generator=torch.Generator().manual_seed(seed))


def test_a_code_is_drawn_like_a_1_x_1_convolution_of_code_and_coordinates() -> None:
    net, h = broadcast(), torch.randn(4, 3 * 5 * FEATURES)
    nn.init.normal_(net.bias)
    drawn, top = net(h)
    hidden = torch.relu(nn.functional.layer_norm(h @ net.W_h.weight, (WIDTHS[0],), eps=1e-3) + net.bias_h)
    code, expected_top = net.ladder(hidden)
    conv = nn.Conv2d(WIDTHS[0] + 2 * WAVES, FEATURES, 1)
    with torch.no_grad():
        conv.weight.copy_(torch.cat([net.W_u.weight, net.W_c.weight]).T[:, :, None, None])
        conv.bias.copy_(net.bias.flatten())  # type: ignore[union-attr]
    tiled = code[:, :, None, None].expand(-1, -1, *SIZE)
    where = coordinates(*SIZE).reshape(1, *SIZE, -1).permute(0, 3, 1, 2).expand(4, -1, -1, -1)
    expected = torch.relu(conv(torch.cat([tiled, where], dim=1))).permute(0, 2, 3, 1).flatten(1)
    torch.testing.assert_close(drawn, expected)
    torch.testing.assert_close(top, expected_top)


def test_the_way_down_is_a_plain_stack_of_enlargements_and_convolutions() -> None:
    net, x = mapping(patch=2), rows(2)
    drawn: list[Tensor] = []
    net.ladder.register_forward_hook(lambda _, given, out: drawn.append(out[0]))
    mapped = net(x)
    h = drawn[0].reshape(2, *net.sizes[-1], 6).permute(0, 3, 1, 2)
    for conv, size, side in ((net.down[0], net.sizes[0], 2), (net.out, SHAPE, 2)):
        h = nn.functional.conv2d(nn.Upsample(scale_factor=side)(h), conv.weight, padding=1)  # type: ignore[arg-type]
        h = h[..., : size[0], : size[1]]
        if conv is not net.out:
            bias = net.combine[0].bias.reshape(-1, 1, 1)  # type: ignore[union-attr,operator]
            h = torch.relu(nn.functional.layer_norm(h, h.shape[1:], eps=1e-3) + bias)
    torch.testing.assert_close(mapped.z_pre, h[:, :CHANNELS].permute(0, 2, 3, 1).flatten(1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mapped.m_pre, h[:, CHANNELS].flatten(1), rtol=1e-4, atol=1e-5)


def test_groups_cannot_share_an_image_like_a_chessboard() -> None:
    """Where the code is drawn alike everywhere, so is the image, but for its rim."""
    net = mapping(patch=2)
    nn.init.zeros_(net.ladder.W_c.weight)  # type: ignore[arg-type,union-attr]
    inner = net(rows(2)).m_pre.reshape(2, *SHAPE)[:, 3:-3, 3:-3]
    torch.testing.assert_close(inner, inner[:, :1, :1].expand_as(inner))


@pytest.mark.parametrize("size", [(4, 4), (3, 7), (8, 5)])
def test_coordinates_tell_positions_apart_and_turn_with_the_image(size: tuple[int, int]) -> None:
    where = coordinates(*size).reshape(*size, 2, WAVES)
    assert len(where.reshape(-1, 2 * WAVES).unique(dim=0)) == size[0] * size[1]
    torch.testing.assert_close(where[..., 0, :], where[:, :1, 0].expand(*size, WAVES))  # rows do not know of columns
    signs = (-1.0) ** torch.arange(1, WAVES + 1)
    torch.testing.assert_close(where.flip(0)[..., 0, :], where[..., 0, :] * signs)
    torch.testing.assert_close(coordinates(*size[::-1]).reshape(*size[::-1], 2, WAVES).transpose(0, 1).flip(-2), where)


def test_all_that_is_drawn_passes_through_the_code() -> None:
    net, row = mapping().double(), rows(1).double()
    jacobian = torch.autograd.functional.jacobian(lambda x: torch.cat(net(x)[:2], dim=-1), row).reshape(N + P, -1)
    assert 1 <= torch.linalg.matrix_rank(jacobian, rtol=1e-5) <= WIDTHS[-1]


@pytest.mark.parametrize("patch", [1, 2])
def test_shapes_and_gradients_of_every_parameter(patch: int) -> None:
    """7 x 9 positions divide neither by two nor by four."""
    net = mapping("batch", patch=patch, attention=3)
    nn.init.normal_(net.ladder.ladder.attention.gate)  # closed at the start
    mapped = net(rows(12), groups=3)
    assert [tuple(part.shape) for part in mapped] == [(12, N), (12, P), (12, WIDTHS[-1])]
    (mapped.z_pre.pow(3).sum() + mapped.m_pre.pow(3).sum()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_row_depends_on_itself_alone() -> None:
    net, x = mapping(), rows(5)
    for one, part in zip(net(x[3:4]), net(x), strict=True):
        torch.testing.assert_close(one, part[3:4])


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_stacked_seeds_equal_each_alone(norm: NormKind) -> None:
    net = mapping(norm, patch=2)
    check_seeds_equal_each_alone(net, torch.stack([rows(4, 1), rows(4, 2)]))


def test_products_follow_the_precision_of_their_weights() -> None:
    """As in training: the matrices in bfloat16, the rest in float32."""
    net, x = mapping("batch"), rows(8)
    half = {name: w.to(torch.bfloat16) if named_roles(net)[name].fan_in else w for name, w in net.named_parameters()}
    for ours, exact in zip(functional_call(net, half, (x,))[:2], net(x)[:2], strict=True):
        assert ours.dtype == torch.float32
        assert 0 < (ours - exact).abs().max() < 0.1 * exact.abs().max()


def test_layers_count_from_the_input() -> None:
    roles = named_roles(mapping())
    names = ("up.1.weight", "ladder.bias", "ladder.W_h.weight", "ladder.W_c.weight", "ladder.ladder.encoder.0.weight")
    assert [roles[name].layer for name in names] == [1, 1, 2, 2, 3]
    assert roles["ladder.W_c.weight"].fan_in == 2 * WAVES


CONFIG = TaggerConfig(
    SHAPE, "real", WIDTHS, norm="batch", heads="plain", channels=CHANNELS, mapping="conv", conv_channels=(4, 6),
    norm_eps=1e-3, lateral=False, top="relu", decoder="broadcast",
)  # fmt: skip


def model_of(config: TaggerConfig) -> Tagger:
    torch.manual_seed(0)
    return Tagger(config, groups=3, iterations=2)


def test_groups_are_symmetric_and_the_model_is_saved(tmp_path: Path) -> None:
    model, x = model_of(replace(CONFIG, norm="layer")), torch.rand(2, *SHAPE, CHANNELS)
    start, order = model.start(2, 3, Key.of(0)), torch.tensor([2, 0, 1])
    *_, last = model.iterate(x.flatten(1), start, 2)
    *_, moved = model.iterate(x.flatten(1), start.map(lambda part: part[:, order]), 2)
    torch.testing.assert_close(moved.m, last.m[:, order], rtol=1e-4, atol=1e-5)
    again = Tagger.load(model.save(tmp_path))
    assert again.config == model.config
    assert torch.equal(again.group(x, 5, 1).masks, model.group(x, 5, 1).masks)


def test_frozen_statistics_make_results_independent_of_the_batch_and_onnx_agrees(
    tmp_path: Path, unchecked: Any
) -> None:
    model, x = model_of(CONFIG), torch.rand(6, *SHAPE, CHANNELS)
    model.freeze_statistics(x)
    out = model.group(x)
    torch.testing.assert_close(model.group(x[:1]).masks, out.masks[:1], rtol=1e-4, atol=1e-5)
    with unchecked():
        whole, _ = export(model, tmp_path / "model.onnx")
    start = model.start(6, 3, Key.of(0).fold("masks")).m_pre.numpy()
    masks, _ = session(whole, 1).run(None, {"x": x.flatten(1).numpy(), "start": start})
    assert np.ptp(masks) > 0.05
    np.testing.assert_allclose(masks.reshape(out.masks.shape), out.masks, rtol=0, atol=1e-4)


@pytest.mark.parametrize("changes", [{"lateral": True}, {"mapping": "ladder"}])
def test_other_mappings_have_no_such_decoder(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"decoder='broadcast' is for mapping='conv' with lateral=False, but mapping="):
        replace(CONFIG, **changes)
