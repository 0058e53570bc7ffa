"""The command line as a person meets it: what it prints, where, and with which exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import TOY, status

import taggernet
from taggernet import data
from taggernet.cli import main

pytestmark = pytest.mark.usefixtures("without_typecheck")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, unchecked: Callable[[], AbstractContextManager[None]]) -> Path:
    """A finished run of two seeds."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    with unchecked():
        assert main(["train", "small", "--out", str(folder), *TOY.split(), "--seeds", "2"]) == 0
    return folder


# --- what works ---------------------------------------------------------------------------------------------------


def test_evaluate_with_other_groups_iterations_and_objects(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    command = ["evaluate", str(run), "--groups", "2", "--iterations", "3", "--objects", "1", "--json", str(file)]
    assert main([*command, "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "K=2, 1 objects" in shown
    record = json.loads(file.read_text())
    assert (record["groups"], record["iterations"], record["objects"]) == (2, 3, 1)
    assert record["seeds"] == ["seed-0", "seed-1"]
    for name in ("cost", "ami", "ami_arithmetic", "ari"):
        assert np.asarray(record["figures"][name]).shape == (2, 3)
        assert name.replace("_", " ") in shown
    assert f"{np.mean(record['figures']['cost'], axis=0)[-1]:.3f} ± " in shown


def test_evaluate_makes_the_folder_of_its_file_first(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder" / "x.json"
    assert main(["evaluate", str(run), "--json", str(out)]) == 0
    assert out.is_file()
    (tmp_path / "file").touch()
    assert status(["evaluate", "nowhere", "--json", str(tmp_path / "file" / "x.json")]) == 2


def test_evaluate_replaces_a_file_on_request(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text("mine")
    assert main(["evaluate", str(run), "--json", str(file), "--device", "cpu", "--overwrite"]) == 0
    assert json.loads(file.read_text())["groups"] == 3


def test_explore_opens_the_shipped_shapes_model_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr("taggernet.explorer.launch", lambda model, **options: opened.append((model, options["host"])))
    assert main(["explore"]) == main(["explore", "runs/mine"]) == 0
    assert opened == [("shapes", "127.0.0.1"), ("runs/mine", "127.0.0.1")]


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_data_writes_a_file_that_loads(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"scenes{suffix}"
    assert main(["data", "shapes", "--out", str(out), "--n", "7", "--seed", "3", "--split", "valid"]) == 0
    assert f"wrote 7 scenes to {out}" in capsys.readouterr().out
    assert main(["data", "shapes", "--out", str(tmp_path / "new" / "folder" / out.name), "--n", "2"]) == 0
    expected = data.shapes(7, 3, split="valid")
    assert np.array_equal(data.load(out).x, expected.x)
    assert status(["data", "shapes", "--out", str(out), "--n", "7"]) == 2, "a file is not replaced unasked"
    assert status(["data", "shapes", "--out", str(out), "--n", "5", "--overwrite"]) == 0
    assert len(data.load(out)) == 5


def test_data_writes_scenes_in_colour(tmp_path: Path) -> None:
    options = ["--n", "3", "--size", "16", "--objects", "3", "--variant", "texture"]
    assert main(["data", "sprites", "--out", str(tmp_path / "sprites.npz"), *options]) == 0
    expected = data.sprites(3, objects=3, size=16, variant="texture")
    with np.load(tmp_path / "sprites.npz") as found:
        assert np.array_equal(found["x"], expected.x)
        assert np.array_equal(found["groups"], expected.groups)
    assert main(["data", "tetrominoes", "--out", str(tmp_path / "pieces.npz"), "--n", "2"]) == 0
    with np.load(tmp_path / "pieces.npz") as found:
        assert np.array_equal(found["x"], data.tetrominoes(2).x)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("tetrominoes", "--min-objects", "2"), ("shapes", "--depth", "random"), ("texture-mnist-2", "--size", "20")],
)
def test_what_a_data_set_does_not_have_is_refused(
    name: str, option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["data", name, "--out", str(tmp_path / "no.npz"), option, value]) == 2
    assert f"{option} was given, but {name} scenes have no such choice: leave it out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["", "--help", "-h"])
def test_help_lists_the_commands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(command) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("train", "evaluate", "data", "demo"))


@pytest.mark.parametrize(
    ("command", "shown"), [("", "table1|table2|figure4|figure5"), ("table2 --rows top", "table2 --rows top")]
)
def test_reproduce_says_where_the_papers_experiments_are(
    command: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(f"reproduce {command}") == 2
    assert capsys.readouterr().err == (
        "taggernet: the paper's tables and figures are made from a clone of the repository: "
        f"run 'python -m paper {shown}' there\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("--version") == 0
    assert capsys.readouterr().out == f"{taggernet.__version__}\n"


# --- what a person gets wrong -------------------------------------------------------------------------------------


def test_cuda_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert status(["train", "small", "--out", str(tmp_path), "--device", "cuda"]) == 2
    assert "this machine has no CUDA: choose auto or cpu" in capsys.readouterr().err


def test_a_run_that_diverges_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["train", "small", "--out", str(tmp_path), *TOY.split(), "--lr", "1e20"]) == 2
    shown = capsys.readouterr().err
    assert "at update" in shown
    assert "Traceback" not in shown


def test_an_unfinished_run_has_nothing_to_evaluate(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text((run / "config.json").read_text())
    assert status(["evaluate", str(tmp_path)]) == 2
    assert "holds no finished model: run 'taggernet train' on it until it ends" in capsys.readouterr().err


def test_debug_shows_where(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no recipe 'smal'"):
        main(["train", "smal", "--out", str(tmp_path), "--debug"])
    with pytest.raises(ValueError, match="banana"):
        main(["--debug", "train", "small", "--out", str(tmp_path), "--lr", "banana"])


def test_python_m_taggernet() -> None:
    """As its own process: the exit status is the command's, and --debug prints a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(Path(taggernet.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "taggernet", *command.split()],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for command in ("train smal", "train smal --debug")
    ]  # fmt: skip
    plain, debug = (process.communicate(timeout=120) for process in started)
    assert [process.returncode for process in started] == [2, 1]
    assert plain == ("", "taggernet: there is no recipe 'smal': did you mean small?\n")
    assert "Traceback" in debug[1]
