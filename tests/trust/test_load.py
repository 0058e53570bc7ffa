"""Many at once: one model used from several threads."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
import torch

from taggernet import Tagger, TaggerConfig
from taggernet.tag import Grouping

SOAK = os.environ.get("TAGGERNET_SOAK") == "1"


MODELS = {
    "binary, layer": TaggerConfig(shape=(8, 8), widths=(40, 20), norm="layer"),
    "binary, batch": TaggerConfig(shape=(8, 8), widths=(40, 20), norm="batch"),
    "real, classes": TaggerConfig(shape=(8, 8), kind="real", widths=(40, 20), classes=3),
}


def exact(grouping: Grouping) -> list[torch.Tensor]:
    return [part for state in grouping.history for part in state if part is not None]


@pytest.mark.parametrize("name", MODELS)
def test_group_is_safe_from_several_threads(name: str) -> None:
    """Eight threads with different K, T, seeds and batches get, bit by bit, what each gets alone."""
    torch.manual_seed(0)
    model = Tagger(MODELS[name])
    x = (np.random.default_rng(0).random((12, 8, 8)) < 0.3).astype(np.float32)
    questions: list[dict[str, Any]] = [
        {"groups": 2 + thread % 4, "iterations": 1 + thread % 5, "seed": thread, "batch_size": 3 + thread, "noisy": odd}
        for thread in range(8)
        for odd in (False, True)
    ]
    alone = [exact(model.group(x, **question)) for question in questions]
    begin, wrong = threading.Barrier(8), []

    def ask(first: int) -> None:
        begin.wait()
        for turn in range(10 if SOAK else 3):
            number = (first * 2 + turn) % len(questions)
            found = exact(model.group(x, **questions[number]))
            if not all(torch.equal(one, other) for one, other in zip(found, alone[number], strict=True)):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_grouping_in_one_thread_leaves_gradients_in_another() -> None:
    """``group`` switches gradients off for its own thread alone."""
    model = Tagger(TaggerConfig(shape=(8, 8), widths=(40, 20), norm="layer"))
    x = np.eye(64).reshape(64, 8, 8)
    done = threading.Event()

    def group_until_done() -> None:
        while not done.is_set():
            model.group(x, groups=2, iterations=1)

    other = threading.Thread(target=group_until_done)
    other.start()
    try:
        for _ in range(20):
            weights = torch.ones(3, requires_grad=True)
            (weights * 2).sum().backward()
            assert weights.grad is not None
    finally:
        done.set()
        other.join()
