"""One update: batch, corruption, cost, gradients and Adam, for all seeds at once; on CUDA a single graph.

# S seeds · every tensor of weights and moments is stacked (S, ...)

Weights, moments and all arithmetic outside the matrix products are float32. In bfloat16 the products read the upper
half of each matrix, and Adam keeps the lower half beside it (fast/split_float.py); gradients are bfloat16 then, and of
their averages 16 bits are kept between two updates. Everything an update needs beyond the weights is a function of the
step counter, so on CUDA the whole update is captured once and replayed.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.func import functional_call

from taggernet.config.run import OptimiserConfig
from taggernet.errors import is_out_of_memory
from taggernet.fast.fx_passes import compiler_options
from taggernet.fast.split_float import dequantize, merge, quantize, split
from taggernet.rng import Key
from taggernet.training.failures import in_short
from taggernet.training.objective import Batch, Costs, Objective
from taggernet.training.sources import Part, Source

Tensors = dict[str, Tensor]
VARIANCE = "w"
"""The parameter behind a Gaussian group's variance v = exp(asinh(w))."""


@dataclass
class TrainState:
    """All that changes during training."""

    weights: Tensors
    first_moment: Tensors
    second_moment: Tensors
    average: Tensors
    step: int = 0

    @staticmethod
    def fresh(weights: Tensors, ema: bool) -> TrainState:
        return TrainState(
            weights,
            {name: torch.zeros_like(w) for name, w in weights.items()},
            {name: torch.zeros_like(w) for name, w in weights.items()},
            {name: w.clone() for name, w in weights.items()} if ema else {},
        )

    @property
    def evaluated(self) -> Tensors:
        """The weights that evaluation uses."""
        return self.average or self.weights

    @property
    def is_finite(self) -> bool:
        parts = (self.weights, self.first_moment, self.second_moment, self.average)
        return all(bool(torch.isfinite(tensor).all()) for part in parts for tensor in part.values())


def learning_rate(config: OptimiserConfig, step: Tensor) -> Tensor:
    """The rate of the update that follows ``step`` updates, float32."""
    progress = step.to(torch.float32)
    rate = torch.full_like(progress, config.lr)
    if config.schedule == "cosine":
        share = ((progress - config.warmup) / max(1, config.updates - config.warmup)).clamp(0, 1)
        rate = rate * (config.final + (1 - config.final) * 0.5 * (1 + torch.cos(math.pi * share)))
    if config.warmup:
        rate = rate * ((progress + 1) / config.warmup).clamp(max=1)
    return rate


