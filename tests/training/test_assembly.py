"""An update has what its configuration says, and its work is counted by its products."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from toys import toy

from taggernet.recipes import recipe
from taggernet.training import Config, datasets
from taggernet.training.adam import TrainState
from taggernet.training.assembly import update_flop, update_for
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update


def build(seeds: int = 1) -> Update:
    return build_for(replace(toy(seeds=seeds), discount=0.5))


def build_for(config: Config) -> Update:
    part, device = Part.of(config.optimiser.batch), torch.device("cpu")
    state = TrainState.fresh(initial_weights(config.model, config.seed_list, device), ema=False)
    source = datasets.source(config, device, config.seed_list, part, datasets.training_set(config, None))
    return update_for(config, source, state, device, part, shared_statistics=False)


def test_it_is_of_this_configuration() -> None:
    update = build()
    assert update.objective.groups == 3
    assert update.objective.shares == pytest.approx([1 / 3, 2 / 3])
    assert not update.half
    assert update.rehearsed, "nothing is to be compiled"


@pytest.mark.parametrize("seeds", [1, 2])
def test_work_is_that_of_the_products(seeds: int) -> None:
    """torch's own count, but for the gradient of the first features, which nobody needs."""
    update, config = build(seeds), toy(seeds=seeds)
    with FlopCounterMode(display=False) as counter:
        update.once()
    first = 2 * 4 * 64 * 24 * config.optimiser.batch * config.groups * seeds
    assert counter.get_total_flops() == update_flop(config) - first


def test_work_of_convolutions_is_done_at_every_position() -> None:
    """Near torch's own count, which has the gradient of the first features less and the coordinates' layer more."""
    config = recipe("sprites")
    small = replace(config.model, shape=(16, 16), conv_channels=(8, 12), widths=(16, 4))
    config = replace(config, model=small, data=replace(config.data, size=16, train=20, valid=20))
    config = replace(config, optimiser=replace(config.optimiser, batch=4))
    update = build_for(config)
    with FlopCounterMode(display=False) as counter:
        update.once()
    assert counter.get_total_flops() == pytest.approx(update_flop(config), rel=0.1)


PROGRAM = """
import torch
from unittest import mock
from test_assembly import build

def costs(seeds, compiled):
    compile = torch.compile
    update = build(seeds)
    if compiled:
        traced = lambda part, *, options=None, **how: compile(part, backend="eager", **how)
        with mock.patch.object(torch, "compile", traced):
            update.compile(None)
    return update.advance(3)

for seeds in (1, 2):
    torch.testing.assert_close(costs(seeds, True), costs(seeds, False), rtol=1e-6, atol=1e-6)
print("same")
"""


@pytest.mark.slow
def test_batch_cost_and_adam_are_traced_without_a_break() -> None:
    """In a process of its own, as the shape checks of the other tests cannot be traced."""
    here = Path(__file__).parent
    paths = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent / 'helpers')!r}]\n"
    run = subprocess.run([sys.executable, "-c", paths + PROGRAM], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "same"
