"""What fails around a run: its disk, its folder, its records. It says so, and the last good checkpoint stays.

docs/reliability.md lists the promises and where each is tested.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty
import pytest
import torch
from faulty import CONFIG, ENVIRONMENT, OPTIONS, after, assert_goes_on, assert_kept, command, settled
from safetensors import SafetensorError

from taggernet.cli import main
from taggernet.fileio import write_tensors
from taggernet.training import train

# --- the folder ---------------------------------------------------------------------------------------------------

UNSHARE = ["unshare", "--map-root-user", "--mount"]


def may_mount(folder: Path) -> bool:
    mount = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def disks(tmp_path: Path, kind: str, *prefix: str) -> str:
    done = subprocess.run(
        [*prefix, sys.executable, str(Path(faulty.__file__).with_name("disks.py")), str(tmp_path), kind],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_disk_that_is_full_or_read_only(tmp_path: Path) -> None:
    """For real, on a small disk in memory that nobody else sees: see helpers/disks.py."""
    if not may_mount(tmp_path):
        pytest.skip("this system does not let tests mount a small disk of their own")
    told = disks(tmp_path, "mounted", *UNSHARE)
    assert told.endswith("all alike\n")
    assert told.count("as it should") == 5


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """The same by a limit on the size of files, which needs no rights."""
    assert disks(tmp_path, "limited").endswith("all alike\n")


def test_a_full_disk_has_its_number_whoever_met_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors has an error of its own for everything."""

    def full(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("taggernet.fileio.save_file", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_tensors(tmp_path / "w.safetensors", {"a": torch.ones(2)})
    assert caught.value.errno == errno.ENOSPC


GONE = {
    "the whole folder": lambda run: shutil.rmtree(run),
    "its lock": lambda run: (run / ".lock").unlink(),
    "its records": lambda run: (run / "metrics.jsonl").unlink(),
    "replaced by another": lambda run: (shutil.rmtree(run), shutil.copytree(run.parent / "other", run)),
}


@pytest.mark.parametrize("go", GONE.values(), ids=GONE)
def test_a_folder_deleted_under_the_run(go: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at the next record instead of writing into a folder that is no run, or into one of another run."""
    run = tmp_path / "run"
    train(replace(CONFIG, optimiser=replace(CONFIG.optimiser, updates=1)), tmp_path / "other")
    others = sorted(path.name for path in (tmp_path / "other").rglob("*"))
    after(7, lambda: go(settled(run)), monkeypatch)
    with pytest.raises(OSError, match=f"a record could not be written to {run} .*deleted.*or replaced while") as caught:
        train(CONFIG, run)
    if not run.exists():
        assert "there is no checkpoint" in str(caught.value)
    elif (run / "seed-0").exists():
        assert sorted(path.name for path in run.rglob("*")) == others
    else:
        assert "after update 5, is kept" in str(caught.value)
        assert_kept(run, 5)


def test_a_folder_moved_under_the_run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, moved = tmp_path / "run", tmp_path / "moved"
    with monkeypatch.context() as patch:
        after(7, lambda: settled(run).rename(moved), patch)
        with pytest.raises(OSError, match="the folder was deleted, moved or replaced while the run was using it"):
            train(CONFIG, run)
    assert not run.exists()
    assert_kept(moved, 5)
    assert_goes_on(moved, whole)


def test_checkpoints_deleted_under_the_run_are_written_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        after(7, lambda: shutil.rmtree(settled(tmp_path) / "checkpoints"), patch)
        train(CONFIG, tmp_path)
    assert_goes_on(tmp_path, whole)


@pytest.mark.slow
@pytest.mark.usefixtures("without_typecheck")
def test_the_command_says_in_one_line_which_checkpoint_it_passes_over(tmp_path: Path) -> None:
    run = ["train", "small", "--out", str(tmp_path), *OPTIONS]
    assert main(run) == 0
    (tmp_path / "checkpoints" / "00000002" / "seed-0.safetensors").write_bytes(b"")
    done = command(*run)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"taggernet: checkpoint {tmp_path}/checkpoints/00000002 is not used (seed-0.safetensors is ")
