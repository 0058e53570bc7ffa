"""The loop of Tagger: from an input and random masks to its groups, as equations; ``Tagger`` adds what users call.

# S seeds (optional) · B batch · K groups · P positions, N elements · T iterations · C classes

Departures from the paper, all options of ``TaggerConfig`` and listed in docs/deviations.md: z is fed back as
logits for binary inputs, the Ladder's top is a softmax also without labels, z starts at the data's own mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from taggernet.config.model import TaggerConfig
from taggernet.nets.conv import ConvMapping
from taggernet.nets.disturbance import Disturbance
from taggernet.nets.frozen import batch_norms, freezable, in_iteration, reserve
from taggernet.nets.ladder import LadderMapping
from taggernet.nets.norm import Kernels, use_kernels
from taggernet.nets.roles import ParameterRole, Roles, inner_roles
from taggernet.rng import Key
from taggernet.tag import Mapped, Mapping, State, Units, Variant, run, start
from taggernet.tag.grouping import better_of, scene_median, with_posterior
from taggernet.tag.informed import PARTS, Parts
from taggernet.tag.start import first_of_patch
from taggernet.tagger_parts import corruption_for, informed_start, likelihood_for, mapping_for


class TaggerLoop(nn.Module):
    """Mapping, likelihood and corruption of a configuration, and the loop that they make."""

    def __init__(self, config: TaggerConfig, mapping: Mapping | None = None) -> None:
        super().__init__()
        self.config = config
        mapping = mapping_for(config) if mapping is None else mapping
        self.mapping = mapping
        if config.frozen_iterations:
            reserve(freezable(mapping), config.frozen_iterations)
        # v = exp(asinh(w)) is positive and grows like 2w: the public code's map, here from any start.
        self.w = nn.Parameter(torch.full((1, 1, 1), math.sinh(math.log(config.v_start))))
        self.likelihood, self.corruption = likelihood_for(config), corruption_for(config)
        # Not a part of the weights: the configuration has them.
        each = torch.tensor([config.offsets, config.scales], device="cpu") if config.offsets else None
        self.register_buffer("element_units", each, persistent=False)
        patches = first_of_patch(config.shape, config.start_patch) if config.start_patch > 1 else None
        self.register_buffer("start_patches", patches, persistent=False)
        if config.start == "parts":
            # Set from the data when training begins, and kept with the weights; nothing trains them.
            self.start_quiet = nn.Parameter(torch.tensor([[0.0], [1.0]]).repeat(1, config.elements))
            self.start_shapes = nn.Parameter(torch.zeros(PARTS, 2 * config.elements))
            self.start_together = nn.Parameter(torch.eye(PARTS))

    @property
    def units(self) -> Units:
        """The user's, of all elements or of each."""
        each = self.get_buffer("element_units") if self.config.offsets else None
        return Units(self.config.offset, self.config.scale) if each is None else Units(each[0], each[1])

    @property
    def v(self) -> Tensor:
        """The variance of a Gaussian group."""
        return torch.exp(torch.asinh(self.w))

    @property
    def variant(self) -> Variant:
        """How a step departs from the paper's."""
        config = self.config
        from_scene = config.channels if config.origin == "scene" else 0
        return Variant(config.masks == "posterior", config.tie if config.is_tied else 0.0, from_scene)

    def inputs(self, x: Shaped[Tensor, "*B N"]) -> Float[Tensor, "*B N"]:
        """x in the model's units. Every other method takes the user's; the estimates and x~ are in the model's."""
        return self.units.to_model(x).to(self.w)

    def corrupt(self, x: Shaped[Tensor, "*S B N"], key: Key, first: int | Tensor = 0) -> Float[Tensor, "*S B N"]:
        """x~, in the model's units, as is the noise."""
        return self.corruption.apply(self.inputs(x), key, first)

    def start(
        self, batch: int, groups: int, key: Key, first: int | Tensor = 0, seen: Float[Tensor, "*S B N"] | None = None
    ) -> State:
        """Random masks from this key, z at the data's mean; ``seen`` is x~, for a start that knows the scene."""
        config = self.config
        mean = 1 / config.channels if config.kind == "categorical" else config.mean
        every = torch.full((config.elements,), mean, device=key.word.device)
        patches = self.get_buffer("start_patches") if config.start_patch > 1 else None
        informed, origin = self.informed_start(seen), None
        if config.origin == "scene":
            if seen is None:
                raise ValueError("z starts at the scene's median: give what the model sees of it, seen=...")
            origin = scene_median(seen, config.channels)
        return start(batch, groups, every, key, first, config.channels, patches, informed, origin)

    def informed_start(self, seen: Float[Tensor, "*S B N"] | None) -> Callable[[Tensor], Tensor] | None:
        """What makes masks that know the scene out of random numbers; None: they start at random."""
        parts = None
        if self.config.start == "parts":
            parts = Parts(self.start_quiet.detach(), self.start_shapes.detach(), self.start_together.detach())
        return informed_start(self.config, seen, parts)

    def iterate(
        self,
        x_tilde: Float[Tensor, "*S B N"],
        state: State,
        iterations: int,
        disturbance: Disturbance | None = None,
        reader_alone: bool = False,
        frozen: bool = True,
    ) -> Iterator[State]:
        """The states after iterations 1 .. T; everything they know of the input is x~.

        Frozen statistics are used where there are any, unless ``frozen`` is False or the model is in training mode.
        ``disturbance`` is for the last of them, on the way up to the classes; ``reader_alone`` keeps the
        gradient of its classes inside the layers that read them.
        """
        frozen = frozen and not self.training
        shared, last = self.mapping_for_groups(state.m.shape[-2]), None
        if disturbance is not None or reader_alone:
            if not isinstance(self.mapping, LadderMapping | ConvMapping):
                raise ValueError(
                    "this mapping of your own cannot leave units out nor keep what classes teach in a reader: "
                    "set class_dropout to 0 and class_reach to 'all'"
                )
            last = partial(shared, disturbance=disturbance, reader_alone=reader_alone)

        def at(i: int) -> Mapping:
            mapping = shared if last is None or i < iterations else last
            return in_iteration(mapping, i) if frozen and self.config.frozen_iterations else mapping

        return run(shared, self.likelihood, x_tilde, state, self.v, iterations, at, self.variant)

    def mapping_for_groups(self, groups: int) -> Callable[..., Mapped]:
        """The mapping, told K where it must know which rows share a scene: for group attention."""
        mapping: Callable[..., Mapped] = self.mapping
        return partial(mapping, groups=groups) if self.config.group_attention else mapping

    def states(
        self,
        x: Shaped[Tensor, "*S B N"],
        groups: int,
        iterations: int,
        masks: Key,
        first: int | Tensor = 0,
        noise: Key | None = None,
    ) -> Iterator[State]:
        """A batch through the whole loop: the random start, then the states after iterations 1 .. T.

        ``noise`` corrupts x first; ``first`` is the index of the batch's first input among all. Frozen statistics are
        those of clean x: with noise BatchNorm uses the statistics of the batch, as in training.
        """
        seen = self._seen(x, noise, first)
        return self._states_of(seen, groups, iterations, masks, first, frozen=noise is None)

    def _seen(self, x: Shaped[Tensor, "*S B N"], noise: Key | None, first: int | Tensor) -> Float[Tensor, "*S B N"]:
        return self.inputs(x) if noise is None else self.corrupt(x, noise, first)

    def _states_of(
        self, seen: Float[Tensor, "*S B N"], groups: int, iterations: int, masks: Key, first: int | Tensor, frozen: bool
    ) -> Iterator[State]:
        state = self.start(seen.shape[-2], groups, masks, first, seen)
        yield state
        yield from self.iterate(seen, state, iterations, frozen=frozen)

    def best_states(
        self, x: Shaped[Tensor, "*S B N"], groups: int, iterations: int, masks: Key, first: int, noise: Key | None,
        starts: int,
    ) -> list[State]:  # fmt: skip
        """``states`` as results (``as_result``); of several random starts, those that explain best what the model saw
        of an input."""
        seen, frozen = self._seen(x, noise, first), noise is None
        best = list(self._states_of(seen, groups, iterations, masks, first, frozen))
        for i in range(1, starts):
            found = list(self._states_of(seen, groups, iterations, masks.fold(i), first, frozen))
            new, old = (self._cost_of(seen, states[-1]).mean(-1) for states in (found, best))
            best = better_of(best, found, new < old)
        return [self.as_result(seen, state) for state in best]

    def as_result(self, seen: Float[Tensor, "*S B N"], state: State) -> State:
        """A state as users get it: with masks="posterior-result" its masks are the posterior, given what was seen."""
        if self.config.masks != "posterior-result":
            return state
        return with_posterior(self.likelihood, seen, state, self.v)

    def cost(self, x: Shaped[Tensor, "*S B N"], state: State) -> Float[Tensor, "*S B P"]:
        """-log q_i(x) of one iteration, per position, in nats (Eq. 1)."""
        return self._cost_of(self.inputs(x), state)

    def _cost_of(self, seen: Float[Tensor, "*S B N"], state: State) -> Float[Tensor, "*S B P"]:
        return self.likelihood.cost(seen.unsqueeze(-2), state.z, state.m, self.v)

    def class_probabilities(self, state: State) -> Float[Tensor, "*S B C"]:
        """Drop 'no class', sum over groups, renormalise (paper, section 3.3)."""
        return self.class_shares(state).sum(-2)

    def class_shares(self, state: State) -> Float[Tensor, "*S B K C"]:
        """Each group's share of the class probabilities; they sum to one over groups and classes."""
        if not self.config.classes or state.top is None:
            raise ValueError("this model was trained without classes: train one with classes first")
        shares = state.top[..., :-1]
        return shares / shares.sum((-2, -1), keepdim=True).clamp(min=1e-30)

    def parameter_roles(self) -> Roles:
        """What training must know of each parameter; w sets the variance."""
        return inner_roles(self) | {self.w: ParameterRole(is_variance=True)}

    def use_kernels(self, kernels: Kernels) -> None:
        """Use the fused kernels of this package where they apply (auto, the default), or the plain equations (off)."""
        use_kernels(self, kernels)

    def use_noise(self, noise: Float[Tensor, "S"]) -> None:
        """Let every seed have a noise of its own, in what it sees and in what it assumes; of binary and real inputs."""
        self.corruption = corruption_for(self.config, noise.reshape(-1, 1, 1))
        self.likelihood = likelihood_for(self.config, noise.reshape(-1, 1, 1, 1))

    def share_statistics(self) -> None:
        """Let BatchNorm use the global batch of all processes."""
        for norm in batch_norms(self):
            norm.shared_statistics = True
