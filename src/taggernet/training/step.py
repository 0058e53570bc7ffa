"""One update: batch, corruption, cost, gradients and Adam, for all seeds at once.

# S seeds

The parts are elsewhere: the cost in training/objective.py, the optimiser in training/adam.py, compiling and capturing
in training/capture.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.func import functional_call

from taggernet.config.run import OptimiserConfig
from taggernet.nets.roles import named_roles
from taggernet.rng import Key
from taggernet.training.adam import Adam, TrainState
from taggernet.training.capture import rehearse
from taggernet.training.objective import Batch, Costs, Objective
from taggernet.training.sources import Part, Source


class Update:
    """The update of a run, compiled and captured where that pays."""

    def __init__(
        self,
        objective: Objective,
        source: Source,
        state: TrainState,
        config: OptimiserConfig,
        keys: Key,
        part: Part,
        *,
        half: bool = False,
        whole: bool = False,
        compiled: bool = False,
        captured: bool = False,
        buffer: int = 1000,
        per_seed: bool = False,
    ) -> None:
        """``half``: products in bfloat16. Weights are then kept in halves, or ``whole``: products read copies, which
        needs more memory and fewer operations. ``compiled``: on one GPU also captured as a graph, which ``captured``
        asks for alone. ``per_seed``: the objective holds a number for each seed, so that even one seed keeps its
        dimension."""
        self.objective, self.source, self.state, self.part = objective, source, state, part
        self.noise, self.masks = keys.fold("noise"), keys.fold("masks")
        self.device, self.half = keys.word.device, half
        self.distributed = dist.is_initialized() and dist.get_world_size() > 1
        roles = named_roles(objective.get_submodule("model"))
        self.adam = Adam(state, config, roles, half=half and not whole)
        self.copied = [half and whole and roles[name].fan_in is not None for name in self.adam.names]
        """Of which weights products read a copy in bfloat16."""
        seeds = len(self.adam.weights[0])
        self.step = torch.tensor(state.step, dtype=torch.int64, device=self.device)
        self.costs = torch.zeros(buffer, 3, seeds, device=self.device)
        """Those of the last updates, (buffer, 3, S)."""
        self.compiled, self.rehearsed = compiled, not (compiled or (captured and not self.distributed))
        self.compiling = 0.0
        """Seconds it took."""
        self.drop_seeds = seeds == 1 and not per_seed
        """Whether to leave out the dimension of seeds, of which there is one: plain matrices are faster everywhere."""
        self._once: Callable[[], None] = self.once
        self._batch: Callable[[Tensor], Batch] = source.batch
        self._cost: Callable[[list[Tensor], Batch, Tensor], Costs] = self.cost
        self._adam: Callable[[list[Tensor], Tensor, Tensor], None] = self.adam.update

    def cost(self, weights: list[Tensor], batch: Batch, step: Tensor) -> Costs:
        """The costs (S,) of a batch as a function of the weights; the step names its noise and its random masks."""
        noise, masks = self.noise.fold(step), self.masks.fold(step)
        weights = [w.bfloat16() if copied else w for w, copied in zip(weights, self.copied, strict=True)]
        if self.drop_seeds:
            weights = [w.squeeze(0) for w in weights]
            batch = batch.first_seed()
            noise, masks = Key(noise.word.squeeze(0)), Key(masks.word.squeeze(0))
        named = {f"model.{name}": w for name, w in zip(self.adam.names, weights, strict=True)}
        costs: Costs = functional_call(self.objective, named, (batch, noise, masks, self.part.first))
        return Costs(*(cost.unsqueeze(0) for cost in costs)) if self.drop_seeds else costs

    def once(self) -> None:
        """Make one update."""
        costs = self._cost(self.adam.weights, self._batch(self.step), self.step)
        gradients = list(torch.autograd.grad(costs.total.sum(), self.adam.weights, materialize_grads=True))
        with torch.no_grad():
            if self.distributed:
                average_over_processes(gradients)
            self._adam(gradients, self.adam.clip(gradients), self.step)
            row = (self.step % len(self.costs)).reshape(1)
            self.costs.index_copy_(0, row, torch.stack([c.detach() for c in costs])[None])
            self.step += 1

    def tensors(self) -> list[Tensor]:
        """Everything that ``once`` changes."""
        return [*self.adam.tensors(), self.costs, self.step]

    def compile(self, options: dict[str, Any] | None, *, cost_alone: bool = False) -> None:
        """In three parts, so that other data and other rates find the costly one, the cost, in the cache."""
        self._cost = torch.compile(self.cost, fullgraph=True, dynamic=False, options=options)
        if not cost_alone:
            self._batch = torch.compile(self.source.batch, fullgraph=True, dynamic=False)
            self._adam = torch.compile(self.adam.update, fullgraph=True, dynamic=False)

    def use_eager(self) -> None:
        self._batch, self._cost, self._adam = self.source.batch, self.cost, self.adam.update

    def advance(self, count: int) -> Tensor:
        """Make this many updates (no more than the source has prepared) and return their costs (count, 3, S).

        The state's step is up to date afterwards; ask ``current_state`` for weights and moments.
        """
        if count > len(self.costs):
            raise ValueError(f"{count} updates do not fit the buffer of {len(self.costs)}")
        first = self.state.step
        self.source.prepare(first)
        if not self.rehearsed:
            begin = time.monotonic()
            self._once = rehearse(self, self.device, compiled=self.compiled, distributed=self.distributed)
            self.rehearsed, self.compiling = True, time.monotonic() - begin
        for _ in range(count):
            self._once()
        self.state.step += count
        self.adam.state_is_old = True
        rows = (torch.arange(first, first + count) % len(self.costs)).to(self.device)
        return self.costs[rows].cpu()

    def current_state(self) -> TrainState:
        """The state after the last update."""
        return self.adam.current_state()


def average_over_processes(gradients: list[Tensor]) -> None:
    """In place, in one message."""
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))