def clip_factors(gradients: list[Tensor], limit: float) -> Tensor:
    """(S,): what each seed's gradient must be multiplied with so that its norm is at most the limit."""
    norms = [torch.linalg.vector_norm(g.flatten(1), dim=1, dtype=torch.float32) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factors: Tensor = (limit / (norm + 1e-12)).clamp(max=1)
    return factors


def is_matrix(name: str) -> bool:
    """Whether a parameter is what products multiply with, not a bias, a scale or a parameter of the combinator."""
    return name.endswith(".weight")


def layer_of(name: str) -> float:
    """The layer, from 0 next to the input, that a parameter leads to or back from; infinity: the topmost."""
    if name.endswith("top_scale") or ".reader." in name:
        return math.inf
    found = re.search(r"\b(encoder|bias|decoder|combine)\.(\d+)", name)
    if found is None:
        return 0.0
    return float(int(found[2]) + (found[1] != "combine"))


def relative_rate(config: OptimiserConfig, name: str) -> float:
    """The learning rate of a parameter, in units of the run's."""
    if name == VARIANCE:
        return config.v_rate
    return config.lower_rate if layer_of(name) < config.lower_layers else 1.0


def by_seed(factor: Tensor, tensor: Tensor) -> Tensor:
    """A factor per seed (S,), shaped to multiply (S, ...)."""
    return factor.reshape(-1, *[1] * (tensor.ndim - 1))


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
        compiled: bool = False,
        buffer: int = 1000,
    ) -> None:
        self.objective, self.source, self.state, self.config, self.part = objective, source, state, config, part
        self.noise, self.masks = keys.fold("noise"), keys.fold("masks")
        self.device = keys.word.device
        self.distributed = dist.is_initialized() and dist.get_world_size() > 1
        self.names = list(state.weights)
        self.rates = [relative_rate(config, name) for name in self.names]
        items = state.weights.items()
        halves = [split(w.detach()) if half and is_matrix(name) else (w, None) for name, w in items]
        self.live = [high.requires_grad_() for high, _ in halves]
        """What the products read: the upper half of a matrix in bfloat16, or the float32 weight itself."""
        self.low = [low for _, low in halves]
        """The lower half beside it; None where the weight is whole, and so are its moments."""
        moments = zip(state.first_moment.values(), self.low, strict=True)
        self.moments = [m if low is None else m.to(torch.bfloat16) for m, low in moments]
        sizes = zip(state.second_moment.values(), self.low, strict=True)
        self.sizes = [v if low is None else quantize(v, torch.zeros_like(low), torch.tensor(0)) for v, low in sizes]
        self.behind = False
        """Whether updates were done that the state does not show yet."""
        seeds = len(self.live[0])
        self.unclipped = torch.ones(seeds, device=self.device)
        self.step = torch.tensor(state.step, dtype=torch.int64, device=self.device)
        self.costs = torch.zeros(buffer, 3, seeds, device=self.device)
        self.compiled, self.rehearsed = compiled, not compiled
        on_gpu = compiled and self.device.type == "cuda"
        self.alone = on_gpu and seeds == 1 and isinstance(objective, Objective)
        """Whether to leave out the dimension of seeds, of which there is one: plain matrices compile to better code."""
        self.graph: torch.cuda.CUDAGraph | None = None
        self._cost_of: Callable[[list[Tensor], Tensor], Costs] = self._cost
        self._adam_of: Callable[[list[Tensor], Tensor, Tensor], None] = self._adam

    # --- one update --------------------------------------------------------------------------------------

    def _cost(self, live: list[Tensor], step: Tensor) -> Costs:
        batch: Batch = self.source.batch(step)
        noise, masks = self.noise.fold(step), self.masks.fold(step)
        if self.alone:
            live = [w.squeeze(0) for w in live]
            batch = batch.first_seed()
            noise, masks = Key(noise.word.squeeze(0)), Key(masks.word.squeeze(0))
        weights = {f"model.{name}": w for name, w in zip(self.names, live, strict=True)}
        costs: Costs = functional_call(self.objective, weights, (batch, noise, masks, self.part.first))
        return Costs(*(cost.unsqueeze(0) for cost in costs)) if self.alone else costs

    def _adam(self, gradients: list[Tensor], clip: Tensor, step: Tensor) -> None:
        c, state = self.config, self.state
        g = [gradient.float() for gradient in gradients]
        if c.clip:
            g = [gradient * by_seed(clip, gradient) for gradient in g]
        m = [moment.float() for moment in self.moments]
        v = [v if low is None else dequantize(v) for v, low in zip(self.sizes, self.low, strict=True)]
        t = (step + 1).to(torch.float32)
        rate = learning_rate(c, step)
        decay = rate * c.weight_decay
        rate = rate / (1 - c.beta1**t)
        correction = torch.rsqrt(1 - c.beta2**t)
        torch._foreach_lerp_(m, g, 1 - c.beta1)
        torch._foreach_mul_(v, c.beta2)
        torch._foreach_addcmul_(v, g, g, 1 - c.beta2)
        size = torch._foreach_sqrt(v)
        torch._foreach_mul_(size, correction)
        torch._foreach_add_(size, c.eps)
        change = torch._foreach_div(m, size)
        torch._foreach_mul_(change, rate)
        for own, relative in zip(change, self.rates, strict=True):
            if relative != 1:
                own.mul_(relative)
        weights = [live if low is None else merge(live, low) for live, low in zip(self.live, self.low, strict=True)]
        if c.weight_decay:
            for weight, name, relative in zip(weights, self.names, self.rates, strict=True):
                if is_matrix(name):
                    weight.mul_(1 - relative * decay)
        torch._foreach_sub_(weights, change)
        if state.average:
            torch._foreach_lerp_(list(state.average.values()), weights, 1 - c.ema)
        for i in range(len(self.names)):
            low = self.low[i]
            if low is not None:
                self.moments[i].copy_(m[i])
                self.sizes[i].copy_(quantize(v[i], low, step))
                high, rest = split(weights[i])
                self.live[i].copy_(high)
                low.copy_(rest)

    def settled(self) -> TrainState:
        """The state after the last update. What is kept in halves is only written there when it is asked for."""
        with torch.no_grad():
            for i, name in enumerate(self.names if self.behind else ()):
                low = self.low[i]
                if low is not None:
                    self.state.weights[name].copy_(merge(self.live[i], low))
                    self.state.first_moment[name].copy_(self.moments[i])
                    self.state.second_moment[name].copy_(dequantize(self.sizes[i]))
        self.behind = False
        return self.state

    def _once(self) -> None:
        costs = self._cost_of(self.live, self.step)
        gradients = list(torch.autograd.grad(costs.total.sum(), self.live, materialize_grads=True))
        with torch.no_grad():
            if self.distributed:
                self._share(gradients)
            # Outside the compiled part: Inductor (2.11) fails on these norms beside Adam's arithmetic.
            clip = clip_factors(gradients, self.config.clip) if self.config.clip else self.unclipped
            self._adam_of(gradients, clip, self.step)
            row = (self.step % len(self.costs)).reshape(1)
            self.costs.index_copy_(0, row, torch.stack([c.detach() for c in costs])[None])
            self.step += 1

    @staticmethod
    def _share(gradients: list[Tensor]) -> None:
        """Average the gradients over processes, in one message."""
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    # --- many updates ------------------------------------------------------------------------------------

    def _rehearse(self) -> None:
        """Compile, and on one GPU capture, by updates that are then undone. Where that fails, go on without."""
        state = self.state
        kept = [
            (t, t.detach().clone())
            for t in [*self.live, *(low for low in self.low if low is not None), *self.moments,
                      *self.sizes, *state.average.values(), self.costs, self.step]
        ]  # fmt: skip
        try:
            self._compile()
            self._warm_up()
        except Exception as problem:
            if is_out_of_memory(problem):
                raise
            self._do_without(problem)
        else:
            if self.device.type == "cuda" and not self.distributed:
                self._capture()
        with torch.no_grad():
            for tensor, value in kept:
                tensor.copy_(value)
        self.rehearsed = True

    def _compile(self) -> None:
        merging = compiler_options() if self.device.type == "cuda" else None
        self._cost_of = torch.compile(self._cost, fullgraph=True, dynamic=False, options=merging)
        self._adam_of = torch.compile(self._adam, fullgraph=True, dynamic=False)

    def _do_without(self, problem: Exception) -> None:
        failure = f"the update could not be compiled ({in_short(problem)})"
        if self.distributed:  # some processes may be past the point where this one failed
            raise ValueError(f"{failure}: give --compile no") from problem
        warnings.warn(f"{failure}: going on uncompiled, with the same result but slower", stacklevel=4)
        self._cost_of, self._adam_of = self._cost, self._adam

    def _warm_up(self) -> None:
        if self.device.type != "cuda" or self.distributed:
            self._once()
            return
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self._once()
        finally:
            torch.cuda.current_stream().wait_stream(stream)
            torch.cuda.synchronize()

    def _capture(self) -> None:
        """Record one update as a CUDA graph. A capture that fails leaves the stream in no state to go on from."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._once()
        except Exception as problem:
            if is_out_of_memory(problem):
                raise
            failure = f"the update could not be captured as a CUDA graph ({in_short(problem)})"
            raise ValueError(f"{failure}: give --compile no") from problem
        self.graph = graph

    def advance(self, count: int) -> Tensor:
        """Do this many updates (no more than the source has prepared) and return their costs (count, 3, S).

        The state's step is up to date afterwards; ask ``settled`` for weights and moments.
        """
        if count > len(self.costs):
            raise ValueError(f"{count} updates do not fit the buffer of {len(self.costs)}")
        first = self.state.step
        self.source.prepare(first)
        if not self.rehearsed:
            self._rehearse()
        once = self._once if self.graph is None else self.graph.replay
        for _ in range(count):
            once()
        self.state.step += count
        self.behind = True
        rows = (torch.arange(first, first + count) % len(self.costs)).to(self.device)
        return self.costs[rows].cpu()
