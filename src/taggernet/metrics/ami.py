"""Adjusted mutual information and adjusted Rand index, exact and batched over scenes.

Scores follow scikit-learn's definitions and its rules for scenes that a formula leaves open; what differs
is that one call scores every scene, and that where scikit-learn divides one rounding error by another
(an element per label) the value without rounding is returned.

B scenes · R true labels · C predicted labels · U distinct (a, b, n): two part sizes and the scene's size
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from taggernet.metrics.arrays import AnyArray, ArrayT, like
from taggernet.metrics.contingency import Contingency, block_size, check_labels, contingencies, entropy

Average = Literal["max", "arithmetic", "min", "geometric"]
"""What mutual information is compared with: a mean of the two labellings' entropies."""


def adjusted_mutual_information(
    true: ArrayT, pred: AnyArray, unscored: int | None = 0, average: Average = "max"
) -> ArrayT:
    """Agreement of two labellings of each scene: 1 for the same groups, about 0 for chance.

    ``true`` and ``pred`` are integer labels of shape (B, ...), both numpy arrays or both tensors on one
    device; the result is float64 of shape (B,), of the same kind. Elements whose true label is ``unscored``
    are left out (None: every element counts). ``average`` is the normaliser: "max" is what the paper's
    figures used, "arithmetic" is scikit-learn's default today.

    A scene whose scored elements have one true label scores 1 if the prediction has one label there, else 0;
    a scene without scored elements scores 1.
    """
    if average not in get_args(Average):
        raise ValueError(f"average is {average!r}, but one of {', '.join(get_args(Average))} is expected")
    true_labels, pred_labels = check_labels(true, pred, unscored)
    scores = [_ami(block, (average,))[0] for block in contingencies(true_labels, pred_labels, unscored)]
    return like(true, torch.cat(scores))


def agreements(true: Tensor, pred: Tensor, unscored: int | None = 0) -> dict[str, Float64[Tensor, "B"]]:
    """AMI by max (``ami``) and by ``arithmetic`` mean, and ARI, from one table per scene; see the functions of each."""
    true_labels, pred_labels = check_labels(true, pred, unscored)
    found: dict[str, list[Tensor]] = {"ami": [], "ami_arithmetic": [], "ari": []}
    for block in contingencies(true_labels, pred_labels, unscored):
        for scores, score in zip(found.values(), [*_ami(block, ("max", "arithmetic")), _ari(block)], strict=True):
            scores.append(score)
    return {name: torch.cat(scores) for name, scores in found.items()}


def adjusted_rand_index(true: ArrayT, pred: AnyArray, unscored: int | None = 0) -> ArrayT:
    """Agreement over pairs of elements: together or apart in both labellings, corrected for chance.

    Arguments and result are those of ``adjusted_mutual_information``.
    """
    true_labels, pred_labels = check_labels(true, pred, unscored)
    scores = [_ari(block) for block in contingencies(true_labels, pred_labels, unscored)]
    return like(true, torch.cat(scores))


def foreground_adjusted_rand_index(true: ArrayT, pred: AnyArray, background: int = 0) -> ArrayT:
    """The adjusted Rand index of what is not background (FG-ARI), the usual figure for scenes of objects.

    ``background`` is its true label; elements of label 0, unscored everywhere, are left out as well. Where a model puts
    the background does not matter, nor does background in an object's group. Arguments and result are otherwise those
    of ``adjusted_mutual_information``.
    """
    true_labels, pred_labels = check_labels(true, pred, background)
    objects = true_labels.long()
    objects = objects.masked_fill(objects == background, 0)
    return like(true, torch.cat([_ari(block) for block in contingencies(objects, pred_labels, 0)]))


def _ami(counts: Contingency, averages: tuple[Average, ...]) -> list[Float64[Tensor, "B"]]:
    """A score per normaliser; what costs most, the expectation by chance, is the same for all."""
    elements, true_sizes, pred_sizes = counts.elements, counts.true_sizes, counts.pred_sizes
    true_entropy, pred_entropy = entropy(true_sizes, elements), entropy(pred_sizes, elements)
    joint_entropy = entropy(counts.table.flatten(1), elements)
    expected = expected_mutual_information(true_sizes, pred_sizes, elements)

    gained = true_entropy + pred_entropy - joint_entropy - expected
    true_parts, pred_parts = (true_sizes > 0).sum(1), (pred_sizes > 0).sum(1)
    # With a label per element every deal gives the other labelling's entropy: nothing can be gained over
    # chance, and by "min" chance is already all that is possible, for which scikit-learn's rule is 1.
    all_apart = (true_parts == elements) | (pred_parts == elements)
    one_label = (true_parts == 1) | (pred_parts == 1)
    scores = []
    for average in averages:
        possible = _mean(true_entropy, pred_entropy, average) - expected
        score = torch.where(all_apart, 1.0 if average == "min" else 0.0, gained / possible)
        scores.append(score.masked_fill(one_label, 0.0).masked_fill(counts.identical, 1.0))
    return scores


