"""What a run logs: records that survive what happens to their file, curves, a progress bar, the environment."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faulty import CONFIG, assert_goes_on, assert_kept
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from toys import quiet, records, toy

from taggernet import __version__
from taggernet.training import log, train
from taggernet.training.log import Lines, Records, TensorBoard, environment, progress_bar


def test_a_record_on_a_full_disk(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was half written is dropped when the run goes on; closing the file does not complain once more."""
    write = Records.write

    def into_the_full(self: Records, record: dict[str, Any]) -> None:
        if record["step"] == 8:
            self._file.write('{"step": 8, "lo')
            self._file.flush()
            with open("/dev/full", "w") as full:
                os.dup2(full.fileno(), self._file.fileno())
            patch.setattr(Records, "_check", lambda self: None)
        write(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(Records, "write", into_the_full)
        with pytest.raises(OSError, match=r"a record could not be written to .* \(No space left on device\): free"):
            train(CONFIG, tmp_path)
    assert (tmp_path / "metrics.jsonl").read_bytes().endswith(b'{"step": 8, "lo')
    assert_kept(tmp_path, 5)
    assert_goes_on(tmp_path, whole)


def test_a_damaged_record_is_named_and_the_others_stay(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = b"\xff" + lines[1][1:]
    (run / "metrics.jsonl").write_bytes(b"".join(lines))
    with pytest.warns(UserWarning, match=r"line 2 of .*metrics\.jsonl is damaged and was dropped"):
        train(CONFIG, run)
    expected = records(whole)
    assert records(run) == [expected[0], *expected[2:]]


def test_records_after_the_step_and_a_torn_line_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n{"step": 3}\n{"ste')
    with Records(path, 2) as found:
        found.write({"step": 3, "loss": [0.5]})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 1}, {"step": 2}, {"step": 3, "loss": [0.5]},
    ]  # fmt: skip


@pytest.mark.parametrize("replaced", [False, True])
def test_records_that_were_deleted_or_replaced_are_noticed(replaced: bool, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Records(path, 0) as found:
        found.write({"step": 1})
        path.unlink()
        if replaced:
            path.write_text("another run's")
        with pytest.raises(OSError, match=r"metrics\.jsonl was deleted or replaced while the run was using it"):
            found.write({"step": 2})
    assert path.exists() == replaced


def test_tensorboard_has_a_curve_per_metric_and_seed(tmp_path: Path) -> None:
    with TensorBoard(tmp_path, 0, enabled=True) as board:
        for step in (1, 2):
            board.write(step, {"loss": [0.5 * step, 0.25 * step]}, [3, 7])
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert sorted(read.Tags()["scalars"]) == ["loss/seed 3", "loss/seed 7"]
    assert [(each.step, each.value) for each in read.Scalars("loss/seed 7")] == [(1, 0.25), (2, 0.5)]
    with TensorBoard(tmp_path / "off", 0, enabled=False) as board:
        board.write(1, {"loss": [0.5]}, [0])
    assert not (tmp_path / "off").exists()


def test_the_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        log, "Console", lambda **_: Console(file=screen, force_terminal=True, color_system=None, width=150)
    )
    with progress_bar(20, 5, enabled=True, metric="error") as update:
        update(12, loss="0.531", metric="0.07", rate="9 updates/s")
    for words in ("12/20", "9 updates/s", "loss 0.531", "error 0.07"):
        assert words in screen.getvalue()
    with progress_bar(20, 5, enabled=False) as update:
        update(12, loss="0.1")
    assert "loss 0.1" not in screen.getvalue()


def test_the_environment_names_versions_and_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAGGERNET_COMMIT", raising=False)
    here = Path(log.__file__).parent
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True)
    found = environment()
    assert (found["taggernet"], found["torch"], found["cores"]) == (__version__, torch.__version__, os.cpu_count())
    expected = head.stdout.strip() if head.returncode == 0 else None
    assert found["commit"] in (expected, f"{expected}+")
    monkeypatch.setenv("TAGGERNET_COMMIT", "abc")
    assert environment()["commit"] == "abc"


def test_a_copy_in_somebody_elses_checkout_names_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a package that is installed in an environment inside another project."""
    monkeypatch.delenv("TAGGERNET_COMMIT", raising=False)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *words], check=True)
    installed = tmp_path / "log.py"
    installed.write_text("")
    monkeypatch.setattr(log, "__file__", str(installed))
    assert environment()["commit"] is None
    subprocess.run([*git, "add", "log.py"], check=True)
    assert environment()["commit"] is not None, "a checkout of the file itself"


def test_without_a_terminal_there_is_a_line_for_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    train(replace(toy(updates=20), runtime=quiet(progress=True)))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("update ")]
    assert [line.split(":")[0] for line in lines] == [f"update {step} of 20" for step in (5, 10, 15, 20)]
    assert all(" left" in line and float(line.split("loss ")[1].split(",")[0]) > 0 for line in lines)


def test_a_slow_run_has_a_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=200)
    lines = Lines(console, total=1000, done=400)
    for step in range(401, 421):
        now[0] += 8
        lines(step, loss=f"{1 / step:.4f}", rate="0.125/s", metric="0.500")
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert shown[0] == "update 404 of 1,000: loss 0.0025, AMI 0.500, 0.125/s, 1:19:28 left"
    assert [line.split()[1] for line in shown] == ["404", "408", "412", "416", "420"]
