"""The fused kernels against the plain equations: outputs and every gradient, in float32 and bfloat16.

On a CPU they run in Triton's interpreter, which must be chosen before Triton is imported, so in a process of its own:
``TRITON_INTERPRET=1 python tests/fast/test_ops.py`` is that process.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import taggernet
from taggernet import fast
from taggernet.fast import ops
from taggernet.nets.ladder import Combinator, LadderMapping
from taggernet.nets.norm import make_norm, rectified, scaled, use_kernels

ELEMENTS, WIDTHS = 18, (20, 9)
ROWS = {"batch": 37, "layer": 7}
"""No multiples of a block: the edges are in the test. Few rows for LayerNorm, as the interpreter takes them singly."""

NO_TRITON = "Triton is not installed: on Linux, pip install triton to test the kernels"
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=NO_TRITON)


def outputs_and_gradients(mapping: LadderMapping, parameters: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    leaves = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    features = x.clone().requires_grad_()
    out = functional_call(mapping, leaves, (features,))
    ramp = torch.linspace(0, 1, ELEMENTS, device=x.device)
    cost = (out.z_pre.sin() * ramp).sum() + out.m_pre.cos().sum() + out.top.square().sum()
    found = torch.autograd.grad(cost, [features, *leaves.values()])
    named = {"gradient of " + name: g for name, g in zip(["features", *leaves], found, strict=True)}
    return {"z": out.z_pre.detach(), "m": out.m_pre.detach(), "top": out.top.detach()} | named


def distance(a: Tensor, b: Tensor) -> float:
    a, b = a.float(), b.float()
    return ((a - b).norm() / (b.norm() + 1e-12)).item()


def drawn(mapping: LadderMapping, seeds: int | None, rows: int, device: str) -> tuple[dict[str, Tensor], Tensor]:
    """Parameters away from their start, in float32, and rows to map."""
    stack = () if seeds is None else (seeds,)
    parameters = {
        name: start.detach() + 0.5 * torch.randn(*stack, *start.shape).to(device)
        for name, start in mapping.named_parameters()
    }
    return parameters, torch.randn(*stack, rows, 4 * ELEMENTS).to(device)


def compare(seeds: int | None, norm: Any, gate: Any, half: bool, device: str) -> None:
    """A whole mapping, fused and plain. In bfloat16 both round, each in other places."""
    torch.manual_seed(0)
    mapping = LadderMapping(ELEMENTS, WIDTHS, norm, gate).to(device)
    parameters, x = drawn(mapping, seeds, ROWS[norm], device)
    if half:
        parameters = {name: p.bfloat16() if name.endswith(".weight") else p for name, p in parameters.items()}
    assert fast.applies(x, batch=norm == "batch"), "the kernels would not be used at all"
    use_kernels(mapping, "off")
    with mock.patch.object(fast, "norm_activate") as one, mock.patch.object(fast, "norm_combine") as two:
        plain = outputs_and_gradients(mapping, parameters, x)
    assert not one.called
    assert not two.called
    use_kernels(mapping, "auto")
    with mock.patch.object(fast, "norm_activate", wraps=ops.norm_activate) as one:
        with mock.patch.object(fast, "norm_combine", wraps=ops.norm_combine) as two:
            fused = outputs_and_gradients(mapping, parameters, x)
    assert one.call_count >= len(WIDTHS)
    assert two.call_count == len(WIDTHS)
    near = 1e-4 if not half else 0.1 if device == "cuda" else 0.25  # a CPU's products round otherwise
    for name, value in plain.items():
        assert distance(fused[name], value) < near, (name, distance(fused[name], value))


def compare_in_bfloat16(seeds: int | None, norm: Any, gate: Any, device: str) -> None:
    """Each function alone, on numbers that bfloat16 holds: one rounding of the result is all that is between them."""
    torch.manual_seed(0)
    stack = () if seeds is None else (seeds,)
    x, z, g, g_z = (torch.randn(*stack, ROWS[norm], ELEMENTS, device=device).bfloat16() for _ in range(4))
    bias, scale = (torch.randn(*stack, 1, ELEMENTS, device=device) for _ in range(2))
    combinator, layer = Combinator(ELEMENTS, gate).to(device), make_norm(norm, 1e-5)
    a = torch.randn(*stack, 10, 1, ELEMENTS, device=device)
    results = {}
    for kernels in ("off", "auto"):
        use_kernels(layer, kernels)
        leaves = [t.clone().requires_grad_() for t in (x, z, bias, scale, a)]
        own_x, own_z, own_bias, own_scale, own_a = leaves
        normed, h = rectified(layer, own_x, own_bias)
        _, affine = scaled(layer, own_x, own_scale, own_bias)
        with mock.patch.dict(combinator._parameters, {"a": own_a}):
            estimate = combinator.denoise(layer, own_z, own_x, half=True)
        if kernels == "auto":
            assert {t.dtype for t in (normed, h, estimate)} == {torch.bfloat16}, "the kernels were not used"
        cost = (normed * g_z).sum() + ((h + estimate) * g).sum() + (affine * g).sum()
        results[kernels] = [normed, h, affine, estimate, *torch.autograd.grad(cost, leaves)]
    for fused, plain in zip(results["auto"], results["off"], strict=True):
        assert distance(fused, plain) < 0.01, distance(fused, plain)


class Doubled(Combinator):
    """An equation that no kernel knows."""

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        return 2 * super().forward(z, u)


def compare_changed(device: str) -> None:
    """A subclass with an equation of its own is never fused, whatever the kernels could do."""
    torch.manual_seed(0)
    mapping = LadderMapping(ELEMENTS, WIDTHS, combinator=Doubled).to(device)
    parameters, x = drawn(mapping, None, ROWS["batch"], device)
    use_kernels(mapping, "off")
    plain = outputs_and_gradients(mapping, parameters, x)
    use_kernels(mapping, "auto")
    with mock.patch.object(fast, "norm_combine") as combine:
        found = outputs_and_gradients(mapping, parameters, x)
    assert combine.call_count == 0
    for name, value in plain.items():
        assert distance(found[name], value) < 1e-4, name


def check_operations(seeds: int | None, norm: str, half: bool, device: str) -> None:
    """What torch.compile counts on: schemas, shapes and strides of fake results, gradients."""
    torch.manual_seed(0)
    stack = () if seeds is None else (seeds,)
    dtype = torch.bfloat16 if half else torch.float32
    x, z = (torch.randn(*stack, ROWS[norm], ELEMENTS, device=device).to(dtype).requires_grad_() for _ in range(2))
    bias, scale = (torch.randn(*stack, 1, ELEMENTS, device=device, requires_grad=True) for _ in range(2))
    a = torch.randn(*stack, 10, 1, ELEMENTS, device=device, requires_grad=True)
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for c in (None, scale):
        args: tuple[Any, ...] = (x, bias, c, norm == "batch", c is None, c is None, 1e-5, half)
        torch.library.opcheck(ops.norm_activate_forward, args, test_utils=tests)
    args = (z, x, a, norm == "batch", True, 1e-5, half)
    torch.library.opcheck(ops.norm_combine_forward, args, test_utils=tests)


def compare_layouts(device: str) -> None:
    """Rows with gaps, rows that are columns, and seeds that lie inside the rows."""
    torch.manual_seed(0)
    many = torch.randn(2, 40, 40, device=device)
    layouts = [many[:, :, :18], many[:, ::2], many[..., ::2], many.mT, many.transpose(0, 1), many[0].T, many[0, :, ::2]]
    for norm, x in itertools.product(("batch", "layer"), layouts):
        layer, bias = make_norm(norm, 1e-5), torch.randn(*x.shape[:-2], 1, x.shape[-1], device=device)
        found = {}
        for kernels in ("off", "auto"):
            use_kernels(layer, kernels)
            leaf = x.detach().requires_grad_()  # laid out as x is
            _, h = rectified(layer, leaf, bias)
            found[kernels] = h, *torch.autograd.grad(h.sin().sum(), leaf)
        for fused, plain in zip(found["auto"], found["off"], strict=True):
            assert distance(fused, plain) < 1e-4, (norm, x.stride())


COLUMNS: dict[str, dict[str, object]] = {
    "held": {},
    "few, looped": {"MOST_ROWS_HELD": 0},
    "many, looped": {"_COLUMN_SIZES": ()},
}
"""What to change in fast/blocks.py so that columns are held as a whole, looped over, or taken for many."""
CASES = list(itertools.product([None, 2], ["batch", "layer"], ["plain", "stable"]))
FEW_CASES = [(2, "batch", "stable"), (None, "layer", "plain")]
"""The interpreter is slow."""
HALVES = {"float32": False, "bfloat16": True}


@pytest.mark.slow
@needs_triton
def test_fused_is_plain_in_tritons_interpreter() -> None:
    """In a process of its own: see ``main``."""
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(Path(taggernet.__file__).parents[1]), *sys.path]),
        "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("alike") == 3 * len(FEW_CASES) + 2 * 2 + 2, done.stdout


@pytest.mark.cuda
@needs_triton
@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("seeds", "norm", "gate"), CASES)
def test_fused_is_plain_on_cuda(
    seeds: int | None, norm: str, gate: str, columns: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in COLUMNS[columns].items():
        monkeypatch.setattr(f"taggernet.fast.blocks.{name}", value)
    compare(seeds, norm, gate, HALVES[precision], "cuda")
    if HALVES[precision]:
        compare_in_bfloat16(seeds, norm, gate, "cuda")


@pytest.mark.cuda
@needs_triton
def test_a_changed_combinator_is_not_fused_on_cuda() -> None:
    compare_changed("cuda")


@pytest.mark.cuda
@needs_triton
def test_any_layout_is_normalised_on_cuda() -> None:
    compare_layouts("cuda")


def test_kernels_are_not_for_other_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x = torch.zeros(2, 3)
    assert not fast.applies(x, batch=True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert fast.applies(x, batch=False) == (ops.triton is not None)
    assert not fast.applies(torch.zeros(2, ops.WIDEST_ROW + 1), batch=False)
    assert not fast.applies(torch.zeros(1, 2, 3, 4), batch=True)
    assert not fast.applies(torch.zeros(2, 3, dtype=torch.float64), batch=True), "kernels write float32"


@pytest.mark.skipif(ops.triton is not None, reason="Triton is installed")
def test_without_triton_nothing_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert not fast.applies(torch.zeros(2, 3), batch=True)


def main() -> None:
    torch.set_num_threads(1)
    for precision, half in HALVES.items():
        for seeds, norm, gate in FEW_CASES:
            compare(seeds, norm, gate, half, "cpu")
            if half:
                compare_in_bfloat16(seeds, norm, gate, "cpu")
            print(precision, seeds, norm, gate, "alike", flush=True)
        for columns in ("few, looped", "many, looped"):
            with mock.patch.multiple("taggernet.fast.blocks", **COLUMNS[columns]):
                compare(2, "batch", "plain", half, "cpu")
                if half:
                    compare_in_bfloat16(2, "batch", "plain", "cpu")
            print(precision, columns, "alike", flush=True)
    for seeds, norm, gate in FEW_CASES:
        check_operations(seeds, norm, gate == "stable", "cpu")
        print("operations", seeds, norm, "alike", flush=True)
    compare_changed("cpu")
    print("a changed combinator: alike", flush=True)
    compare_layouts("cpu")
    print("layouts: alike", flush=True)


if __name__ == "__main__":
    main()
