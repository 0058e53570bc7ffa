"""What auto means on each device, and settings that are put back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from taggernet.training import precision
from taggernet.training.precision import (
    HEAVY,
    LONG,
    MANY,
    in_bfloat16,
    is_captured,
    is_compiled,
    keep_compiled_code,
    precision_of_products,
    products_in_words,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("has_it", [True, False])
@pytest.mark.parametrize("compiler", ["/g++", None])
@pytest.mark.parametrize("work", [LONG, LONG / 2])
def test_auto_on_a_cpu(has_it: bool, compiler: str | None, work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run uses what there is: bfloat16 instructions, a compiler."""
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: has_it)
    monkeypatch.setattr(precision.shutil, "which", lambda name: compiler)
    monkeypatch.setattr(precision.sys, "platform", "linux")
    long = work >= LONG
    assert in_bfloat16("auto", CPU, work) == (long and has_it)
    assert is_compiled("auto", CPU, work) == (long and compiler is not None)
    assert not in_bfloat16("float32", CPU, work)
    assert not is_compiled("no", CPU, work)
    assert in_bfloat16("bfloat16", CPU)
    assert is_compiled("yes", CPU)


def test_apples_compiler_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision.shutil, "which", lambda name: "/clang++")
    monkeypatch.setattr(precision.sys, "platform", "darwin")
    assert not is_compiled("auto", CPU, LONG)


def test_auto_on_cuda() -> None:
    assert in_bfloat16("auto", CUDA)
    assert is_compiled("auto", CUDA)
    assert is_compiled("auto", CUDA, 0.0, MANY)
    assert is_compiled("auto", CUDA, HEAVY, 100)
    assert not is_compiled("auto", CUDA, HEAVY / 2, MANY - 1), "a short run is captured alone"
    assert is_captured("auto", CUDA)
    assert not is_captured("no", CUDA)
    assert not is_captured("yes", CPU)
    assert not in_bfloat16("float32", CUDA)


def test_the_cpu_is_asked_by_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(torch.cpu, "get_capabilities") and torch.cpu.get_capabilities().get("architecture") == "x86_64":
        assert {"amx_bf16", "avx512_bf16"} <= set(torch.cpu.get_capabilities())
    for found, expected in [({}, False), ({"amx_bf16": True}, True), ({"avx512_bf16": True}, True)]:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=found: found, raising=False)
        assert precision.cpu_has_bfloat16() == expected


def test_tf32_is_for_cuda_and_put_back() -> None:
    before = torch.get_float32_matmul_precision()
    with precision_of_products(CPU):
        assert torch.get_float32_matmul_precision() == before
    with precision_of_products(CUDA):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


def test_a_precision_that_the_user_lowered_stays() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with precision_of_products(CUDA):
            assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_products_are_named() -> None:
    assert products_in_words(True, CUDA) == "bfloat16"
    assert "TF32" in products_in_words(False, CUDA)
    assert products_in_words(False, CPU) == "float32"


def test_compiled_code_is_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr(precision, "user_cache_path", lambda name: tmp_path / name)
    keep_compiled_code()
    folder = os.environ["TORCHINDUCTOR_CACHE_DIR"]
    assert folder == str(tmp_path / "taggernet" / "compiled")
    assert Path(folder).is_dir()
    monkeypatch.setattr(precision, "user_cache_path", lambda name: tmp_path / "other")
    keep_compiled_code()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == folder, "a place that was named is kept"


def test_without_a_place_for_it_torch_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setattr(precision, "user_cache_path", lambda name: tmp_path / "file" / name)
    keep_compiled_code()
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ
