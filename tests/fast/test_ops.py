"""The fused kernels against the plain equations: outputs and every gradient.

On a CPU they run in Triton's interpreter, which must be chosen before Triton is imported, so in a process of its own:
``TRITON_INTERPRET=1 python tests/fast/test_ops.py cpu`` is that process.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import taggernet
from taggernet.fast import ops
from taggernet.nets.ladder import LadderMapping

ELEMENTS, WIDTHS, ROWS = 18, (36, 20, 9), 37
"""No multiples of a block: the edges are in the test."""

NO_TRITON = importlib.util.find_spec("triton") is None


def outputs_and_gradients(
    mapping: LadderMapping, parameters: dict[str, Tensor], x: Tensor, *, fuse: bool
) -> dict[str, Tensor]:
    leaves = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    features = x.clone().requires_grad_()
    usable = ops.usable if fuse else (lambda *_: False)
    with mock.patch.object(fused, "usable", usable):
        out = functional_call(mapping, leaves, (features,))
    ramp = torch.linspace(0, 1, ELEMENTS, device=x.device)
    cost = (out.z_pre.sin() * ramp).sum() + out.m_pre.cos().sum() + out.top.square().sum()
    found = torch.autograd.grad(cost, [features, *leaves.values()])
    named = {"gradient of " + name: g for name, g in zip(["features", *leaves], found, strict=True)}
    return {"z": out.z_pre.detach(), "m": out.m_pre.detach(), "top": out.top.detach()} | named


def distance(a: Tensor, b: Tensor) -> float:
    a, b = a.float(), b.float()
    return ((a - b).norm() / (b.norm() + 1e-12)).item()


def compare(seeds: int | None, norm: str, gate: str, half: bool, device: str) -> None:
    torch.manual_seed(0)
    mapping = LadderMapping(ELEMENTS, WIDTHS, norm, gate).to(device)  # type: ignore[arg-type]
    stack = () if seeds is None else (seeds,)
    parameters = {}
    for name, start in mapping.named_parameters():
        value = start.detach() + 0.5 * torch.randn(*stack, *start.shape).to(device)
        parameters[name] = value.bfloat16() if half and name.endswith(".weight") else value
    x = torch.randn(*stack, ROWS, 4 * ELEMENTS).to(device)
    assert ops.usable(x, norm == "batch"), "the kernels would not be used at all"
    plain = outputs_and_gradients(mapping, parameters, x, fuse=False)
    with mock.patch.object(fused, "norm_activate", wraps=ops.norm_activate) as one:
        with mock.patch.object(fused, "norm_combine", wraps=ops.norm_combine) as two:
            ours = outputs_and_gradients(mapping, parameters, x, fuse=True)
    assert one.call_count >= 3
    assert two.call_count == 3
    for name, value in plain.items():
        assert distance(ours[name], value) < (0.1 if half else 1e-4), (name, distance(ours[name], value))


def compare_stacked(seeds: int | None, norm: str, device: str) -> None:
    """Gradients written into a stack are those that stand alone, and nothing else of the stack is touched."""
    torch.manual_seed(0)
    batch, stack = norm == "batch", () if seeds is None else (seeds,)
    x, z, g = (torch.randn(*stack, ROWS, ELEMENTS, device=device) for _ in range(3))
    bias, a = torch.randn(*stack, 1, ELEMENTS, device=device), torch.randn(*stack, 10, ELEMENTS, device=device)
    _, _, *moments = ops.norm_activate(x, bias, None, batch, True, True, 1e-5, False)
    norm_arguments, combine_arguments = (
        (x, bias, None, *moments, z, g, batch, True),
        (z, x, a, *moments, g, batch, False),
    )
    of_each = zip(ops.INTO.items(), (norm_arguments, combine_arguments), strict=True)
    for (plain, (into, which)), arguments in of_each:
        expected = list(plain(*arguments))
        wanted = expected.pop(which)
        filled = torch.full((*stack, 3 * ROWS, ELEMENTS), 7.0, device=device)
        for found, value in zip(into(filled, 1, *arguments), expected, strict=True):
            assert torch.equal(found, value)
        before, written, after = filled.split(ROWS, -2)
        assert torch.equal(written, wanted)
        assert (before == 7).all()
        assert (after == 7).all()


COLUMNS: dict[str, dict[str, object]] = {
    "held": {},
    "few walked": {"MOST_ROWS_HELD": 0},
    "many walked": {"_COLUMN_SIZES": ()},
}
"""What to change so that columns are treated as a whole, row by row, or as if there were many."""
CASES = list(itertools.product([None, 2], ["batch", "layer"], ["plain", "stable"]))
FEW_CASES = [(None, "batch", "plain"), (2, "batch", "stable"), (None, "layer", "stable"), (2, "layer", "plain")]
"""The interpreter is slow."""
STACKED = list(itertools.product([None, 2], ["batch", "layer"]))


@pytest.mark.slow
@pytest.mark.skipif(NO_TRITON, reason="Triton is not installed: the plain equations serve, and are tested elsewhere")
def test_fused_is_plain_in_tritons_interpreter() -> None:
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(Path(taggernet.__file__).parents[1]), *sys.path]),
        "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__, "cpu"], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("alike") == len(FEW_CASES) + 2 + len(STACKED)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA here")
@pytest.mark.skipif(NO_TRITON, reason="Triton is not installed")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("seeds", "norm", "gate"), CASES)
def test_fused_is_plain_on_cuda(
    seeds: int | None, norm: str, gate: str, columns: str, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in COLUMNS[columns].items():
        monkeypatch.setattr(fused, name, value)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    compare(seeds, norm, gate, half, "cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA here")
@pytest.mark.skipif(NO_TRITON, reason="Triton is not installed")
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("seeds", "norm"), STACKED)
def test_gradients_go_into_a_stack_on_cuda(
    seeds: int | None, norm: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in COLUMNS[columns].items():
        monkeypatch.setattr(fused, name, value)
    compare_stacked(seeds, norm, "cuda")


def test_kernels_are_not_for_other_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU tensor outside the interpreter, and rows too wide for registers."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x = torch.zeros(2, 3)
    assert not ops.usable(x, batch=True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert ops.usable(x, batch=False) == (ops.triton is not None)
    assert not ops.usable(torch.zeros(2, ops.WIDEST_ROW + 1), batch=False)
    assert not ops.usable(torch.zeros(1, 2, 3, 4), batch=True)


@pytest.mark.skipif(ops.triton is not None, reason="Triton is installed")
def test_without_triton_nothing_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert not ops.usable(torch.zeros(2, 3), batch=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case in FEW_CASES:
        compare(*case, half=False, device=sys.argv[1])
        print(*case, "alike", flush=True)
    for columns in ("few walked", "many walked"):
        with mock.patch.multiple(fused, **COLUMNS[columns]):
            compare(2, "batch", "plain", half=False, device=sys.argv[1])
        print(columns, "alike", flush=True)
    for seeds, norm in STACKED:
        compare_stacked(seeds, norm, sys.argv[1])
        print(seeds, norm, "stacked alike", flush=True)
