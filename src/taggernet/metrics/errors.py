"""Classification errors per scene, for scenes of one digit (top-1) and of two (top-2).

B scenes · C classes
"""

from __future__ import annotations

import torch
from torch import Tensor

from taggernet.metrics.arrays import AnyArray, ArrayT, like, require_integers, to_tensors


def top1_error(probabilities: ArrayT, classes: AnyArray) -> ArrayT:
    """1 where the highest class is not the true one, else 0; float64 of shape (B,).

    ``probabilities`` are (B, C), of which only the order matters; ``classes`` are the true ones, (B,).
    Among equal probabilities the lowest class ranks first.
    """
    scores, truth = _check(probabilities, classes, digits=None)
    return like(probabilities, (_ranked(scores)[:, 0] != truth).to(torch.float64))


def top2_error(probabilities: ArrayT, classes: AnyArray) -> ArrayT:
    """The share (0, 1/2 or 1) of the two true classes missing from the two highest; float64 of shape (B,).

    ``classes`` are (B, 2). A scene that shows one class twice gets its top-1 error instead: the second
    highest class has nothing to be right about there.
    """
    mean: ArrayT = errors_by_digit(probabilities, classes).mean(1)
    return mean


def errors_by_digit(probabilities: ArrayT, classes: AnyArray) -> ArrayT:
    """The two parts of ``top2_error``, whose mean it is: 1 where that class is missing; float64 of shape (B, 2)."""
    scores, truth = _check(probabilities, classes, digits=2)
    ranked = _ranked(scores)
    missing = (ranked[:, None, :2] != truth[:, :, None]).all(dim=2)
    top1 = ranked[:, :1] != truth
    return like(probabilities, torch.where(truth[:, :1] == truth[:, 1:], top1, missing).to(torch.float64))


def classification_error(probabilities: ArrayT, classes: AnyArray) -> ArrayT:
    """Top-1 error for classes of shape (B,) or (B, 1), top-2 error for (B, 2)."""
    _, truth = to_tensors(probabilities=probabilities, classes=classes)
    if truth.ndim == 2 and truth.shape[1] == 1:
        return top1_error(probabilities, classes[:, 0])
    if truth.ndim == 2 and truth.shape[1] == 2:
        return top2_error(probabilities, classes)
    if truth.ndim == 1:
        return top1_error(probabilities, classes)
    raise ValueError(
        f"classes have shape {tuple(truth.shape)}, but (B,), (B, 1) or (B, 2) is expected: "
        f"errors are defined for one or two objects per scene"
    )


def _ranked(scores: Tensor) -> Tensor:
    """The two highest classes in order; a stable sort so that ties fall alike on every device."""
    return scores.sort(dim=1, descending=True, stable=True).indices[:, :2]


def _check(probabilities: AnyArray, classes: AnyArray, digits: int | None) -> tuple[Tensor, Tensor]:
    scores, truth = to_tensors(probabilities=probabilities, classes=classes)
    require_integers("classes", truth)
    if not scores.is_floating_point():
        raise TypeError(
            f"probabilities have dtype {scores.dtype}, but floating point is expected: "
            f"give the classifier's output, not its decision"
        )
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            f"probabilities have shape {tuple(scores.shape)}, but (B, C) with C >= 2 is expected: "
            f"give one row per scene and one column per class"
        )
    expected = (len(scores),) if digits is None else (len(scores), digits)
    if tuple(truth.shape) != expected:
        raise ValueError(
            f"classes have shape {tuple(truth.shape)}, but {expected} is expected for probabilities of shape "
            f"{tuple(scores.shape)}: use top1_error for one class per scene and top2_error for two"
        )
    if bool(scores.isnan().any()):
        raise ValueError(
            "probabilities contain NaN, but numbers that can be ranked are expected: check whether training diverged"
        )
    truth = truth.to(torch.int64)
    if truth.numel() and not 0 <= int(truth.min()) <= int(truth.max()) < scores.shape[1]:
        raise ValueError(
            f"classes range from {int(truth.min())} to {int(truth.max())}, but 0 to {scores.shape[1] - 1} "
            f"is expected for {scores.shape[1]} classes: number the classes from 0"
        )
    return scores, truth
