"""The options of the commands, and what their help says."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools

import pytest
from commands import status

from taggernet.cli_options import Data, Demo, Evaluate, Explore, Export

pytestmark = pytest.mark.usefixtures("without_typecheck")


@pytest.mark.parametrize(
    ("command", "words"),
    [("train small --help", ("--lr", "Learning rate", "--seeds", "How many models", "--widths", "--out", "--noise")),
     ("evaluate --help", ("--groups", "--iterations", "--objects", "sprites: objects in every scene")),
     ("data --help", ("texture-mnist-2", "--overwrite"))],
)  # fmt: skip
def test_help_explains_the_options(command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(word in shown for word in words), shown


@pytest.mark.parametrize("command", [Demo, Evaluate, Data, Export, Explore])
def test_help_shows_every_option_with_its_explanation(command: type, capsys: pytest.CaptureFixture[str]) -> None:
    """The docstring below each field, read from the source."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(command)).body if isinstance(node, ast.ClassDef))
    explained = {
        field.target.id: note.value.value
        for field, note in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr)
    }
    assert set(explained) == {field.name for field in dataclasses.fields(command)}
    assert status(f"{command.__name__.lower()} --help") == 0
    shown = "".join(capsys.readouterr().out.replace("│", " ").split())
    for name, text in explained.items():
        assert "".join(text.split()) in shown, name
