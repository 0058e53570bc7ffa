"""What the groups of TextureMNIST scenes say they show, against what they hold.

# S seeds · n scenes · K groups · N elements · D digits per scene · C classes

A group holds the layer (background, first or second digit: the lower, the upper) that most of its scored elements
belong to, or nothing if it wins no scored element. It answers with its most probable class, 'no class' included.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from paper.failure_analysis import contingency, flat_labels
from taggernet.evaluation import Evaluation

ANSWERS = ("the digit it holds", "another digit of the scene", "a digit that is not there", "no class")


def holders(digits: int) -> list[str]:
    """What a group may hold, in the order of the rows of ``answer_counts``."""
    return ["background", *(["the digit"] if digits == 1 else ["lower digit", "upper digit"]), "nothing"]


def answer_counts(
    true: UInt8[Tensor, "n N"],
    labels: UInt8[Tensor, "n N"],
    answers: Int[Tensor, "n K"],
    classes: Int[Tensor, "n D"],
    no_class: int,
) -> Int[Tensor, "holders answers"]:
    """How many groups that hold this (``holders``) gave that answer (``ANSWERS``), over all scenes of one model."""
    digits, groups = classes.shape[1], answers.shape[1]
    parts = contingency(true, labels[None], digits + 1, groups)[0]  # (n, D + 1, K)
    held = parts.argmax(1).masked_fill(parts.sum(1) == 0, digits + 1)  # (n, K)
    padded = torch.nn.functional.pad(classes, (1, 1), value=-1)  # background and nothing have no class
    there = (answers[..., None] == classes[:, None]).any(-1)
    answer = torch.where(there, 1, 2)
    answer[answers == padded.gather(1, held)] = 0
    answer[answers == no_class] = 3
    counts = torch.bincount((held * len(ANSWERS) + answer).flatten(), minlength=(digits + 2) * len(ANSWERS))
    return counts.reshape(digits + 2, len(ANSWERS))


def answers_record(evaluation: Evaluation) -> dict[str, Any]:
    """The counts of every seed after the last iteration, ready for JSON."""
    scenes, answers, probabilities = evaluation.scenes, evaluation.group_classes, evaluation.probabilities
    if answers is None or probabilities is None or scenes.classes is None:
        raise ValueError("the groups of this model, or its scenes, have no classes: evaluate one that was trained with")
    classes = torch.from_numpy(scenes.classes).reshape(len(scenes), -1).to(answers.device)
    true, _ = flat_labels(scenes, answers.device)
    no_class = probabilities.shape[-1]
    pairs = zip(evaluation.labels[:, -1], answers[:, -1], strict=True)
    return {
        "holders": holders(classes.shape[1]),
        "answers": list(ANSWERS),
        "counts": [answer_counts(true, labels, said, classes, no_class).tolist() for labels, said in pairs],
    }
