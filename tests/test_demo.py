"""taggernet demo: what a person sees who has just installed the package."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from taggernet import data, demo, pretrained
from taggernet.cli import main
from taggernet.config.run import DataConfig
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.recipes import recipe
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.datasets import load_split

pytestmark = pytest.mark.usefixtures("without_typecheck")


def stand_in(folder: Path, name: str, model: Tagger, figures: dict[str, list[float]]) -> None:
    """An untrained model with a card like a shipped one's."""
    test = {"scenes": 10_000, "groups": 3, "iterations": 2, "batch": 100, "weights": "float16", "figures": figures}
    model.save(folder / name, {"recipe": name, "data": asdict(DataConfig(name=name)), "test": test}, bits=16)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights folder with a stand-in for each of the two models, and no MNIST on the machine."""
    folder = tmp_path / "weights"
    torch.manual_seed(0)
    shapes = Tagger(TaggerConfig(shape=(20, 20), widths=(16, 8), norm="layer"))
    texture = Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(16, 8), classes=10, mean=0.5))
    stand_in(folder, "shapes", shapes, {"cost": [0.2, 0.1], "ami": [0.5, 0.95]})
    stand_in(folder, "texture-mnist-2", texture, {"cost": [-1.0, -2.0], "ami": [0.5, 0.8], "error": [0.2, 0.1]})
    monkeypatch.setattr(pretrained, "SHIPPED", folder)
    monkeypatch.delenv("TAGGERNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


def row(shown: str, name: str) -> list[float]:
    """The numbers of a row of the table."""
    (line,) = [line for line in shown.splitlines() if re.match(rf"\W*{name} +│", line)]
    return [float(cell) for cell in re.findall(r"-?\d+\.\d+", line)]


@pytest.mark.usefixtures("shipped")
def test_the_shipped_model_is_measured_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--scenes", "120"]) == 0
    shown = capsys.readouterr().out
    model, scenes = Tagger.from_pretrained("shapes"), data.shapes(120, 0, split="test")
    expected = evaluate_weights(model, stack_weights([model]), scenes, groups=3, iterations=2).metrics()
    np.testing.assert_allclose(row(shown, "cost"), expected["cost"][0], atol=6e-4)
    np.testing.assert_allclose(row(shown, "AMI"), expected["ami"][0], atol=6e-4)
    assert "shapes: 120 held-out Shapes scenes, K=3" in shown
    assert "its card says cost 0.100, AMI 0.950 after 2 iterations on 10,000 test scenes" in shown
    assert "class error" not in shown
    assert "drawn in demo/shapes.png" in shown
    assert (tmp_path / "demo" / "shapes.png").stat().st_size > 5_000
    assert not (tmp_path / "demo" / "shapes.pdf").exists(), "it would take longer than the grouping"


@pytest.mark.usefixtures("shipped")
def test_without_mnist_the_small_digits_are_used_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "texture-mnist-2", "--scenes", "30", "--out", "pictures"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "TextureMNIST2 scenes of the 100 bundled test digits" in shown
    assert "class error" in shown
    assert "class error 0.100 after 2 iterations" in shown
    assert Path("pictures/texture-mnist-2.png").exists()


@pytest.mark.usefixtures("shipped")
def test_an_earlier_figure_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    Path("demo").mkdir()
    Path("demo/shapes.png").write_text("mine")
    for number in (2, 3):
        assert main(["demo", "shapes", "--scenes", "10"]) == 0
        assert f"drawn in demo/shapes-{number}.png" in capsys.readouterr().out
    assert Path("demo/shapes.png").read_text() == "mine"


def test_small_is_trained_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "small", "--updates", "40", "--scenes", "20"]) == 0
    shown = capsys.readouterr().out
    for name in ("cost before", "cost after", "AMI before", "AMI after"):
        assert len(row(shown, name)) == recipe("small").test_iterations
    assert row(shown, "cost after")[-1] < row(shown, "cost before")[-1]
    assert Path("demo/small.png").exists()


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "demo elephants",
            "no model 'elephants' is shipped with this installation: choose 'shapes', 'texture-mnist-2'",
        ),
        ("demo shapes --updates 3", "updates and seed are for 'taggernet demo small'"),
        ("demo shapes --seed 1", "updates and seed are for 'taggernet demo small'"),
        ("demo --scenes 0", "scenes=0 was given, but it must be at least 1"),
        ("demo --scenes many", "--scenes"),
    ],
)
def test_a_mistake_gets_one_sentence(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    assert len(shown.err.splitlines()) <= 2
    assert not Path("demo").exists()


def test_an_installation_without_weights_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is shown in the model's place."""
    monkeypatch.setattr(pretrained, "SHIPPED", tmp_path / "empty")
    assert main(["demo"]) == 2
    assert "no model 'shapes' is shipped with this installation: choose 'small'" in capsys.readouterr().err


def test_a_card_without_figures_gets_one_sentence(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Tagger(TaggerConfig(widths=(8, 4))).save(shipped / "bare")
    assert main(["demo", "bare"]) == 2
    assert "the card of 'bare' lacks data and test: make it with python -m paper ship" in capsys.readouterr().err


@pytest.mark.usefixtures("shipped")
def test_mnist_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole MNIST is stood in for by other digits, so that it is clear which were taken."""
    images, labels = data.fixture_digits("train")
    monkeypatch.setattr(demo, "mnist", lambda split, download: (images, labels))
    scenes, source = demo.held_out(asdict(DataConfig(name="texture-mnist-2")), 50)
    assert source == "TextureMNIST2 scenes of MNIST's test digits"
    expected = data.texture_mnist(2, "test", 0, images=images, labels=labels, n=50)
    assert np.array_equal(scenes.x, expected.x)


@pytest.mark.parametrize("name", ["tetrominoes", "sprites-texture"])
def test_held_out_scenes_in_colour_are_those_of_the_card(name: str) -> None:
    described = replace(recipe(name).data, size={"tetrominoes": 14}.get(name, 16))
    scenes, source = demo.held_out(asdict(described), 3)
    assert source == f"scenes of {described.name}"
    np.testing.assert_array_equal(scenes.x, load_split(replace(described, test=5), "test").x[:3])
