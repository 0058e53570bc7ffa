"""import taggernet and the start of its commands: quick, on any platform, and without what they do not need."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import taggernet

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(taggernet.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    "OMP_NUM_THREADS": "1",
}
TOY = """--widths 24 16 8 --batch 10 --updates 2 --train 30 --valid 20 --test 20 --no-progress --device cpu
    --evaluate-every 0 --checkpoint-every 0 --evaluation-batch 10 --test-iterations 2"""
HEAVY = {"matplotlib", "onnx", "onnxruntime", "taggernet.explorer", "taggernet.export", "taggernet.demo"}


def python(program: str, *args: str, cwd: Path | None = None) -> str:
    """What a program prints, run in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *args], env=ENVIRONMENT, cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def loaded_by(*commands: str, cwd: Path | None = None) -> set[str]:
    """The modules that are loaded after these commands, one after the other."""
    program = (
        "import sys\nfrom taggernet.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    try:\n        status = main(command.split())\n"
        "    except SystemExit as end:\n        status = end.code\n"
        "    assert not status, (command, status)\n"
        "print('\\nmodules:', *sys.modules)"
    )
    return set(python(program, *commands, cwd=cwd).rpartition("modules:")[2].split())


def test_public_names_are_there_and_listed() -> None:
    for name in taggernet.__all__:
        assert getattr(taggernet, name) is not None
        assert name in dir(taggernet)
    with pytest.raises(AttributeError, match="module 'taggernet' has no attribute 'Taggr'"):
        taggernet.Taggr  # noqa: B018
    assert not hasattr(taggernet, "sentence")


def test_import_waits_for_the_first_use_of_a_name() -> None:
    shown = python(
        "import sys, taggernet as tn\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)\n"
        "print(tn.Config().groups, 'torch' in sys.modules)\n"
        "print(tn.data.shapes.__name__, tn.metrics.top1_error.__name__, tn.Tagger.__name__, 'torch' in sys.modules)\n"
    )
    assert shown.splitlines() == ["False False", "4 False", "shapes top1_error Tagger True"]


def test_everything_can_be_imported_without_fcntl() -> None:
    """As on Windows, which has no such module."""
    shown = python(
        "import sys\nsys.modules['fcntl'] = None\nimport taggernet as tn\n"
        "print(*(getattr(tn, name) is not None for name in tn.__all__))\n"
        "import taggernet.cli, taggernet.estimators, taggernet.demo, taggernet.training.run_dir\n"
    )
    assert set(shown.split()) == {"True"}


@pytest.mark.parametrize("command", ["--help", "--version", "train", "train small --help", "evaluate --help"])
def test_help_loads_neither_torch_nor_numpy(command: str) -> None:
    assert not loaded_by(command) & {"torch", "numpy", "rich", *HEAVY}


def test_training_evaluating_and_writing_data_load_nothing_that_draws(tmp_path: Path) -> None:
    commands = (f"train small --out run {TOY}", "evaluate run --device cpu", "data shapes --out x.npz --n 3")
    loaded = loaded_by(*commands, cwd=tmp_path)
    assert "taggernet.training.loop" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("command", ["--help", "--version"])
def test_help_takes_at_most_half_a_second(command: str) -> None:
    """Of processor time, as the machine may be busy; the best of a few, as its clock may be slow."""
    taken = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-m", "taggernet", command], env=ENVIRONMENT, check=True, capture_output=True)
        after = os.times()
        taken.append(after.children_user + after.children_system - before.children_user - before.children_system)
        time.sleep(0.1)
    assert min(taken) <= 0.5, taken
