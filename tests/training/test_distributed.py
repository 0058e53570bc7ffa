"""Several processes compute what one would; the device is picked, or refused in a sentence."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faulty
import pytest
import torch
from faulty import ENVIRONMENT, SOAK
from toys import records

from taggernet.cli import main
from taggernet.fileio import read_tensors
from taggernet.training.distributed import World, agree, average, describe, meeting, pick_device, same_start

OPTIONS = """
    --widths 24 16 8 --batch 12 --updates 12 --train 36 --valid 20 --test 20 --no-tensorboard --no-progress --device cpu
    --log-every 1 --evaluate-every 6 --checkpoint-every 5 --seeds 2 --lr 0.01 --clip 0.05 --ema 0.9
    --norm-eps 1e-3 --eps 1e-4
"""
"""The epsilons: see toys.py."""


CHOICES = ("--norm batch --mode fixed", "--norm layer --mode fresh")


def arguments(run: Path, choice: str) -> list[str]:
    return ["train", "small", "--out", str(run), *OPTIONS.split(), *choice.split()]


def in_two_processes(folder: Path, jobs: list[dict[str, Any]], *, restarts: int = 0) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps(jobs))
    launch = f"-m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port {port}"
    launch += f" --max-restarts {restarts} --monitor-interval 0.1"
    program = Path(faulty.__file__).with_name("ranks.py")
    done = subprocess.run(
        [sys.executable, *launch.split(), str(program), str(folder / "jobs.json")],
        env={**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "lo"}, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each choice's run, by two processes."""
    folder = tmp_path_factory.mktemp("two")
    runs = {choice: folder / str(i) for i, choice in enumerate(CHOICES)}
    in_two_processes(folder, [{"args": arguments(run, choice)} for choice, run in runs.items()])
    return runs


@pytest.mark.slow
@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("choice", CHOICES)
def test_two_processes_are_one_with_the_same_global_batch(choice: str, two: dict[str, Path], tmp_path: Path) -> None:
    assert main(arguments(tmp_path, choice)) == 0
    found = records(two[choice])
    assert [r["step"] for r in found] == [r["step"] for r in records(tmp_path)]
    for a, b in zip(records(tmp_path), found, strict=True):
        if "loss" in a:
            assert b["loss"] == pytest.approx(a["loss"], rel=2e-5), a["step"]
        else:
            assert b["valid"]["cost"][1] == pytest.approx(a["valid"]["cost"][1], rel=1e-3)
    for seed in ("seed-0", "seed-1"):
        a, b = (read_tensors(run / seed / "model.safetensors") for run in (tmp_path, two[choice]))
        for name in a:
            torch.testing.assert_close(b[name], a[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.slow
def test_a_killed_worker_is_started_again_and_the_result_is_that_of_a_run_left_in_peace(
    two: dict[str, Path], tmp_path: Path
) -> None:
    """After a checkpoint, one of the two; in full also the one that writes the checkpoints, and before any."""
    deaths = [(0, 3), (1, 6), (0, 8), (1, 11)] if SOAK else [(1, 6)]
    run = tmp_path / "run"
    job = {"args": arguments(run, CHOICES[1]), "deaths": deaths}
    in_two_processes(tmp_path, [job], restarts=len(deaths))
    assert len(list(tmp_path.glob("death-*"))) == len(deaths), "a worker was not killed"
    assert records(run) == records(two[CHOICES[1]])
    for seed in ("seed-0", "seed-1"):
        a, b = (read_tensors(folder / seed / "model.safetensors") for folder in (two[CHOICES[1]], run))
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_alone_there_is_nothing_to_agree_on() -> None:
    device = torch.device("cpu")
    assert agree(True, World(), device)
    assert not agree(False, World(), device)
    costs = torch.rand(3, 3, 1)
    assert average(costs, World(), device) is costs
    assert World().main
    assert not World(rank=1, size=2).main


def test_processes_that_start_again_do_not_meet_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store still holds what the last three said; the new ones come one after the other."""
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    names = []
    for _ in range(3):
        with ThreadPoolExecutor() as pool:
            found = []
            for rank in range(3):
                found.append(pool.submit(meeting, store, rank, 3, 0.02))
                time.sleep(0.05)
            names.append({future.result(timeout=60) for future in found})
    assert [len(met) for met in names] == [1, 1, 1], "all that start together meet"
    assert len(set.union(*names)) == 3, "and nobody else"
    monkeypatch.setattr("taggernet.training.distributed.LONGEST_WAIT", 0.1)
    with pytest.raises(TimeoutError, match="the 3 processes of this run did not find each other within"):
        meeting(store, 0, 3, 0.02)


def test_processes_that_would_go_on_from_different_updates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines whose --out is not the same folder: this one is at update 5, another at 0, a third at 10."""
    monkeypatch.setattr("torch.distributed.all_reduce", lambda ends, op: ends.copy_(torch.tensor([10, 0])))
    with pytest.raises(ValueError, match="after update 0, others after 10: --out must be one folder that all machines"):
        same_start(5, World(0, 3, 0), torch.device("cpu"))


def has(monkeypatch: pytest.MonkeyPatch, *, cuda: int, mps: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(0, False, "cpu"), (0, True, "mps"), (2, False, "cuda:0"), (1, True, "cuda:0")]
)
def test_auto_takes_cuda_then_mps_then_the_cpu(
    cuda: int, mps: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, cuda=cuda, mps=mps)
    assert str(pick_device("auto")) == expected
    assert str(pick_device("cpu")) == "cpu"


def test_each_process_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, cuda=4, mps=False)
    assert [str(pick_device("auto", 4, rank)) for rank in range(4)] == [f"cuda:{rank}" for rank in range(4)]
    assert str(pick_device("cuda:3")) == "cuda:3"
    with pytest.raises(ValueError, match="cuda:4 does not exist: this machine has 4 GPUs"):
        pick_device("cuda:4")


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, cuda=0, mps=False)
    with pytest.raises(
        ValueError, match="device 'cuda' was asked for, but this machine has no CUDA: choose auto or cpu"
    ):
        pick_device("cuda")
    with pytest.raises(ValueError, match="device 'toaster' is not known: choose auto, cpu, cuda, cuda:1 or mps"):
        pick_device("toaster")
    with pytest.raises(ValueError, match="device 'mps' was asked for, but this machine has no MPS"):
        pick_device("mps")


def test_describe_says_which() -> None:
    assert describe(torch.device("cpu")) == f"cpu ({torch.get_num_threads()} threads)"
