"""What ``--precision`` and ``--compile`` mean on a device: bfloat16, TF32 or float32 products, compiled or not."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from platformdirs import user_cache_path

LONG = 1e13
"""Floating-point operations of a run from which compiling for the CPU pays: it takes a minute of one core, and saves 5
to 9 s of 1e12 in float32, 9 to 11 s in bfloat16."""
MANY, HEAVY = 20_000, 5e15
"""Updates, or floating-point operations of a run, from which compiling for a GPU pays: it takes up to a minute. A
shorter run is captured alone."""


def cpu_has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices in hardware (AMX or AVX-512 BF16)."""
    found: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # PyTorch 2.11 may lack it
    return bool(found.get("amx_bf16") or found.get("avx512_bf16"))


def _has_compiler() -> bool:
    """Whether Inductor finds a C++ compiler that it can use as it is; Apple's lacks OpenMP."""
    named = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    return sys.platform == "linux" and named is not None


def in_bfloat16(precision: str, device: torch.device, work: float = 0.0) -> bool:
    """Whether products are in bfloat16; auto: on CUDA, and on a CPU that has it where the run's ``work`` is long."""
    if precision != "auto":
        return precision == "bfloat16"
    return device.type == "cuda" or (device.type == "cpu" and work >= LONG and cpu_has_bfloat16())


def is_compiled(choice: str, device: torch.device, work: float = 0.0, updates: int = MANY) -> bool:
    """Whether an update is compiled; auto: where the run is long, and on a CPU if there is a compiler."""
    if choice != "auto":
        return choice == "yes"
    if device.type == "cuda":
        return updates >= MANY or work >= HEAVY
    return device.type == "cpu" and work >= LONG and _has_compiler()


def is_captured(choice: str, device: torch.device) -> bool:
    """Whether an update is recorded as a CUDA graph, compiled or not."""
    return device.type == "cuda" and choice != "no"


def products_in_words(half: bool, device: torch.device) -> str:
    if half:
        return "bfloat16"
    return "TF32 (float32 with 10 bits of mantissa)" if device.type == "cuda" else "float32"


@contextmanager
def precision_of_products(device: torch.device) -> Iterator[None]:
    """On CUDA float32 products are TF32 for the duration: true float32 would leave the tensor cores idle.

    A precision that the user has lowered already is left as it is.
    """
    before = torch.get_float32_matmul_precision()
    if device.type != "cuda" or before != "highest":
        yield
        return
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def keep_compiled_code() -> None:
    """Let compiled code outlive the run, in the user's cache folder, unless another place was named.

    By default torch keeps it in the folder for temporary files, which a restart empties. It writes its files whole and
    renames them, so several processes may share the folder.
    """
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        return
    folder = user_cache_path("taggernet") / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: torch's own choice will do
        return
    if os.access(folder, os.W_OK):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
