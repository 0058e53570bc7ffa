"""Several processes compute what one would; the device is picked, or refused in a sentence."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toys import records

import taggernet
from taggernet.cli import main
from taggernet.storage import read_tensors
from taggernet.training.distributed import World, agree, average, describe, pick_device

OPTIONS = """
    --widths 24 16 8 --batch 12 --updates 12 --train 36 --valid 20 --test 20 --no-tensorboard --no-progress --device cpu
    --log-every 1 --evaluate-every 6 --checkpoint-every 5 --seeds 2 --lr 0.01 --clip 0.05 --ema 0.9
    --norm-eps 1e-3 --eps 1e-4
"""
"""The epsilons: see toys.py."""


@pytest.mark.slow
@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("choice", ["--norm batch --mode fixed", "--norm layer --mode fresh"])
def test_two_processes_are_one_with_the_same_global_batch(choice: str, tmp_path: Path) -> None:
    options = f"{OPTIONS} {choice}".split()
    assert main(["train", "small", "--out", str(tmp_path / "one"), *options]) == 0
    environment = {
        **os.environ, "PYTHONPATH": str(Path(taggernet.__file__).parents[1]), "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = f"-m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port {port} -m taggernet"
    done = subprocess.run(
        [sys.executable, *launch.split(), "train", "small", "--out", str(tmp_path / "two"), *options],
        env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    one, two = records(tmp_path / "one"), records(tmp_path / "two")
    assert [r["step"] for r in two] == [r["step"] for r in one]
    for a, b in zip(one, two, strict=True):
        if "loss" in a:
            assert b["loss"] == pytest.approx(a["loss"], rel=2e-5), a["step"]
        else:
            assert b["valid"]["cost"][1] == pytest.approx(a["valid"]["cost"][1], rel=1e-3)
    for seed in ("seed-0", "seed-1"):
        a, b = (read_tensors(tmp_path / run / seed / "model.safetensors") for run in ("one", "two"))
        for name in a:
            torch.testing.assert_close(b[name], a[name], rtol=1e-3, atol=1e-4, msg=name)


def test_alone_there_is_nothing_to_agree_on() -> None:
    device = torch.device("cpu")
    assert agree(True, World(), device)
    assert not agree(False, World(), device)
    costs = torch.rand(3, 3, 1)
    assert average(costs, World(), device) is costs
    assert World().main
    assert not World(rank=1, size=2).main


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
