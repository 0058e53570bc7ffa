"""One update: a single seed without its dimension, averages over processes, the buffer of costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toys import toy

from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import datasets
from taggernet.training.adam import TrainState
from taggernet.training.objective import Batch, Objective
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update, average_over_processes


def update_of(norm: str = "layer", *, half: bool = False, whole: bool = False, buffer: int = 1000) -> Update:
    """That of a toy run of one seed."""
    config, cpu = toy(norm), torch.device("cpu")
    state = TrainState.fresh(initial_weights(config.model, [3], cpu), ema=False)
    part = Part.of(config.optimiser.batch)
    scenes = datasets.source(config, cpu, [3], part, datasets.training_set(config))
    objective = Objective(Tagger(config.model), config.groups, config.iterations)
    return Update(objective, scenes, state, config.optimiser, Key.of([3]), part, half=half, whole=whole, buffer=buffer)


@pytest.mark.slow
def test_every_kind_of_update_can_be_traced() -> None:
    """In a process of its own, as the checks of shapes cannot be. What cannot be traced is not compiled on any GPU."""
    script = Path(__file__).parents[1] / "helpers" / "traced_updates.py"
    done = subprocess.run([sys.executable, script], env=dict(os.environ), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": traced") == 9


def test_more_updates_than_the_buffer_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="4 updates do not fit the buffer of 3"):
        update_of(buffer=3).advance(4)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_one_seed_without_the_dimension_of_seeds(norm: str) -> None:
    """What a single run does."""
    found = []
    for drop_seeds in (False, True):
        update = update_of(norm)
        assert update.drop_seeds
        update.drop_seeds = drop_seeds
        found.append((update.advance(10), update.state.weights))
    (costs, weights), (costs_alone, weights_alone) = found
    assert costs.shape == costs_alone.shape == (10, 3, 1)
    torch.testing.assert_close(costs_alone, costs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(weights_alone, weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_the_tensors_of_an_update_are_all_that_it_changes(half: bool) -> None:
    """Put back, they undo it: what a rehearsal counts on."""
    update = update_of(half=half)
    update.advance(5)  # the first gradients of most parameters are zero
    before = [tensor.detach().clone() for tensor in update.tensors()]
    update.once()
    after = [tensor.detach().clone() for tensor in update.tensors()]
    assert sum(not torch.equal(a, b) for a, b in zip(before, after, strict=True)) > len(before) // 2
    with torch.no_grad():
        for tensor, value in zip(update.tensors(), before, strict=True):
            tensor.copy_(value)
    update.once()
    for tensor, value in zip(update.tensors(), after, strict=True):
        assert torch.equal(tensor, value)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_whole_weights_and_halves_give_the_same_products(norm: str) -> None:
    """At first both hand the same bfloat16 matrices to the cost; later, moments of 16 bits make a small difference."""
    halves, whole = update_of(norm, half=True), update_of(norm, half=True, whole=True)
    assert any(w.dtype == torch.bfloat16 for w in halves.adam.weights)
    assert all(w.dtype == torch.float32 for w in whole.adam.weights)
    costs, costs_whole = halves.advance(10), whole.advance(10)
    assert torch.equal(costs[0], costs_whole[0])
    torch.testing.assert_close(costs, costs_whole, rtol=0.02, atol=1e-3)
    assert not torch.equal(costs_whole, update_of(norm).advance(10)), "products were in float32"


def test_whole_weights_lose_no_small_step() -> None:
    """The gradient is that of the bfloat16 copies, and the float32 weights move by Adam's step of it."""
    update = update_of(half=True, whole=True)
    before = [w.detach().clone() for w in update.adam.weights]
    seen = [w.bfloat16() if copied else w for w, copied in zip(before, update.copied, strict=True)]
    seen = [w.requires_grad_() for w in seen]
    plain = update_of()
    update.source.prepare(0)
    costs = plain.cost(seen, update.source.batch(update.step), update.step)
    gradients = torch.autograd.grad(costs.total.sum(), seen, materialize_grads=True)
    update.once()
    rate = update.adam.schedule(torch.tensor(0)).item()
    for old, new, gradient in zip(before, update.adam.weights, gradients, strict=True):
        step = rate * gradient.float() / (gradient.float().abs() + update.adam.config.eps)  # Adam's first
        torch.testing.assert_close(new.detach(), old - step, rtol=1e-5, atol=1e-6)


def test_gradients_are_averaged_over_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes, the other's are 10 larger everywhere."""
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda flat: flat.mul_(2).add_(10))
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    gradients = [torch.randn(2, 3), torch.randn(2, 1, 4)]
    expected = [g + 5 for g in gradients]
    average_over_processes(gradients)
    torch.testing.assert_close(gradients, expected)


def test_a_batch_of_the_first_seed() -> None:
    x, labelled, classes = torch.rand(1, 4, 9), torch.rand(1, 2, 9), torch.randint(3, (1, 2, 1))
    assert Batch(x).first_seed().classes is None
    assert torch.equal(Batch(x).first_seed().x, x[0])
    whole = Batch(x, labelled, classes).first_seed()
    for part, expected in zip(whole, (x, labelled, classes), strict=True):
        assert part is not None
        assert torch.equal(part, expected[0])