def _ari(counts: Contingency) -> Float64[Tensor, "B"]:
    """Pairs counted in int64, then as float64 because products of pair counts outgrow 64 bits."""
    elements = counts.elements
    both = counts.table.square().sum(dim=(1, 2))
    true_only = counts.true_sizes.square().sum(1) - both
    pred_only = counts.pred_sizes.square().sum(1) - both
    neither = elements.square() - both - true_only - pred_only
    tp, fn, fp, tn = (pairs.to(torch.float64) for pairs in (both - elements, true_only, pred_only, neither))
    chance = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    agree = (true_only == 0) & (pred_only == 0)
    return (2 * (tp * tn - fn * fp) / torch.where(agree, 1.0, chance)).masked_fill(agree, 1.0)


def _mean(first: Float64[Tensor, "B"], second: Float64[Tensor, "B"], average: Average) -> Float64[Tensor, "B"]:
    match average:
        case "max":
            return torch.maximum(first, second)
        case "min":
            return torch.minimum(first, second)
        case "arithmetic":
            return (first + second) / 2
        case "geometric":
            return (first * second).sqrt()


def expected_mutual_information(
    true_sizes: Int64[Tensor, "B R"], pred_sizes: Int64[Tensor, "B C"], elements: Int64[Tensor, "B"]
) -> Float64[Tensor, "B"]:
    """Mean mutual information (nats) over all ways to deal the elements into parts of these sizes.

    A pair of parts adds a sum that depends on their sizes and the scene's alone (Vinh et al. 2010, Eq. 24a).
    Scenes of one kind of data share most of these triples, so each distinct one is summed once.
    """
    shape = (len(elements), true_sizes.shape[1], pred_sizes.shape[1])
    first, second = true_sizes[:, :, None].expand(shape), pred_sizes[:, None, :].expand(shape)
    small, large = torch.minimum(first, second), torch.maximum(first, second)
    triples = torch.stack([small, large, elements[:, None, None].expand(shape)]).flatten(1)
    base = int(elements.max()) + 1 if len(elements) else 1
    if base**3 >= 2**63:  # too large for one key; such scenes are few and share little anyway
        sums = _pair_sums(triples, base)
        return sums.view(shape).sum(dim=(1, 2))
    key, origin = torch.unique((triples[0] * base + triples[1]) * base + triples[2], return_inverse=True)
    sums = _pair_sums(torch.stack([key // base**2, key // base % base, key % base]), base)
    return sums[origin].view(shape).sum(dim=(1, 2))


def _pair_sums(triples: Int64[Tensor, "3 U"], base: int) -> Float64[Tensor, "U"]:
    """Sum over n of P(n) * n/N * log(N n / (a b)), n hypergeometric: the overlap of parts of sizes a <= b."""
    a, b, total = triples
    lowest = (a + b - total).clamp(min=1)
    lengths, order = (a - lowest + 1).clamp(min=0).sort(descending=True)
    # Longest first, so that a block is as wide as its first row and hardly padded.
    widths: list[int] = lengths.tolist()
    log_factorial = torch.lgamma(torch.arange(1, base + 1, dtype=torch.float64, device=a.device))
    log = torch.arange(base, dtype=torch.float64, device=a.device).log()
    sums = torch.zeros(len(order), dtype=torch.float64, device=a.device)
    done = 0
    while done < len(widths) and widths[done] > 0:
        rows = order[done : done + max(1, block_size(a.device) // widths[done])]
        sums[rows] = _block_sums(a[rows], b[rows], total[rows], widths[done], log_factorial, log)
        done += len(rows)
    return sums


def _block_sums(
    a: Int64[Tensor, "U"],
    b: Int64[Tensor, "U"],
    total: Int64[Tensor, "U"],
    width: int,
    log_factorial: Float64[Tensor, "M"],
    log: Float64[Tensor, "M"],
) -> Float64[Tensor, "U"]:
    lowest = (a + b - total).clamp(min=1)
    overlap = lowest[:, None] + torch.arange(width, device=a.device)
    beyond = overlap > a[:, None]
    overlap = torch.minimum(overlap, a[:, None])
    fixed = (log_factorial[a] + log_factorial[b]) + (log_factorial[total - a] + log_factorial[total - b])
    log_probability = (fixed - log_factorial[total])[:, None] - log_factorial[overlap]
    log_probability -= log_factorial[a[:, None] - overlap]
    log_probability -= log_factorial[b[:, None] - overlap]
    log_probability -= log_factorial[(total - a - b)[:, None] + overlap]
    information = log[overlap] + (log[total] - log[a] - log[b])[:, None]
    terms = log_probability.exp_().mul_(information).mul_(overlap).masked_fill_(beyond, 0.0)
    return terms.sum(dim=1) / total
