"""The command line: every error is one or two lines on stderr and status 2, without a traceback unless --debug."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mischief
import numpy as np
import pytest
import torch

import taggernet
from taggernet import cli
from taggernet.cli import main
from taggernet.errors import folded, sentence

pytestmark = pytest.mark.usefixtures("without_typecheck")


@pytest.fixture
def here(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, a file that is none of ours, a bomb and a trap."""
    monkeypatch.chdir(tmp_path)
    Path("run").symlink_to(run)
    Path("a-file").write_text("hello")
    Path("folder.npz").mkdir()
    return tmp_path


def status(command: str) -> int:
    try:
        return main(command.split())
    except SystemExit as end:
        return int(end.code or 0)


MISTAKES = {
    "--nonsense": "there is no command '--nonsense': choose one of train",
    "train --nonsense": "there is no recipe '--nonsense'",
    "train shapes-bset --out out": "did you mean shapes-best?",
    "train texture-mnist-3 --out out": "did you mean texture-mnist-2?",
    "train small --out": "Missing value for argument '--out'",
    "train small --out out --groups 1000000": "groups=1000000 must be at most 64",
    "train small --out out --iterations 1000000": "iterations=1000000 must be at most 1,000",
    "train small --out out --iterations -1": "iterations=-1 must be at least 1",
    "train small --out out --test-groups 1000000": "test_groups=1000000 must be at most 64",
    "train small --out out --seeds 1000000": "seeds=1000000 must be at most 1,000",
    "train small --out out --batch 1000000000": "batch=1000000000 must be at most 1,000,000",
    "train small --out out --train 0": "train=0 must be at least 1",
    "train small --out out --valid 0": "valid=0 must be at least 1 for shapes",
    "train small --out out --test -3": "test=-3 must not be negative",
    "train small --out out --labels -3": "labels=-3 must not be negative",
    "train small --out out --objects 99": "only about 6 can be seen on 12 x 12",
    "train small --out out --size 100000": "size=100000 was given, but it must be between 7 and 128",
    "train small --out out --style odd": "style='odd' is not known: choose one of 'paper', 'small'",
    "train small --out out --name shapez": "shapez does not exist: check the path",
    "train small --out out --lr nan": "lr=nan must be positive and finite",
    "train small --out out --lr inf": "lr=inf must be positive and finite",
    "train small --out out --beta1 2": "beta1=2.0 is not a decay",
    "train small --out out --eps -1": "eps=-1.0 must not be negative",
    "train small --out out --clip nan": "clip=nan must not be negative, and finite",
    "train small --out out --warmup -1": "warmup=-1 must not be negative",
    "train small --out out --evaluate-every -1": "evaluate_every=-1 must not be negative",
    "train small --out out --checkpoint-every -1": "checkpoint_every=-1 must not be negative",
    "train small --out out --shape 5 5": "the scenes have shape (12, 12), but the model's inputs have (5, 5)",
    "train small --out out --shape 0": "shape=(0,) is not an input shape",
    "train small --out out --noise nan": "is not a bit-flip probability",
    "train small --out out --class-cost 1": "class_cost is set but the model has no classes",
    "train small --out out --class-cost 1 --classes 10": "labels=0: say how many training scenes have labels",
    "train small --out out --first-seed 99999999999999999999": "first_seed=99999999999999999999 must be at most",
    "train small --out a-file": "a-file cannot be written (File exists): choose another --out",
    "train small --out a-file/run": "a-file/run cannot be written (Not a directory): choose another --out",
    "train a-file --out out": "has the ending '', expected .npz, .npy or .h5",
    "train none.npz --out out": "none.npz does not exist: check the path",
    "train folder.npz --out out": "folder.npz is not a file",
    "train bomb.npz --out out": "unpacks to 100,059,539,874 bytes, the limit is",
    "train trap.npz --out out": "nothing is ever unpickled",
    "evaluate run extra": "Unrecognized options: extra",
    "evaluate run --group 4": "Unrecognized options: --group, 4: did you mean --groups?",
    "evaluate run --groups": "Missing value for argument '--groups'",
    "evaluate run --groups 4.5": "--groups: invalid literal for int() with base 10: '4.5'",
    "evaluate run --groups 1000000": "groups=1000000 was given, but it must be between 1 and 64",
    "evaluate run --iterations 1000000": "iterations=1000000 was given, but it must be between 1 and 1000",
    "evaluate run --objects 99": "objects=99 was given, but of so many only about 6 can be seen on 12 x 12",
    "evaluate run --objects 1000": "objects=1000 must be at most 255",
    "evaluate run --device meta": "device 'meta' cannot train or evaluate: choose auto, cpu",
    "evaluate a-file": "a-file holds no run (config.json is missing)",
    "data shapes --out none/x.npz --n 3": "the folder none does not exist: create it first",
    "data shapes --out a-file/x.npz --n 3": "the folder a-file does not exist",
    "data shapes --out folder.npz --n 3 --overwrite": "folder.npz cannot be written (Is a directory)",
    "data shapes --out x.npz --n 1000000000000": "need too much memory: make at most 10,737,418 at a time",
    "data shapes --out x.npz --seed 1e3": "--seed: invalid literal for int() with base 10: '1e3'",
    "data texture-mnist-1 --out x.npz --n 0": "n=0 was given, but it must be at least 1",
    "export run --to x.txt": "x.txt does not end in .onnx: name the file like model.onnx",
    "export run --to none/x.onnx": "the folder none does not exist: create it first",
    "export run --to x.onnx --iterations 1000000": "iterations=1000000 is out of range: give a number from 1 to 1000",
    "export no-such-model --to x.onnx": "there is no model 'no-such-model'",
    "export a-file --to x.onnx": "a-file is a file: name the folder that holds model.safetensors and config.json",
    "explore no-such-model": "there is no model 'no-such-model'",
    "explore run --port 99999": "port=99999 does not exist: choose one from 1 to 65535",
    "explore run --port abc": "--port: invalid literal for int() with base 10: 'abc'",
    "explore run --host 192.0.2.1": "the page cannot listen on 192.0.2.1",
    "reproduce table9": "made from a clone of the repository: run 'python -m paper table9' there",
    "demo small --out a-file/demo": "a-file/demo cannot be written (Not a directory)",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_wrong_command_is_two_lines_and_status_2(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "bomb" in command:
        mischief.bomb(here / "bomb.npz")
    if "trap" in command:
        mischief.pack(here / "trap.npz", x=mischief.TRAP)
    assert status(command) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("taggernet: ")
    assert len(shown.err.splitlines()) <= 2, shown.err
    assert MISTAKES[command] in shown.err
    assert "Traceback" not in shown.err
    assert not (here / "out" / "config.json").exists(), "corrected, the command must not find half a run"
    assert not (here / mischief.MARK).exists()


def test_figures_are_shown_though_their_file_cannot_be_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("evaluate run --json a-file/figures.json") == 2
    shown = capsys.readouterr()
    assert "ami" in shown.out
    assert "a-file/figures.json cannot be written (Not a directory)" in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("x"), "this should not have happened (KeyError: 'x')\nThe same command with --debug shows where"),
        (RuntimeError("a\nb\nc\nd"), "this should not have happened (RuntimeError: a)\n"),
        (AssertionError(), "this should not have happened (AssertionError: )\n"),
        (MemoryError(), "there is not enough memory ()"),
        (torch.OutOfMemoryError("CUDA out of memory.\nTried"), "there is not enough memory (CUDA out of memory.)"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), "there is not enough memory"),
        (RecursionError("too deep"), "this should not have happened (RecursionError: too deep)"),
        (ValueError("a\n\nb\nc"), "a\nb"),
        (ValueError(), "ValueError without a message: --debug shows where"),
    ],
)
def test_what_nobody_foresaw_is_two_lines_too(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: list[str]) -> None:
        raise error

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert main(["evaluate"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"taggernet: {words}")
    assert len(shown.splitlines()) <= 2
    with pytest.raises(type(error)):
        main(["evaluate", "--debug"])


def test_a_sentence_is_never_empty_and_never_endless() -> None:
    assert sentence(OSError())
    assert len(sentence(ValueError("x" * 10**6))) <= 2000


@pytest.mark.parametrize("rule", ["─", "-"])
def test_the_parsers_frame_is_taken_off_whatever_it_is_drawn_with(rule: str) -> None:
    side = {"─": "│", "-": "|"}[rule]
    lines = ["Unrecognized options: --group, 4", rule * 20, "Perhaps you meant:", "    --groups {None}|INT", rule * 20]
    framed = "\n".join(["title", *(f"{side} {line} {side}" for line in lines)])
    assert (
        folded(framed, "prog") == "Unrecognized options: --group, 4: did you mean --groups?\nEvery option: prog --help"
    )


def test_as_a_process_of_its_own(here: Path) -> None:
    """Nothing else speaks: no warning, no logging, no traceback of an import."""
    np.save("x.npy", np.eye(3))
    ended = subprocess.run(
        [sys.executable, "-m", "taggernet", "train", "x.npy", "--out", "out"],
        env={**os.environ, "PYTHONPATH": str(Path(taggernet.__file__).parents[1]), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = "taggernet: x.npy has 3 scenes, too few to learn from: give at least 20\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
