"""The TAG loop: step and run (paper, Algorithm 1), and what comes out of it; tag/start.py has its beginning.

# S seeds (optional) · B batch · K groups · P positions · C channels · N = P C elements · T iterations
# x~ (*S, B, N) · z (*S, B, K, N) · m (*S, B, K, P)

K is the shape of the state and T the length of ``run``: neither lives in a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from taggernet.tag.likelihood import Likelihood, to_channels, wide
from taggernet.tag.mapping import Mapping
from taggernet.tag.units import SAME_UNITS, Units

ASSIGNED_NEVER = -1e30
"""Mask pre-activation that takes a group out of the softmax (paper, example E2), far below any evidence."""


class State(NamedTuple):
    """The estimates after an iteration."""

    z: Float[Tensor, "*S B K N"]
    """Expected input of each group."""
    m: Float[Tensor, "*S B K P"]
    """Probability that a position belongs to each group; sums to one over K."""
    fed: Float[Tensor, "*S B K N"]
    """z as the mapping sees it next: the pre-sigmoid value for binary inputs."""
    m_pre: Float[Tensor, "*S B K P"]
    """m before its softmax over the groups."""
    top: Float[Tensor, "*S B K W"] | None = None
    """The mapping's topmost representation, if it offers one."""

    def map(self, change: Callable[[Tensor], Tensor]) -> State:
        """The same change to every tensor."""
        z, m, fed, m_pre = map(change, self[:4])
        return State(z, m, fed, m_pre, None if self.top is None else change(self.top))

    def rows(self, first: int, last: int) -> State:
        """Inputs ``first`` to ``last - 1`` of the batch."""
        return self.map(lambda part: part.narrow(-3, first, last - first))

    def to(self, device: torch.device) -> State:
        return self.map(lambda part: part.to(device))

    @staticmethod
    def cat(states: Sequence[State]) -> State:
        """The states of several batches as one."""

        def join(parts: list[Tensor]) -> Tensor:
            return torch.cat(parts, dim=-3)

        tops = [state.top for state in states if state.top is not None]
        return State(
            z=join([state.z for state in states]),
            m=join([state.m for state in states]),
            fed=join([state.fed for state in states]),
            m_pre=join([state.m_pre for state in states]),
            top=join(tops) if tops else None,
        )


class Variant(NamedTuple):
    """How a step departs from the paper's; by default, it does not (docs/what-makes-groups-form.md)."""

    posterior: bool = False
    """The mapping's m is a prior: it is multiplied with how well the group's new z explains x~, q(x~|g_k)."""
    tie: float = 0.0
    """The first masks are a prior of those of every iteration: in full in the first one, this times as much in each one
    after it; 0: they are none."""
    from_scene: int = 0
    """The number of channels, where the mapping gives and sees z relative to the scene's median; 0: it does not."""


PAPER = Variant()


def features(
    likelihood: Likelihood, x_tilde: Float[Tensor, "*S B N"], state: State, v: Tensor
) -> Float[Tensor, "*S B K F"]:
    """[z, m, delta z, L(m)] of every group: all that the mapping sees, and all of it from x~."""
    x_tilde = x_tilde.unsqueeze(-2)
    delta_z = likelihood.delta_z(x_tilde, state.z, state.m, v)
    likelihood_ratio = likelihood.likelihood_ratio(x_tilde, state.z, v)
    return torch.cat([state.fed, state.m, delta_z, likelihood_ratio], dim=-1)


def step(
    mapping: Mapping, likelihood: Likelihood, x_tilde: Float[Tensor, "*S B N"], state: State, v: Tensor,
    variant: Variant = PAPER, prior: Float[Tensor, "*S B K P"] | None = None,
    origin: Float[Tensor, "*S B 1 N"] | None = None,
) -> State:  # fmt: skip
    """One iteration: the same mapping for every group, then a softmax over the groups in float32 or wider.

    ``prior`` is that of the masks, before its softmax; ``origin`` what z is relative to.
    """
    batch, groups = state.z.shape[-3:-1]
    mapped = mapping(features(likelihood, x_tilde, state, v).flatten(-3, -2))
    z_pre = _by_group(mapped.z_pre, batch, groups)
    m_pre = wide(_by_group(mapped.m_pre, batch, groups))
    if prior is not None:
        m_pre = m_pre + prior
    z = mean = likelihood.mean(z_pre)
    if origin is not None:
        z = mean + origin
    if variant.posterior:
        m_pre = m_pre + likelihood.log_evidence(x_tilde.unsqueeze(-2), z, v)
    return State(
        z=z,
        m=torch.softmax(m_pre, dim=-2),
        fed=likelihood.fed_back(z_pre, mean),
        m_pre=m_pre,
        top=None if mapped.top is None else _by_group(mapped.top, batch, groups),
    )


