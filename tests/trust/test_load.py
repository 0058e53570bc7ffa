"""Many at once: the page under clients that ask without pause, and one model used from several threads.

``make soak`` asks in full (16 clients, 1,000 requests); the numbers in docs/reliability.md come from
benchmarks/page_load.py, which asks in the same way.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from taggernet import Tagger, TaggerConfig
from taggernet.tag import Grouping

SOAK = os.environ.get("TAGGERNET_SOAK") == "1"
CLIENTS, REQUESTS, MOST_GROWTH = (16, 1000, 4 << 20) if SOAK else (4, 48, 32 << 20)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the server's memory from /proc")
def test_the_page_under_load(tmp_path: Path) -> None:
    """No error, bounded memory, nothing asked of another machine."""
    pytest.importorskip("gradio", reason="the page needs gradio: pip install 'taggernet[web]'")
    asked = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "page_load.py")))
    model = Tagger(TaggerConfig(shape=(10, 10), widths=(40, 20, 10), norm="layer", mean=0.28))
    reached = tmp_path / "reached"
    with asked.served(
        str(model.save(tmp_path / "model")), tmp_path, OMP_NUM_THREADS="1", TAGGERNET_REACHED_LOG=str(reached)
    ) as page:
        found = asked.load(page, CLIENTS, REQUESTS)
    summary = found.summary()
    print(summary)
    assert not found.errors, found.errors[0]
    assert summary["answered"] == REQUESTS
    assert found.growth < MOST_GROWTH, summary
    assert summary["median_ms"] <= summary["p95_ms"] <= 30_000
    assert "Traceback" not in (tmp_path / "server.log").read_text()
    assert not reached.exists(), reached.read_text()


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
