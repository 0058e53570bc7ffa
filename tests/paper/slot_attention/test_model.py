"""The autoencoder: its layout, its slots, and what is said where the package is missing."""

from __future__ import annotations

import sys

import pytest
import torch

from paper.slot_attention.model import SlotAutoencoder

B, SHAPE, C = 2, (5, 7), 3
P = SHAPE[0] * SHAPE[1]


@pytest.fixture
def model() -> SlotAutoencoder:
    torch.manual_seed(0)
    return SlotAutoencoder(SHAPE, C, slots=4, width=8, dim=16)


def decode(model: SlotAutoencoder, x: torch.Tensor, slots: int | None = None):  # type: ignore[no-untyped-def]
    torch.manual_seed(1)
    return model(x, slots)


def test_masks_share_out_every_position(model: SlotAutoencoder) -> None:
    x = torch.rand(B, P * C)
    decoded = decode(model, x)
    assert decoded.images.shape == (B, 4, P, C)
    torch.testing.assert_close(decoded.masks.sum(1), torch.ones(B, P))
    by_hand = sum(decoded.images[:, k] * decoded.masks[:, k, :, None] for k in range(4))
    torch.testing.assert_close(decoded.whole, by_hand)


def test_the_number_of_slots_is_free(model: SlotAutoencoder) -> None:
    assert decode(model, torch.rand(B, P * C), slots=6).masks.shape == (B, 6, P)


def test_channels_and_positions_are_laid_out_as_in_the_input(model: SlotAutoencoder) -> None:
    """A decoder that only knows its position: what it draws moves with rows and columns, channels stay last."""
    with torch.no_grad():
        for convolution in (model.decoder[0], model.decoder[2], model.decoder[4], model.head):
            torch.nn.init.dirac_(convolution.weight)
            convolution.bias.zero_()
        model.decoder_position.linear.weight.copy_(torch.eye(16, 4))
        model.decoder_position.linear.bias.zero_()
        model.attention.register_forward_hook(lambda *of: torch.zeros_like(of[-1]))
        images = decode(model, torch.rand(B, P * C)).images
    row, col = torch.meshgrid(torch.arange(5) / 4, torch.arange(7) / 6, indexing="ij")
    expected = torch.stack([row, col, 1 - row], dim=-1).reshape(P, C)
    torch.testing.assert_close(images, expected.expand(B, 4, P, C))


def test_the_first_convolution_is_that_of_slots_laid_out_over_the_image(model: SlotAutoencoder) -> None:
    """With its gradients, borders included."""
    slots = torch.randn(6, 16, requires_grad=True)
    weights = [slots, *model.decoder[0].parameters(), *model.decoder_position.parameters()]
    laid_out = slots[:, :, None, None].expand(-1, -1, *SHAPE)
    expected, found = model.decoder[0](model.decoder_position(laid_out)), model._first_drawn(slots)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    random = torch.randn_like(found)
    for ours, theirs in zip(
        *(torch.autograd.grad((of * random).sum(), weights) for of in (found, expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_the_encoder_reads_positions_in_their_order(model: SlotAutoencoder) -> None:
    """The first convolution, of 5 x 5, sees an element up to two positions away."""
    x = torch.zeros(1, P * C)
    x[0, (0 * SHAPE[1] + 6) * C + 1] = 1.0  # the top right corner
    seen: list[torch.Tensor] = []
    model.encoder[0].register_forward_hook(lambda *of: seen.append(of[-1]))
    decode(model, x)
    decode(model, torch.zeros(1, P * C))
    changed = (seen[0] - seen[1]).abs().sum((0, 1)) > 0
    assert changed.nonzero().min(0).values.tolist() == [0, 4]
    assert changed.nonzero().max(0).values.tolist() == [2, 6]


def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "slot_attention", None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[slots\]'"):
        SlotAutoencoder(SHAPE, C, slots=4)
