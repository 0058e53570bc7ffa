"""taggernet train: defaults of the recipe or the file, where models go, and what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from commands import TOY, status

import taggernet
from taggernet.cli import _parse, main
from taggernet.cli_train import train_options
from taggernet.fileio import read_json
from taggernet.recipes import RECIPES

pytestmark = pytest.mark.usefixtures("without_typecheck")


def test_train_shows_its_figures_and_where_the_models_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["train", "small", "--out", str(out), *TOY.split()]) == 0
    shown = capsys.readouterr().out
    assert "ami" in shown
    assert "cost" in shown
    assert f"models are in {out}" in shown
    assert read_json(out / "config.json")["model"]["widths"] == [24, 16, 8]
    before = (out / "metrics.jsonl").read_bytes()
    assert main(["train", "small", "--out", str(out), *TOY.split()]) == 0, "the same command goes on, here with nothing"
    assert (out / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(("name", "folder"), [("small", "runs/small"), ("mydata.npz", "runs/mydata")])
def test_train_chooses_a_folder_unless_told(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(50, 10, (60, 9))
    np.savez("mydata.npz", x=x)
    toy = [*TOY.split()] if name == "small" else [*TOY.split(), "--offset", "50", "--scale", "8"]
    assert main(["train", name, *toy]) == 0
    shown = capsys.readouterr().out
    assert f"models are in {folder}" in shown
    assert (tmp_path / folder / "seed-0" / "model.safetensors").exists()
    assert ("x scaled as (x - 50) / 8, K=4, widths 24-16-8, noise 0.3" in shown) == (name == "mydata.npz")
    other = [word.replace("24", "32") for word in toy]
    assert main(["train", name, *other]) == 2, "another configuration does not touch the run that is there"
    assert "holds a run of another configuration" in capsys.readouterr().err


def test_channels_that_the_scenes_do_not_have_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(60, 9)) * np.arange(1, 10)  # each element has units of its own
    np.save(tmp_path / "flat.npy", x)
    assert main(["train", str(tmp_path / "flat.npy"), "--channels", "3", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "the scenes have 1 channel at each of (9,) positions, but the model has channels=3" in said


def test_train_says_which_device_it_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = TOY.replace("--no-progress", "").replace("cpu", "auto" if not torch.cuda.is_available() else "cpu")
    assert main(["train", "small", "--out", str(tmp_path), *options.split()]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert f"1 seed of small on cpu ({torch.get_num_threads()} threads), products in float32" in shown


@pytest.mark.parametrize("command", ["train", "train --help"])
def test_train_lists_the_recipes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(command) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in RECIPES)


@pytest.mark.parametrize("name", ["small", "shapes", "texture-mnist-2-labels-1k", "mydata.npz"])
def test_help_of_train_shows_the_defaults_of_the_recipe_or_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("mydata.npz", x=np.random.default_rng(0).normal(50, 10, (60, 9)))
    config = taggernet.config_for(name) if name == "mydata.npz" else RECIPES[name]()
    assert status(["train", name, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for option, default in (
        ("--lr FLOAT", config.optimiser.lr),
        ("--updates INT", config.optimiser.updates),
        ("--kind {binary,real,categorical}", config.model.kind),
        ("--widths [INT [INT ...]]", " ".join(map(str, config.model.widths))),
        ("--out PATH", f"runs/{Path(name).stem}"),
    ):
        help_text = shown.split(f" {option} ")[1].split(" --")[0]
        assert f"(default: {default})" in help_text, option


@pytest.mark.parametrize(
    ("words", "training", "use"),
    [
        ("--groups 6", (6, 3), (6, 5)),
        ("--groups 6 --test-groups 5", (6, 3), (5, 5)),
        ("--groups=6 --test-groups=5", (6, 3), (5, 5)),
        ("--groups 6 --test_groups 5", (6, 3), (5, 5)),
        ("--iterations 7", (4, 7), (4, 7)),
        ("--iterations 4", (4, 4), (4, 5)),
        ("--iterations 7 --test-iterations 2", (4, 7), (4, 2)),
        ("", (4, 3), (4, 5)),
    ],
)
def test_k_and_t_of_training_hold_in_use_too(
    words: str, training: tuple[int, int], use: tuple[int, int], tmp_path: Path
) -> None:
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(size=(60, 9)))
    config = train_options(str(tmp_path / "mine.npy"), words.split(), _parse).config
    assert (config.groups, config.iterations) == training
    assert (config.test_groups, config.test_iterations) == use


def test_a_name_that_is_nearly_a_file_or_is_a_folder_gets_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("mine.npy", np.zeros((3, 3)))
    Path("runs").mkdir()
    for name, hint in (("mine", "did you mean mine.npy?"), ("runs", "to resume a run, repeat its command")):
        assert status(["train", name]) == 2
        assert hint in capsys.readouterr().err
    assert status(["train", "small", "--out", ""]) == 2
    assert "--out was given an empty value" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.npy", "runs"]