def scene_median(x: Float[Tensor, "*S B N"], channels: int) -> Float[Tensor, "*S B 1 N"]:
    """The median of each channel over a scene's positions, at every element; of an even number the lower one."""
    values = torch.unflatten(x, -1, (-1, channels))
    middle = values.sort(dim=-2).values[..., (values.shape[-2] - 1) // 2, :].unsqueeze(-2)
    return middle.expand_as(values).flatten(-2).unsqueeze(-2)


def with_posterior(likelihood: Likelihood, x: Float[Tensor, "*S B N"], state: State, v: Tensor) -> State:
    """The state with its masks multiplied by how well each group's z explains x: which group owns what, given x."""
    m_pre = state.m_pre + likelihood.log_evidence(x.unsqueeze(-2), state.z, v)
    return State(state.z, torch.softmax(m_pre, dim=-2), state.fed, m_pre, state.top)


def _by_group(rows: Float[Tensor, "*S R F"], batch: int, groups: int) -> Float[Tensor, "*S B K F"]:
    return rows.reshape(*rows.shape[:-2], batch, groups, rows.shape[-1])


def run(
    mapping: Mapping,
    likelihood: Likelihood,
    x_tilde: Float[Tensor, "*S B N"],
    state: State,
    v: Tensor,
    iterations: int,
    at: Callable[[int], Mapping] | None = None,
    variant: Variant = PAPER,
) -> Iterator[State]:
    """The states after iterations 1 .. T; ``at(i)`` takes the mapping's place in iteration i."""
    first = state.m_pre
    origin = scene_median(x_tilde, variant.from_scene) if variant.from_scene else None
    for i in range(1, iterations + 1):
        prior = variant.tie ** (i - 1) * first if variant.tie else None
        state = step(mapping if at is None else at(i), likelihood, x_tilde, state, v, variant, prior, origin)
        yield state


def batches(rows: Shaped[Tensor, "n N"], size: int) -> Iterator[tuple[int, Shaped[Tensor, "B N"]]]:
    """Rows in batches of at most ``size``, each after the index of its first row."""
    return ((first, rows[first : first + size]) for first in range(0, len(rows), size))


def better_of(old: Sequence[State], new: Sequence[State], is_better: Bool[Tensor, "*S B"]) -> list[State]:
    """Of two histories of the same inputs, from two random starts: each input's new one where it is better."""

    def pick(a: State, b: State) -> State:
        def of(x: Tensor, y: Tensor) -> Tensor:
            return torch.where(is_better[..., None, None], y, x)

        top = None if a.top is None or b.top is None else of(a.top, b.top)
        return State(of(a.z, b.z), of(a.m, b.m), of(a.fed, b.fed), of(a.m_pre, b.m_pre), top)

    return [pick(a, b) for a, b in zip(old, new, strict=True)]


def join_histories(histories: Sequence[Sequence[State]]) -> tuple[State, ...]:
    """The histories of several batches as one."""
    if len(histories) == 1:
        return tuple(histories[0])
    return tuple(State.cat(states) for states in zip(*histories, strict=True))


@dataclass(frozen=True, repr=False)
class Grouping:
    """The result for a batch of inputs of shape ``(B, *shape)``, as torch tensors or numpy arrays.

    ``history[0]`` is the random start, ``history[-1]`` the result; the other fields read the result. Of inputs with
    channels, ``shape`` is that of the positions; what has channels has them where the input had them, last or first.
    """

    history: tuple[State, ...]
    shape: tuple[int, ...]
    as_numpy: bool = False
    units: Units = SAME_UNITS
    """The input's own, in which reconstructions are given; the history is in the model's."""
    channels: int = 1
    channels_first: bool = False

    def __repr__(self) -> str:
        last = self.history[-1]
        inputs, arrays = len(last.m), "numpy arrays" if self.as_numpy else "tensors"
        per_group, per_input = (inputs, self.groups), (inputs,)
        if self.channels == 1:
            shapes = {
                "masks, reconstructions": (*per_group, *self.shape),
                "labels, denoised": (*per_input, *self.shape),
            }
        else:
            shapes = {
                "masks": (*per_group, *self.shape),
                "reconstructions": (*per_group, *self._with_channels),
                "labels": (*per_input, *self.shape),
                "denoised": (*per_input, *self._with_channels),
            }
        if last.top is not None:
            shapes["top"] = tuple(last.top.shape)
        return "\n".join(
            [f"Grouping of {inputs} inputs into K={self.groups} groups after T={len(self.history) - 1} iterations"]
            + [f"  {name}: {arrays} {shape}" for name, shape in shapes.items()]
        )

    @property
    def _with_channels(self) -> tuple[int, ...]:
        """The shape of one input."""
        if self.channels == 1:
            return self.shape
        return (self.channels, *self.shape) if self.channels_first else (*self.shape, self.channels)

    def _out(self, positions: Tensor) -> Any:
        tensor = positions.reshape(*positions.shape[:-1], *self.shape)
        return tensor.cpu().numpy() if self.as_numpy else tensor

    def _out_elements(self, elements: Tensor) -> Any:
        if self.channels == 1:
            return self._out(elements)
        tensor = elements.reshape(*elements.shape[:-1], *self.shape, self.channels)
        if self.channels_first:
            tensor = tensor.movedim(-1, -1 - len(self.shape))
        return tensor.cpu().numpy() if self.as_numpy else tensor

    @property
    def groups(self) -> int:
        """K, the number of groups this was run with."""
        return int(self.history[-1].m.shape[-2])

    @property
    def masks(self) -> Any:
        """m (B, K, *shape): the probability that a position belongs to a group."""
        return self._out(self.history[-1].m)

    @property
    def reconstructions(self) -> Any:
        """z (B, K, *shape), with channels: what each group would look like in full, also where it is hidden."""
        return self._out_elements(self.units.to_user(self.history[-1].z))

    @property
    def labels(self) -> Any:
        """The most probable group of each position, 0 .. K-1 (B, *shape)."""
        return self._out(self.history[-1].m.argmax(-2))

    @property
    def denoised(self) -> Any:
        """sum_k m_k z_k (B, *shape), with channels: the input as the groups together explain it."""
        last = self.history[-1]
        return self._out_elements(self.units.to_user((to_channels(last.m, self.channels) * last.z).sum(-2)))

    @property
    def top(self) -> Any:
        """The mapping's topmost representation of each group (B, K, W), if it has one."""
        top = self.history[-1].top
        return top.cpu().numpy() if top is not None and self.as_numpy else top

    def at(self, iteration: int) -> Grouping:
        """The grouping as it stood after an iteration; 0 is the random start."""
        if not isinstance(iteration, int | np.integer) or isinstance(iteration, bool):
            raise TypeError(f"iteration {iteration!r} is not a number: give an integer 0 .. {len(self.history) - 1}")
        if not 0 <= iteration < len(self.history):
            raise ValueError(f"iteration {iteration} was not run: choose 0 (the start) to {len(self.history) - 1}")
        return replace(self, history=self.history[: iteration + 1])

    def without(self, *groups: int) -> Grouping:
        """The scene with these groups taken away; the others fill in what they hid (paper, E2)."""
        kept = [k for k in range(self.groups) if k not in self._checked(groups)]
        if not kept:
            raise ValueError("every group was taken away: keep at least one")
        return self.only(*kept)

    def only(self, *groups: int) -> Grouping:
        """The scene of these groups alone: the others never win the last iteration's softmax."""
        chosen = self._checked(groups)
        if not chosen:
            raise ValueError("no group was named: name at least one, e.g. only(0)")
        last = self.history[-1]
        lost = torch.ones(self.groups, 1, dtype=torch.bool, device=last.m.device)
        lost[list(chosen)] = False
        m_pre = wide(last.m_pre).masked_fill(lost, ASSIGNED_NEVER)
        edited = last._replace(m_pre=m_pre, m=torch.softmax(m_pre, dim=-2))
        return replace(self, history=(*self.history[:-1], edited))

    def _checked(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        for k in groups:
            if not isinstance(k, int | np.integer) or isinstance(k, bool):
                raise TypeError(f"group {k!r} is not a number: name groups by integers 0 .. {self.groups - 1}")
            if not 0 <= k < self.groups:
                raise ValueError(f"group {k} does not exist: there are groups 0 .. {self.groups - 1}")
        return groups
