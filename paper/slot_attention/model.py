"""The autoencoder of Slot Attention with the sizes published for Tetrominoes and Multi-dSprites.

# B batch · K slots · P positions · C channels · D width of a slot

Departures from the paper: the attention itself is the package slot-attention, whose inputs are as wide as its slots
(64, not 32) and whose projections have biases. Noise of the slots comes from torch's own generator.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Decoded(NamedTuple):
    """What each slot draws, and where: the masks sum to one over the slots."""

    images: Float[Tensor, "B K P C"]
    masks: Float[Tensor, "B K P"]

    @property
    def whole(self) -> Float[Tensor, "B P C"]:
        return (self.images * self.masks[..., None]).sum(1)


class SlotAutoencoder(nn.Module):
    """Images (B, P * C) from -1 to 1, position-major, through slots and back."""

    def __init__(
        self, shape: tuple[int, int], channels: int, *, slots: int, iterations: int = 3, width: int = 32, dim: int = 64
    ) -> None:
        super().__init__()
        self.shape, self.channels, self.slots, self.dim = shape, channels, slots, dim
        self.encoder = _convolutions(channels, width, layers=4)
        self.encoder_position = PositionEmbedding(shape, width)
        self.features = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.attention: nn.Module = _slot_attention()(num_slots=slots, dim=dim, iters=iterations, hidden_dim=128)
        self.decoder_position = PositionEmbedding(shape, dim)
        self.decoder = _convolutions(dim, width, layers=3)
        self.head = nn.Conv2d(width, channels + 1, 3, padding=1)

    def forward(self, x: Float[Tensor, "B N"], slots: int | None = None) -> Decoded:
        """With as many slots as asked, or as trained."""
        pictures = x.reshape(-1, *self.shape, self.channels).permute(0, 3, 1, 2)
        encoded = self.encoder_position(self.encoder(pictures)).flatten(2).transpose(1, 2)
        with torch.autocast(x.device.type, enabled=False):  # attention is little work, and sums over all positions
            found: Tensor = self.attention(self.features(encoded.float()), num_slots=slots)
        count = found.shape[1]
        drawn = self.head(self.decoder[1:](self._first_drawn(found.flatten(0, 1)))).float()
        drawn = drawn.unflatten(0, (-1, count)).flatten(-2)  # (B, K, C + 1, P)
        return Decoded(drawn[:, :, :-1].transpose(-1, -2), drawn[:, :, -1].softmax(1))

    def _first_drawn(self, slots: Float[Tensor, "R D"]) -> Float[Tensor, "R F H W"]:
        """What the decoder's first convolution makes of slots that are broadcast and have positions added.

        A slot is the same everywhere, so all of it is linear: what the positions give, and what each number of a slot
        adds at each position, which differs only near the border. This is half of the decoder's work otherwise.
        """
        first = self.decoder[0]
        assert isinstance(first, nn.Conv2d)
        nothing = torch.zeros(1, self.dim, *self.shape, device=slots.device)
        positions: Tensor = first(self.decoder_position(nothing))
        ones = torch.ones(1, 1, *self.shape, device=slots.device)
        kernels = first.weight.flatten(0, 1).unsqueeze(1)  # (F D, 1, 5, 5)
        each = nn.functional.conv2d(ones, kernels, padding=first.padding).reshape(-1, self.dim, *self.shape)
        drawn = torch.einsum("rd,fdhw->rhwf", slots, each)
        return drawn.permute(0, 3, 1, 2) + positions


class PositionEmbedding(nn.Module):
    """Adds a linear map of the distances to the four borders."""

    grid: Tensor

    def __init__(self, shape: tuple[int, int], width: int) -> None:
        super().__init__()
        down, right = torch.meshgrid(*(torch.linspace(0, 1, side) for side in shape), indexing="ij")
        self.register_buffer("grid", torch.stack([down, right, 1 - down, 1 - right], dim=-1), persistent=False)
        self.linear = nn.Linear(4, width)

    def forward(self, features: Float[Tensor, "B D H W"]) -> Float[Tensor, "B D H W"]:
        embedded: Tensor = self.linear(self.grid).permute(2, 0, 1)
        return (features + embedded).contiguous(memory_format=torch.channels_last)  # what the fast kernels want


def _convolutions(channels: int, width: int, layers: int) -> nn.Sequential:
    sizes = [channels, *[width] * layers]
    pairs = [(nn.Conv2d(a, b, 5, padding=2), nn.ReLU()) for a, b in pairwise(sizes)]
    return nn.Sequential(*(part for pair in pairs for part in pair))


def _slot_attention() -> Any:
    try:
        from slot_attention import SlotAttention
    except ImportError as error:
        raise ImportError(
            f"Slot Attention needs a package that is not installed ({error.name}): pip install -e '.[slots]'"
        ) from error
    return SlotAttention
