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
from taggernet.data import fresh_sprites, fresh_tetrominoes
from taggernet.data.sprites import sprite_table
from taggernet.data.tetrominoes import piece_table
from taggernet.rng import Key

table, bank = placements(), texture_bank()
pieces, sprite = piece_table(14), sprite_table(16)
images, labels = map(torch.from_numpy, fixture_digits("test"))

def shapes(word, start):
    return fresh_shapes(Key(word), 8, start=start, table=table)

def one_digit(word, start):
    return fresh_texture_mnist(Key(word), images, labels, bank, 4, 1, start=start)

def two_digits(word, start):
    return fresh_texture_mnist(Key(word), images, labels, bank, 4, 2, start=start)

def tetrominoes(word, start):
    return fresh_tetrominoes(Key(word), 4, size=14, start=start, table=pieces)

def sprites(word, start):
    return fresh_sprites(Key(word), 4, size=16, start=start, table=sprite)

def textured_sprites(word, start):
    return fresh_sprites(Key(word), 4, size=16, start=start, table=sprite, variant="texture")

word, start = Key.of([1, 2]).word, torch.tensor(16)
functions = (shapes, one_digit, two_digits, tetrominoes, sprites, textured_sprites)
for function in functions:
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
