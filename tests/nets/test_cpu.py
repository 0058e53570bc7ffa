"""Packed matrices: the same product, of the matrix as it is now, and only where no gradient is asked for."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from taggernet.nets import Linear, cpu


@pytest.fixture(autouse=True)
def small_matrices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not cpu._has_packing():
        pytest.skip("oneDNN packs matrices on x86 alone")
    monkeypatch.setattr(cpu, "LARGE", 1)
    cpu._packed.clear()
    yield
    cpu._packed.clear()


def exact(x: Tensor, linear: Linear) -> Tensor:
    return (x.double() @ linear.weight.detach().double()).float()


def assert_used(linear: Linear, used: bool = True) -> None:
    assert (linear in cpu._packed) == used


@pytest.mark.parametrize("shape", [(1, 30), (4, 30), (100, 30), (2, 5, 30)])
def test_packed_product_is_the_product(shape: tuple[int, ...]) -> None:
    linear, x = Linear(30, 17), torch.randn(shape)
    with torch.no_grad():
        found = linear(x)
    assert_used(linear)
    torch.testing.assert_close(found, exact(x, linear))


def test_rows_with_gaps_and_no_rows() -> None:
    linear, wide = Linear(30, 17), torch.randn(4, 40)
    with torch.no_grad():
        torch.testing.assert_close(linear(wide[:, 3:33]), exact(wide[:, 3:33], linear))
        assert linear(wide[:0, :30]).shape == (0, 17)


def test_a_changed_matrix_is_packed_again() -> None:
    linear, x = Linear(30, 17), torch.randn(4, 30)
    changes = {
        "in place": lambda: linear.weight.mul_(2),
        "loaded": lambda: linear.load_state_dict({"weight": torch.randn(30, 17)}),
        "assigned": lambda: linear.load_state_dict({"weight": torch.randn(30, 17)}, assign=True),
        "data": lambda: setattr(linear.weight, "data", torch.randn(30, 17)),
    }
    with torch.no_grad():
        linear(x)
        for name, change in changes.items():
            change()
            torch.testing.assert_close(linear(x), exact(x, linear), msg=name)
        optimiser = torch.optim.SGD([linear.weight], lr=1.0)
        with torch.enable_grad():
            linear(x).sum().backward()
        optimiser.step()
        torch.testing.assert_close(linear(x), exact(x, linear))


def test_another_matrix_at_the_address_of_one_that_was_freed_is_packed_again() -> None:
    for _ in range(100):  # often enough for memory to be used again
        linear, x = Linear(30, 17), torch.randn(4, 30)
        with torch.no_grad():
            for _ in range(3):
                linear.load_state_dict({"weight": torch.randn(30, 17)}, assign=True)
                linear.load_state_dict({"weight": torch.randn(30, 17)}, assign=True)
                torch.testing.assert_close(linear(x), exact(x, linear))


def test_a_matrix_is_packed_once() -> None:
    linear, x = Linear(30, 17), torch.randn(4, 30)
    with torch.no_grad():
        linear(x)
        packed = cpu._packed[linear].matrix
        gc.collect()
        linear(x)
    assert cpu._packed[linear].matrix is packed


def test_gradients_other_dtypes_and_stacked_weights_use_the_plain_product() -> None:
    x, linear = torch.randn(4, 30), Linear(30, 17)
    linear(x).sum().backward()
    assert linear.weight.grad is not None
    assert_used(linear, False)
    with torch.no_grad():
        stacked = torch.randn(3, 30, 17)
        found = functional_call(linear, {"weight": stacked}, (x.expand(3, 4, 30),))
        torch.testing.assert_close(found, x @ stacked)
        functional_call(linear, {"weight": stacked[0]}, (x,))
        assert_used(linear, False)
        linear.double()(x)
        linear.bfloat16()(x)
    assert_used(linear, False)


def test_small_matrices_use_the_plain_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "LARGE", 30 * 17 + 1)
    linear, x = Linear(30, 17), torch.randn(4, 30)
    with torch.no_grad():
        assert torch.equal(linear(x), x @ linear.weight)
    assert_used(linear, False)


def test_inference_tensors_work() -> None:
    with torch.inference_mode():
        linear, x = Linear(30, 17), torch.randn(4, 30)
        torch.testing.assert_close(linear(x), exact(x, linear))


def test_a_packed_model_is_copied_pickled_and_forgotten() -> None:
    linear, x = Linear(30, 17), torch.randn(4, 30)
    with torch.no_grad():
        expected = linear(x)
        for again in (copy.deepcopy(linear), pickle.loads(pickle.dumps(linear))):
            assert_used(again, False)
            torch.testing.assert_close(again(x), expected)
        del again, linear
        gc.collect()
        assert len(cpu._packed) == 0


def test_memory_is_asked_for_once() -> None:
    cpu.keep_freed_memory()
    before = cpu.keep_freed_memory.cache_info().misses
    cpu.keep_freed_memory()
    assert cpu.keep_freed_memory.cache_info().misses == before
