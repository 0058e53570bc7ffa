"""A run stopped anywhere and continued is, bit by bit, the run that was never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import faulty
import pytest
import torch
from faulty import ENVIRONMENT, SOAK
from toys import quiet, records, toy

from taggernet.fileio import read_json, read_tensors
from taggernet.training import Config, Run, train
from taggernet.training.adam import Schedule
from taggernet.training.step import Update


def stop_after(step: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send this process a signal as soon as it has done so many updates."""
    advance = Update.advance

    def advance_and_stop(self: Update, count: int) -> torch.Tensor:
        costs = advance(self, count)
        if self.state.step >= step:
            monkeypatch.setattr(Update, "advance", advance)
            os.kill(os.getpid(), number)
        return costs

    monkeypatch.setattr(Update, "advance", advance_and_stop)


def assert_same(a: Run, b: Run) -> None:
    assert a.step == b.step
    for name, weight in a.weights.items():
        assert torch.equal(weight, b.weights[name]), name


CASES: dict[str, Config] = {
    "batch, fixed": toy("batch", "fixed"),
    "layer, fresh, two seeds, all options": toy(
        "layer", "fresh", seeds=2, schedule="cosine", warmup=2, clip=0.05, ema=0.9
    ),
    "batch, fixed, bfloat16": replace(toy("batch", "fixed"), precision="bfloat16"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("step", "number"), [(1, signal.SIGINT), (7, signal.SIGTERM), (10, signal.SIGTERM)])
def test_a_signal_saves_and_the_run_goes_on_exactly(
    case: Config, step: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between two records: the loss of the next one covers the updates before the stop too."""
    whole = train(case, tmp_path / "whole")
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    stop_after(step, number, monkeypatch)
    stopped = train(case, tmp_path / "run")
    assert step <= stopped.step < 12
    assert not stopped.finished
    assert (tmp_path / "run" / "checkpoints" / f"{stopped.step:08d}").is_dir()
    assert not (tmp_path / "run" / "seed-0").exists(), "an unfinished run has no models"
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    continued = train(case, tmp_path / "run")
    assert continued.finished
    assert_same(continued, whole)
    assert records(tmp_path / "run") == records(tmp_path / "whole")


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    first = train(toy(), tmp_path)
    lines = (tmp_path / "metrics.jsonl").read_bytes()
    assert_same(train(toy(), tmp_path), first)
    assert (tmp_path / "metrics.jsonl").read_bytes() == lines


def test_records_and_checkpoints_do_not_change_the_weights(tmp_path: Path) -> None:
    busy = replace(toy(), runtime=quiet(log_every=1, evaluate_every=1, checkpoint_every=1))
    assert_same(train(toy(), tmp_path / "a"), train(busy, tmp_path / "b"))
    assert_same(train(toy(), tmp_path / "a"), train(toy()))


def test_what_a_run_writes(tmp_path: Path) -> None:
    train(toy(seeds=2), tmp_path)
    found = records(tmp_path)
    assert [(r["step"], "valid" in r) for r in found] == [(4, False), (6, True), (8, False), (12, False), (12, True)]
    assert all(len(r["loss"]) == 2 for r in found if "loss" in r)
    assert all(len(r["valid"]["ami"]) == 2 and len(r["valid"]["ami"][0]) == 2 for r in found if "valid" in r)
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["00000010", "00000012"]
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert environment["torch"] == torch.__version__
    assert {"commit", "python", "cpu", "gpu"} <= set(environment)


def test_a_record_averages_the_updates_since_the_last_one(tmp_path: Path) -> None:
    train(replace(toy(), runtime=quiet(log_every=1)), tmp_path / "each")
    train(replace(toy(), runtime=quiet(log_every=5, checkpoint_every=2)), tmp_path / "five")
    each = [r["loss"][0] for r in records(tmp_path / "each") if "loss" in r]
    five = [r["loss"][0] for r in records(tmp_path / "five") if "loss" in r]
    assert five == pytest.approx([sum(each[:5]) / 5, sum(each[5:10]) / 5, sum(each[10:]) / 2], rel=1e-6)


@pytest.mark.parametrize(
    "torn", ['{"step": 9, "lo', "\0\0\0\0", '{"step": 11, "loss": [7.0]}\n{"step": 12, "loss": [9.0]}\n']
)
def test_what_a_killed_run_wrote_after_its_checkpoint_is_dropped(
    torn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(toy(), tmp_path / "whole")
    stop_after(7, signal.SIGTERM, monkeypatch)
    train(toy(), tmp_path / "run")
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write(torn)
    train(toy(), tmp_path / "run")
    assert records(tmp_path / "run") == records(tmp_path / "whole")


def test_a_finished_run_can_be_made_longer(tmp_path: Path) -> None:
    """With a constant rate it becomes, bit for bit, the run that was longer from the start."""
    assert train(toy("batch", "fixed", ema=0.9), tmp_path / "run").finished
    longer = toy("batch", "fixed", ema=0.9, updates=17)
    run = train(longer, tmp_path / "run")
    assert (run.finished, run.step) == (True, 17)
    assert_same(run, train(longer, tmp_path / "whole"))
    assert read_json(tmp_path / "run" / "config.json")["optimiser"]["updates"] == 17
    assert read_json(tmp_path / "run" / "seed-0" / "config.json")["card"]["updates"] == 17
    before = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"a run of 17 updates, more than the 12 asked for: set --updates to 17 or"):
        train(toy("batch", "fixed", ema=0.9), tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_a_longer_run_that_is_interrupted_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(toy(), tmp_path / "run")
    stop_after(14, signal.SIGTERM, monkeypatch)
    assert not train(toy(updates=19), tmp_path / "run").finished
    assert_same(train(toy(updates=19), tmp_path / "run"), train(toy(updates=19)))


def test_a_longer_run_stretches_its_cosine(tmp_path: Path) -> None:
    """After 12 of 12 updates the rate is 0; the next update has the rate of update 13 of 24."""
    cosine = toy(schedule="cosine")
    longer = toy(schedule="cosine", updates=24)
    train(cosine, tmp_path)
    rates = [float(Schedule(c.optimiser)(torch.tensor(12))) for c in (cosine, longer)]
    assert rates == pytest.approx([0.0, 0.005])
    before = read_tensors(tmp_path / "seed-0" / "model.safetensors")
    train(longer, tmp_path)
    after = read_tensors(tmp_path / "seed-0" / "model.safetensors")
    assert any(not torch.equal(weight, after[name]) for name, weight in before.items())


def test_a_second_signal_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = Update.advance

    def twice(self: Update, count: int) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return advance(self, count)

    with monkeypatch.context() as patch:
        patch.setattr(Update, "advance", twice)
        with pytest.raises(KeyboardInterrupt):
            train(toy(), tmp_path / "run")
    assert_same(train(toy(), tmp_path / "run"), train(toy()))


def test_training_works_outside_the_main_thread() -> None:
    """Where signals cannot be caught."""
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(train(toy())))
    thread.start()
    thread.join()
    assert found
    assert_same(found[0], train(toy()))


@pytest.mark.slow
def test_killed_at_every_file_operation_and_at_random(tmp_path: Path) -> None:
    """SIGKILL, for real: see helpers/crashes.py."""
    script, kills = Path(faulty.__file__).with_name("crashes.py"), 20 if SOAK else 2
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(kills)],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all alike\n")
    assert done.stdout.count("killed before operation") > 15
    assert done.stdout.count("a checkpoint, the last is") == kills
    assert "while writing a checkpoint" in done.stdout or not SOAK  # of few, none may be


@pytest.mark.slow
def test_the_command_saves_on_ctrl_c_and_on_sigterm(tmp_path: Path) -> None:
    """Exit status 130, a sentence that says how to resume, and no traceback."""
    options = "--widths 24 16 8 --batch 10 --updates 100000 --valid 20 --test 20 --no-tensorboard --device cpu"
    often = "--log-every 7 --evaluate-every 0 --checkpoint-every 0"
    started = {
        number: subprocess.Popen(
            [
                sys.executable,
                "-m",
                "taggernet",
                "train",
                "small",
                "--out",
                str(tmp_path / name),
                *f"{options} {often}".split(),
            ],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, number in (("int", signal.SIGINT), ("term", signal.SIGTERM))
    }
    for number, process in started.items():
        metrics = tmp_path / ("int" if number == signal.SIGINT else "term") / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.read_text().count("\n") > 1) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
    for number, process in started.items():
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 130, errors
        assert "Traceback" not in errors
        assert "run the same command to resume" in " ".join(errors.split())
        run = tmp_path / ("int" if number == signal.SIGINT else "term")
        (last,) = (run / "checkpoints").iterdir()
        lines = records(run)
        assert [r["step"] for r in lines] == list(range(7, int(last.name) + 1, 7))
        read_tensors(last / "seed-0.safetensors")
