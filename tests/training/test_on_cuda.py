"""Whole runs on a GPU: compiled as plain, seeds together as alone, resumed as uninterrupted, and real failures."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toys import quiet, toy

from taggernet.recipes import recipe
from taggernet.training import Config, OutOfMemory, train

pytestmark = [
    pytest.mark.cuda,
    # The compiler warns of much that is not ours; that it failed is.
    pytest.mark.filterwarnings("default", "error:the update could not be compiled"),
]


def on_gpu(config: Config, precision: str = "auto", compile: str = "yes", **runtime: str) -> Config:
    settings = quiet(device="cuda", log_every=4, checkpoint_every=4, compile=compile, **runtime)
    return replace(config, runtime=settings, precision=precision)


@pytest.fixture(autouse=True)
def untyped(without_typecheck: None) -> None:
    """The compiler cannot trace the checks of shapes."""


@pytest.mark.parametrize(("norm", "compile"), [("batch", "yes"), ("layer", "yes"), ("batch", "auto")])
def test_a_captured_run_is_a_plain_one(norm: str, compile: str) -> None:
    """To the rounding of TF32 and of fused kernels, over few updates; a run as short as this is captured alone."""
    config = toy(norm, updates=4)
    fast = train(on_gpu(config, "float32", compile))
    plain = train(on_gpu(config, "float32", compile="no", kernels="off"))
    for name, weight in plain.weights.items():
        torch.testing.assert_close(fast.weights[name], weight, rtol=2e-2, atol=2e-2)
    assert fast.metrics["cost"][0][-1] == pytest.approx(plain.metrics["cost"][0][-1], rel=2e-2)


def test_seeds_together_are_as_alone() -> None:
    together = train(on_gpu(toy(seeds=3, updates=6)))
    alone = train(on_gpu(toy(first_seed=1, updates=6)))
    assert together.metrics["cost"][1][-1] == pytest.approx(alone.metrics["cost"][0][-1], rel=2e-2)


def test_a_resumed_run_is_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = train(on_gpu(toy(updates=8)))
    train(on_gpu(toy(updates=4)), tmp_path)
    resumed = train(on_gpu(toy(updates=8)), tmp_path)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], weight, rtol=1e-3, atol=1e-3)


def test_memory_that_is_really_full_is_told_as_such(tmp_path: Path) -> None:
    config = replace(recipe("shapes"), seeds=20)
    config = on_gpu(replace(config, data=replace(config.data, train=500, valid=100)))
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        with pytest.raises(OutOfMemory, match=r"shapes does not fit the memory of cuda:0 .*lower --batch \(now 100\)"):
            train(config, tmp_path)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert train(on_gpu(toy(updates=4))).finished, "the GPU can still be used"


def test_a_compiler_that_really_fails(tmp_path: Path) -> None:
    """Nothing can be compiled for the host, and nothing is cached; without kernels, plain torch is left."""
    caches = {name: str(tmp_path / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    command = [sys.executable, "-m", "taggernet", "train", "small", "--out", str(tmp_path / "run"), "--device", "cuda"]
    options = ["--compile", "yes", "--kernels", "off", "--updates", "5", "--evaluate-every", "0", "--no-tensorboard"]
    ended = subprocess.run(
        command + options, env=os.environ | caches | {"CC": "false", "CXX": "false"}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "could not be compiled" in ended.stderr
    assert (tmp_path / "run" / "seed-0" / "model.safetensors").exists()
