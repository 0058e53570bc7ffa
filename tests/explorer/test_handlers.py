"""Questions from outside: refused in one sentence, or answered."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

import pytest
from page_client import group


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((0, 0.0, 9, 5, 0), "groups=9 is out of range: give an integer from 2 to 8"),
        ((0, 0.0, 1000000, 5, 0), "give an integer from 2 to 8"),
        ((0, 0.0, 3, 1000000, 0), "iterations=1000000 is out of range: give an integer from 1 to 10"),
        ((0, 0.0, 3, 0, 0), "give an integer from 1 to 10"),
        ((0, 0.9, 3, 5, 0), "noise=0.9 is out of range"),
        ((-1, 0.0, 3, 5, 0), "give an integer from 0 to 999"),
        (("../../etc/passwd", 0.0, 3, 5, 0), "is not an integer"),
        ((0, 0.0, [3], 5, 0), "groups=[3] is not an integer"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_one_sentence(server_port: int, asked: Any, sentence: str) -> None:
    answer = group(server_port, *asked)
    assert "event: error" in answer
    assert sentence in answer
    assert "Traceback" not in answer


def test_questions_queue_and_all_are_answered(server_port: int) -> None:
    wrong: list[str] = []
    seconds: list[float] = []

    def client(first: int) -> None:
        for scene in range(first, first + 4):
            began = time.monotonic()
            answer = group(server_port, scene, 0.1, 3, 5, 0)
            seconds.append(time.monotonic() - began)
            if "event: complete" not in answer or "tn-stage" not in answer:
                wrong.append(answer[:200])

    clients = [threading.Thread(target=client, args=(10 * number,)) for number in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert not wrong, wrong[0]
    assert len(seconds) == 32
    assert statistics.median(seconds) < 10
