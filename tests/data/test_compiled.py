"""The device generators inside a compiled step: one graph, no break, no warning, the same scenes.

In a process of its own, as the shape checks that the other tests run under cannot be traced.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from taggernet.data import fixture_digits, fresh_shapes, fresh_texture_mnist, placements, texture_bank
from taggernet.rng import Key

table, bank = placements(), texture_bank()
images, labels = map(torch.from_numpy, fixture_digits("test"))

def shapes(word, start):
    return fresh_shapes(Key(word), 8, start=start, table=table)

def one_digit(word, start):
    return fresh_texture_mnist(Key(word), images, labels, bank, 4, 1, start=start)

def two_digits(word, start):
    return fresh_texture_mnist(Key(word), images, labels, bank, 4, 2, start=start)

word, start = Key.of([1, 2]).word, torch.tensor(16)
for function in (shapes, one_digit, two_digits):
    compiled = torch.compile(function, fullgraph=True, backend="eager")(word, start)
    for one, other in zip(compiled, function(word, start), strict=True):
        assert torch.allclose(one, other), function
    assert all(part.shape[:1] == (2,) for part in compiled)
print("same")
"""


@pytest.mark.slow
def test_generators_compile_without_a_break() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "same"
