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
    "bogus": "there is no command 'bogus': choose one of demo, train",
    "--nonsense": "there is no command '--nonsense': choose one of demo, train",
    "train --nonsense": "there is no recipe '--nonsense'",
    "train smal --out out": "there is no recipe 'smal': did you mean small?",
    "train shapes-bset --out out": "did you mean shapes-best?",
    "train texture-mnist-3 --out out": "did you mean texture-mnist-2?",
    # what the parser refuses
    "train small --out": "Missing value for argument '--out'",
    "train small --out out --lr banana": "--lr: 'banana' is not a number",
    "train small --out out --batch 2.5": "--batch: '2.5' is not an integer",
    "train small --out out --schedule linear": "invalid choice 'linear'",
    "train small --out out --learning-rate 3": "unknown options --learning-rate 3\nAll options: taggernet train small",
    "train small --out out --evaluate-evry 3": "unknown options --evaluate-evry 3: did you mean --evaluate-every?",
    "evaluate": "Missing from taggernet evaluate: MODEL|RUN",
    "evaluate run extra": "unknown options extra",
    "evaluate run --group 4": "unknown options --group 4: did you mean --groups?",
    "evaluate run --groups": "Missing value for argument '--groups'",
    "evaluate run --groups 4.5": "--groups: '4.5' is not an integer",
    "evaluate run --split train": "invalid choice 'train'",
    "data": "Missing from taggernet data",
    "data bogus --out x.npz": "invalid choice 'bogus'",
    "data shapes --out x.npz --seed 1e3": "--seed: '1e3' is not an integer",
    "explore run --port abc": "--port: 'abc' is not an integer",
    # numbers out of their range
    "train small --out out --groups 0": "groups=0 is out of range: give an integer from 1 to 64",
    "train small --out out --groups 1000000": "groups=1000000 is out of range: give an integer from 1 to 64",
    "train small --out out --iterations 1000000": "iterations=1000000 is out of range: give an integer from 1 to 1,000",
    "train small --out out --iterations -1": "iterations=-1 is out of range: give an integer from 1 to 1,000",
    "train small --out out --test-groups 1000000": "test_groups=1000000 is out of range: give an integer from 1 to 64",
    "train small --out out --seeds 1000000": "seeds=1000000 is out of range: give an integer from 1 to 1,000",
    "train small --out out --first-seed -1": "first_seed=-1 is out of range: give an integer from 0",
    "train small --out out --first-seed 99999999999999999999": "to 9,223,372,036,854,775,807",
    "train small --out out --batch 0": "batch=0 is out of range: give an integer from 1 to 1,000,000",
    "train small --out out --batch 1000000000": "batch=1000000000 is out of range: give an integer from 1 to 1,000,000",
    "train small --out out --train 0": "train=0 is out of range: give an integer from 1",
    "train small --out out --valid 0": "valid=0 is out of range: give an integer of at least 1",
    "train small --out out --test -3": "test=-3 is out of range: give an integer from 0",
    "train small --out out --labels -3": "labels=-3 is out of range: give an integer from 0",
    "train small --out out --size 100000": "size=100000 is out of range: give an integer from 7 to 128",
    "train small --out out --lr -1": "lr=-1.0 is out of range: give a finite number above 0",
    "train small --out out --lr nan": "lr=nan is out of range: give a finite number above 0",
    "train small --out out --lr inf": "lr=inf is out of range: give a finite number above 0",
    "train small --out out --ema 1": "ema=1.0 is out of range: give a number from 0 to below 1",
    "train small --out out --beta1 2": "beta1=2.0 is out of range: give a number from 0 to below 1",
    "train small --out out --eps 0": "eps=0.0 is out of range: give a finite number above 0",
    "train small --out out --clip nan": "clip=nan is out of range: give a finite number of at least 0",
    "train small --out out --v-rate -1": "v_rate=-1.0 is out of range: give a finite number of at least 0",
    "train small --out out --warmup -1": "warmup=-1 is out of range: give an integer from 0",
    "train small --out out --evaluate-every -1": "evaluate_every=-1 is out of range: give an integer from 0",
    "train small --out out --checkpoint-every -1": "checkpoint_every=-1 is out of range: give an integer from 0",
    "train small --out out --widths 5": "widths=(5,) is out of range: give 2 to 100 integers from 1 to 100,000",
    "train small --out out --shape 0": "shape=(0,) is out of range: give 1 to 100 integers from 1 to 10,000,000",
    "train small --out out --noise nan": "noise=nan is out of range: give a number from 0 to below 0.5",
    "evaluate run --groups 0": "groups=0 is out of range: give an integer from 1 to 64",
    "evaluate run --groups 1000000": "groups=1000000 is out of range: give an integer from 1 to 64",
    "evaluate run --iterations -1": "iterations=-1 is out of range: give an integer from 1 to 1,000",
    "evaluate run --objects 0": "objects=0 is out of range: give an integer from 1 to 255",
    "evaluate run --objects 1000": "objects=1000 is out of range: give an integer from 1 to 255",
    "export run --to x.onnx --iterations 0": "iterations=0 is out of range: give an integer from 1 to 1,000",
    "data shapes --out x.npz --n 0": "n=0 is out of range: give an integer of at least 1",
    "data texture-mnist-1 --out x.npz --n -3": "n=-3 is out of range: give an integer of at least 1",
    # options that do not fit together, or the data
    "train small --out out --objects 99": "only about 6 of them are visible on 12 x 12",
    "train small --out out --style odd": "invalid choice 'odd' for argument '--style'",
    "train small --out out --name shapez": "shapez does not exist: check the path",
    "train small --out out --name nowhere.npz --mode fixed": "nowhere.npz does not exist: check the path",
    "train small --out out --device toaster": "device 'toaster' is not known",
    "train small --out out --shape 5 5": "the scenes have shape (12, 12), but the model's inputs have (5, 5)",
    "train small --out out --class-cost 1": "class_cost is set but the model has no classes",
    "train small --out out --class-cost 1 --classes 10": "labels=0: say how many training scenes have labels",
    "train small --out run --lr 0.5": "optimiser.lr is",
    "train small --out a-file": "a-file cannot be written (File exists): choose another --out",
    "train small --out a-file/run": "a-file/run cannot be written (Not a directory): choose another --out",
    # files
    "train a-file --out out": "has the ending '', expected .npz, .npy or .h5",
    "train none.npz --out out": "none.npz does not exist: check the path",
    "train folder.npz --out out": "folder.npz is not a file",
    "train bomb.npz --out out": "unpacks to 100,059,539,874 bytes, the limit is",
    "train trap.npz --out out": "nothing is ever unpickled",
    "evaluate nowhere": "there is no model 'nowhere'",
    "evaluate a-file": "a-file is a file: name the folder that holds model.safetensors and config.json",
    "evaluate run --data none.npz": "none.npz does not exist: check the path",
    "evaluate run --split all": "split='all' was given, but shapes has splits of its own: choose valid or test",
    "evaluate run --objects 99": "objects=99 is too many: only about 6 of them are visible on 12 x 12",
    "evaluate run --device meta": "device 'meta' cannot train or evaluate: choose auto, cpu",
    "evaluate run --json run/config.json": "config.json exists: choose another name for --json, or add --overwrite",
    "data shapes --out x.txt": "must end in .npz or .h5",
    "data shapes --out folder.npz --n 3": "folder.npz exists: choose another name for --out, or add --overwrite",
    "data shapes --out a-file/x.npz --n 3": "a-file cannot be written (File exists): choose another path",
    "data shapes --out folder.npz --n 3 --overwrite": "folder.npz cannot be written (Is a directory)",
    "data shapes --out x.npz --n 1000000000000": "need too much memory: make at most 10,737,418 at a time",
    "export run --to x.txt": "x.txt does not end in .onnx: name the file like model.onnx",
    "export run --to a-file/x.onnx": "a-file cannot be written (File exists): choose another path",
    "export no-such-model --to x.onnx": "there is no model 'no-such-model'",
    "export a-file --to x.onnx": "a-file is a file: name the folder that holds model.safetensors and config.json",
    "explore no-such-model": "there is no model 'no-such-model'",
    "explore run --port 99999": "port=99999 does not exist: choose one from 1 to 65535",
    "explore run --host 192.0.2.1": "the page cannot listen on 192.0.2.1",
    "demo small --out a-file/demo": "a-file/demo cannot be written (Not a directory)",
    # what lives in a clone
    "reproduce": "run 'python -m paper table1|table2|figure4|figure5' there",
    "reproduce table1 --quick": "run 'python -m paper table1 --quick' there",
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


