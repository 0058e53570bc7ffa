"""Tetrominoes against their description, brute force, and the streams they are drawn from."""

from __future__ import annotations

import hashlib
import sys
from itertools import product

import numpy as np
import pytest
import torch

from taggernet.data import fresh_tetrominoes, tetrominoes
from taggernet.data.tetrominoes import COLOURS, KINDS, draw_pieces, piece_table, pieces
from taggernet.rng import Key

RGB = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}
RGB |= {"yellow": (1, 1, 0), "magenta": (1, 0, 1), "cyan": (0, 1, 1)}


def connected(piece: np.ndarray) -> bool:
    cells = {tuple(cell) for cell in np.argwhere(piece)}
    reached, border = set(), {min(cells)}
    while border:
        reached |= border
        border = {(r + a, c + b) for r, c in border for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))} & cells - reached
    return reached == cells


def test_pieces_are_all_connected_sets_of_four_squares() -> None:
    every = set()
    for height, width in product(range(1, 5), repeat=2):
        for marks in product((0, 1), repeat=height * width):
            piece = np.array(marks).reshape(height, width)
            if piece.sum() == 4 and piece.any(0).all() and piece.any(1).all() and connected(piece):
                every.add(str(piece.tolist()))
    assert len(every) == len(KINDS) == 19
    assert {str(piece.tolist()) for piece in pieces().values()} == every


@pytest.mark.parametrize("size", [14, 35])
def test_scenes_equal_brute_force(size: int) -> None:
    scenes, side = tetrominoes(200, seed=3, size=size), size // 7
    assert (scenes.x.shape, scenes.x.dtype) == ((200, size, size, 3), np.uint8)
    assert (scenes.shape, scenes.channels, scenes.kind, scenes.background) == ((size, size), 3, "binary", 0)
    shapes = [piece.repeat(side, 0).repeat(side, 1) for piece in pieces().values()]
    for i in range(200):
        cover = np.zeros((3, size, size), int)
        x = np.zeros((size, size, 3), int)
        for j in range(3):
            kind, row, col, colour = (scenes.details[name][i, j] for name in ("kinds", "rows", "cols", "colours"))
            height, width = shapes[kind].shape
            cover[j, row : row + height, col : col + width] = shapes[kind]
            x[cover[j] > 0] = RGB[COLOURS[colour]]
        assert cover.sum(0).max() == 1
        assert cover.sum((1, 2)).tolist() == [4 * side**2] * 3
        assert np.array_equal(scenes.groups[i], cover.sum(0) * (cover.argmax(0) + 1))
        assert np.array_equal(scenes.x[i], x)


def test_overlaps_are_known_for_every_pair_and_place() -> None:
    table, canvas = piece_table(14), 40
    rng = np.random.default_rng(0)
    shapes = [piece.repeat(2, 0).repeat(2, 1) for piece in pieces().values()]
    for _ in range(2000):
        a, b = rng.integers(19, size=2)
        down, right = rng.integers(-8, 9, size=2)
        cover = np.zeros((canvas, canvas), int)
        for shape, row, col in ((shapes[a], 16, 16), (shapes[b], 16 + down, 16 + right)):
            cover[row : row + shape.shape[0], col : col + shape.shape[1]] += shape
        assert table.clash[a, b, down + 8, right + 8].item() == (cover.max() > 1)


def test_every_kind_and_colour_is_as_likely_for_the_first_piece() -> None:
    scenes = tetrominoes(4000, size=14)
    for name, choices in (("kinds", 19), ("colours", 6)):
        share = np.bincount(scenes.details[name][:, 0], minlength=choices) / 4000
        assert abs(share - 1 / choices).max() < 4 * (1 / choices / 4000) ** 0.5
    assert np.array_equal(np.unique(scenes.details["rows"]), np.arange(13))  # a lying piece is two rows high


def test_a_scene_without_a_free_place_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["taggernet.data.tetrominoes"], "TRIES", 1)
    table = piece_table(14)
    kinds, rows, cols, _ = draw_pieces(Key.of(0), 200, 3, 14, table)
    replaced = torch.stack([(a == b).all(-1) for a, b in zip((kinds, rows, cols), table.instead, strict=True)]).all(0)
    assert 0.7 < replaced.float().mean() < 0.95  # one draw in seven has no overlap
    for at in (rows, cols):
        assert at.max() < 14


def test_splits_seeds_and_lengths() -> None:
    drawn = {split: tetrominoes(100, 3, size=14, split=split).x for split in ("train", "valid", "test")}
    assert len({row.tobytes() for x in drawn.values() for row in x}) > 290
    assert np.array_equal(tetrominoes(600, 3, size=14).x[:100], drawn["train"])
    assert not np.array_equal(tetrominoes(100, 4, size=14).x, drawn["train"])


def test_a_batch_of_seeds_and_an_offset_equal_each_seed_alone() -> None:
    together = fresh_tetrominoes(Key.of([5, 6]).fold("tetrominoes", "train"), 7, size=14, start=torch.tensor(30))
    for row, seed in enumerate((5, 6)):
        alone = tetrominoes(37, seed, size=14)
        assert np.array_equal(together[0][row].numpy(), alone.x[30:].reshape(7, 196, 3))
        assert np.array_equal(together[1][row].numpy(), alone.groups[30:].reshape(7, 196))


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 is out of range"),
        ({"n": 1, "objects": 4}, "objects=4 is out of range: give an integer from 1 to 3"),
        ({"n": 1, "size": 20}, "size=20 is not a multiple of 7: tetrominoes have 14, 21, 28, 35"),
        ({"n": 1, "split": "dev"}, "split='dev' is not known"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tetrominoes(**arguments)


def test_golden_checksum() -> None:
    scenes = tetrominoes(200)
    assert hashlib.md5(scenes.x.tobytes() + scenes.groups.tobytes()).hexdigest() == "fffca6f8d843fb7b60360a668a8d4357"
