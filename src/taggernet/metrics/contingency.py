"""Contingency tables of many scenes at once: how often true label i meets predicted label j.

B scenes · N elements of a scene · R true labels · C predicted labels
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64, Shaped
from torch import Tensor

from taggernet.metrics.arrays import AnyArray, require_integers, signed, to_tensors

_DIRECT_LABELS = 32
"""Labels within a range this small index the table as they are; others are numbered per scene first."""
_MOST_CELLS = 2**24
"""Pairs of a true and a predicted label in one scene: about 2 GB while they are scored."""


@dataclass(frozen=True)
class Contingency:
    """The tables of a block of scenes, and what every agreement score needs of them."""

    table: Int64[Tensor, "B R C"]

    @property
    def true_sizes(self) -> Int64[Tensor, "B R"]:
        return self.table.sum(dim=2)

    @property
    def pred_sizes(self) -> Int64[Tensor, "B C"]:
        return self.table.sum(dim=1)

    @property
    def elements(self) -> Int64[Tensor, "B"]:
        return self.table.sum(dim=(1, 2))

    @property
    def identical(self) -> Bool[Tensor, "B"]:
        """Whether both labellings cut the scene into the same parts; true of an empty scene.

        Every part meets one part only just when no square is lost by splitting it.
        """
        together = self.table.square().sum(dim=(1, 2))
        return (together == self.true_sizes.square().sum(1)) & (together == self.pred_sizes.square().sum(1))


def block_size(device: torch.device) -> int:
    """Numbers worked on at once: what fits a core's cache on a CPU, what keeps a GPU busy otherwise."""
    return 2**18 if device.type == "cpu" else 2**25


def check_labels(true: AnyArray, pred: AnyArray, unscored: int | None) -> tuple[Tensor, Tensor]:
    """Both labellings as tensors (B, N), or one sentence on what is wrong with them."""
    if unscored is not None and (isinstance(unscored, bool) or not isinstance(unscored, int)):
        raise TypeError(
            f"unscored is {unscored!r}, but the integer label to leave out, or None to score every element, is expected"
        )
    true_labels, pred_labels = to_tensors(true=true, pred=pred)
    require_integers("true", true_labels)
    require_integers("pred", pred_labels)
    if true_labels.shape != pred_labels.shape:
        raise ValueError(
            f"true has shape {tuple(true_labels.shape)} and pred {tuple(pred_labels.shape)}, but equal "
            f"shapes (B, ...) are expected: give one predicted label per true label"
        )
    if true_labels.ndim < 2:
        raise ValueError(
            f"true and pred have shape {tuple(true_labels.shape)}, but (B, ...) with scenes first is "
            f"expected: add an axis to a single scene with true[None] and pred[None]"
        )
    return _flatten(true_labels), _flatten(pred_labels)


def _flatten(labels: Tensor) -> Tensor:
    """(B, N), in a dtype that torch can compare."""
    if labels.dtype in (torch.uint16, torch.uint32, torch.uint64):
        labels = signed("labels", labels)
    return labels.flatten(1)


def contingencies(
    true: Shaped[Tensor, "B N"], pred: Shaped[Tensor, "B N"], unscored: int | None
) -> Iterator[Contingency]:
    """The tables, a block of scenes at a time so that memory stays bounded."""
    scenes, elements = true.shape
    if true.numel() == 0:
        yield Contingency(torch.zeros(scenes, 1, 1, dtype=torch.int64, device=true.device))
        return
    true_low, rows = _label_range(true)
    pred_low, columns = _label_range(pred)
    if rows * columns > _MOST_CELLS:
        raise ValueError(
            f"a scene has up to {rows:,} true and {columns:,} predicted labels, too many to compare each with each "
            f"(at most {_MOST_CELLS:,} pairs): are these labels, or values?"
        )
    if unscored is not None and not _can_hold(true.dtype, unscored):
        unscored = None
    step = max(1, block_size(true.device) // max(elements, rows * columns))
    for part_true, part_pred in zip(torch.split(true, step), torch.split(pred, step), strict=True):
        scored = None if unscored is None else part_true != unscored
        yield _tabulate(_number(part_true, true_low), _number(part_pred, pred_low), scored, rows=rows, columns=columns)


def _label_range(labels: Shaped[Tensor, "B N"]) -> tuple[int | None, int]:
    """The lowest label (None where labels must be numbered per scene) and how many numbers are needed."""
    if labels.dtype == torch.bool:
        return 0, 2
    low, high = (int(bound) for bound in torch.aminmax(labels))
    count = high - low + 1
    if count <= _DIRECT_LABELS:
        return low, count
    step = max(1, block_size(labels.device) // labels.shape[1])
    return None, max(int(_number(part, None).max()) + 1 for part in torch.split(labels, step))


def _can_hold(dtype: torch.dtype, label: int) -> bool:
    """Whether a tensor of this dtype can hold the label at all; torch would wrap it round or raise."""
    if dtype == torch.bool:
        return label in (0, 1)
    return torch.iinfo(dtype).min <= label <= torch.iinfo(dtype).max


def _number(labels: Shaped[Tensor, "B N"], low: int | None) -> Int64[Tensor, "B N"]:
    """Labels as 0, 1, 2, ...: shifted by the lowest, or ranked among the labels of their own scene."""
    labels = labels.to(torch.int64)
    if low is not None:
        return labels - low
    ordered, order = labels.sort(dim=1)
    rank = torch.zeros_like(labels)
    rank[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(dim=1)
    return torch.empty_like(labels).scatter_(1, order, rank)


def _tabulate(
    true: Int64[Tensor, "B N"],
    pred: Int64[Tensor, "B N"],
    scored: Bool[Tensor, "B N"] | None,
    *,
    rows: int,
    columns: int,
) -> Contingency:
    """Count the pairs by one histogram; what is unscored falls into one cell more per scene."""
    cells = rows * columns
    cell = true * columns + pred
    if scored is not None:
        cell = torch.where(scored, cell, cells)
    scene = torch.arange(len(true), device=true.device)[:, None]
    counts = torch.bincount((scene * (cells + 1) + cell).flatten(), minlength=len(true) * (cells + 1))
    return Contingency(counts.view(-1, cells + 1)[:, :cells].reshape(-1, rows, columns))


def entropy(sizes: Int64[Tensor, "B L"], elements: Int64[Tensor, "B"]) -> Float64[Tensor, "B"]:
    """Entropy of a labelling in nats, from the sizes of its parts; empty parts add nothing."""
    share = sizes.to(torch.float64) / elements.clamp(min=1)[:, None]
    return -torch.xlogy(share, share).sum(dim=1)