def test_leaving_an_option_out_is_no_choice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("evaluate run --split tset") == 2
    shown = capsys.readouterr().err
    assert "invalid choice 'tset' for argument '--split'. Expected one of (" in shown
    assert "None" not in shown


def test_a_table_of_text_gets_advice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "table.csv").write_text("a,b\n1,2\n")
    assert status("train table.csv") == 2
    assert "convert it, e.g. numpy.save('x.npy', numpy.loadtxt(FILE, delimiter=','" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_found_before_the_work(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("evaluate run --json a-file/figures.json") == 2
    shown = capsys.readouterr()
    assert "ami" not in shown.out
    assert "a-file cannot be written (File exists)" in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("x"), "unexpected error (KeyError: 'x')\nRun the same command with --debug"),
        (RuntimeError("a\nb\nc\nd"), "unexpected error (RuntimeError: a)\n"),
        (AssertionError(), "unexpected error (AssertionError: )\n"),
        (MemoryError(), "there is not enough memory ()"),
        (torch.OutOfMemoryError("CUDA out of memory.\nTried"), "there is not enough memory (CUDA out of memory.)"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), "there is not enough memory"),
        (RecursionError("too deep"), "unexpected error (RecursionError: too deep)"),
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


@pytest.mark.parametrize("frame", ["unicode", "ascii"])
def test_the_parsers_frame_is_removed(frame: str) -> None:
    lines = ["Missing value for", "argument '--out'.", "RULE", "Argument helptext:", "    --out PATH", "RULE"]
    if frame == "unicode":
        box = "\n".join(["╭─ Error ─╮", *(f"│ {line.replace('RULE', '─' * 9)} │" for line in lines), "╰─────────╯"])
    else:
        box = "\n".join([" Error", f" {'-' * 9} ", *(f"  {line.replace('RULE', '-' * 9)}  " for line in lines)])
    assert cli._message(box) == "Missing value for argument '--out'."


def test_as_a_process_of_its_own(here: Path) -> None:
    """Nothing else speaks: no warning, no logging, no traceback of an import."""
    np.save("x.npy", np.eye(3))
    ended = subprocess.run(
        [sys.executable, "-m", "taggernet", "train", "x.npy", "--out", "out"],
        env={**os.environ, "PYTHONPATH": str(Path(taggernet.__file__).parents[1]), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = "taggernet: x.npy has 3 scenes, too few to train on: give at least 20\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
