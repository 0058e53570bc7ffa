"""Tagger = TAG + Ladder + optional classes: the model of the paper, to train, use, save and load.

# S seeds (optional) · B batch · K groups · P positions, N elements · T iterations · C classes

Departures from the paper, all options of ``TaggerConfig`` and listed in docs/deviations.md: z is fed back as
logits for binary inputs, the Ladder's top is a softmax also without labels, z starts at the data's own mean.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from taggernet import hub, model_io
from taggernet.config.model import TaggerConfig
from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, MAX_STARTS, check_count, check_integer
from taggernet.nets.conv import ConvMapping
from taggernet.nets.cpu import keep_freed_memory
from taggernet.nets.dropout import Dropout
from taggernet.nets.frozen import batch_norms, freezable, freeze, in_iteration, reserve
from taggernet.nets.ladder import LadderMapping
from taggernet.nets.norm import Kernels, use_kernels
from taggernet.nets.roles import ParameterRole, Roles, inner_roles
from taggernet.pretrained import locate
from taggernet.rng import Key
from taggernet.tag import Grouping, Mapped, Mapping, State, Units, Variant, run, start
from taggernet.tag.grouping import batches, better_of, join_histories, scene_median, with_posterior
from taggernet.tag.informed import PARTS, Parts
from taggernet.tag.start import first_of_patch
from taggernet.tagger_input import checked_rows, has_channels_first
from taggernet.tagger_parts import corruption_for, informed_start, likelihood_for, mapping_for

__all__ = ["Tagger", "TaggerConfig"]


class Tagger(nn.Module):
    """A trained or trainable Tagger. ``group`` is what most users need.

    ``groups`` and ``iterations`` are the K and T it is used with unless a call names others; they are saved with it.
    """

    def __init__(
        self,
        config: TaggerConfig,
        mapping: Mapping | None = None,
        *,
        groups: int = model_io.GROUPS,
        iterations: int = model_io.ITERATIONS,
    ) -> None:
        super().__init__()
        keep_freed_memory()
        self.config = config
        self.groups = check_count("groups", groups, low=1, high=MAX_GROUPS)
        self.iterations = check_count("iterations", iterations, low=1, high=MAX_ITERATIONS)
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
        dropout: Dropout | None = None,
        reader_alone: bool = False,
        frozen: bool = True,
    ) -> Iterator[State]:
        """The states after iterations 1 .. T; everything they know of the input is x~.

        Frozen statistics are used where there are any, unless ``frozen`` is False or the model is in training mode.
        ``dropout`` is for the last of them, on the Ladder's way up to the classes; ``reader_alone`` keeps the
        gradient of its classes inside the layers that read them.
        """
        frozen = frozen and not self.training
        shared, last = self.mapping_for_groups(state.m.shape[-2]), None
        if dropout is not None or reader_alone:
            if not isinstance(self.mapping, LadderMapping | ConvMapping):
                raise ValueError(
                    "this mapping of your own cannot leave units out nor keep what classes teach in a reader: "
                    "set class_dropout to 0 and class_reach to 'all'"
                )
            last = partial(shared, dropout=dropout, reader_alone=reader_alone)

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

    # --- use ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def group(
        self, x: Any, groups: int | None = None, iterations: int | None = None, *,
        seed: int = 0, noisy: bool = False, batch_size: int = 100, starts: int = 1,
    ) -> Grouping:  # fmt: skip
        """Split each input into groups, by default with the K and T that the model was trained to be used with.

        x: (B, *shape) or (B, anything whose product is N), numpy or torch, with channels last or first; what comes out
        is of the same kind and order, and on the same device. ``noisy`` corrupts x first, as in training. BatchNorm
        models see ``batch_size`` inputs at a time and their results depend on it; for LayerNorm and with frozen
        statistics it only bounds memory. Of several random ``starts``, each input gets the groups that explain it best.
        """
        k, t = self._use(groups, iterations)
        check_count("batch_size", batch_size, low=1, high=10**9)
        check_integer("seed", seed)
        rows, shape, as_numpy = self.checked_rows(x)
        key = Key.of(seed, self.w.device)
        masks, noise = key.fold("masks"), key.fold("noise") if noisy else None
        check_count("starts", starts, low=1, high=MAX_STARTS)
        histories = [
            [state.to(rows.device) for state in self.best_states(part, k, t, masks, first, noise, starts)]
            for first, part in batches(rows, batch_size)
        ]
        config = self.config
        first = has_channels_first(tuple(np.shape(x)), config)
        return Grouping(join_histories(histories), shape, as_numpy, self.units, config.channels, first)

    @torch.no_grad()
    def predict(
        self, x: Any, groups: int | None = None, iterations: int | None = None, *,
        seed: int = 0, batch_size: int = 100,
    ) -> Any:  # fmt: skip
        """Class probabilities (B, C) after the last iteration, numpy or torch like x; K and T as for ``group``."""
        out = self.group(x, groups, iterations, seed=seed, batch_size=batch_size)
        probabilities = self.class_probabilities(out.history[-1])
        return probabilities.cpu().numpy() if out.as_numpy else probabilities

    def _use(self, groups: int | None, iterations: int | None) -> tuple[int, int]:
        """K and T, checked: those named, else the model's own."""
        k = check_count("groups", self.groups if groups is None else groups, low=1, high=MAX_GROUPS)
        t = self.iterations if iterations is None else iterations
        return k, check_count("iterations", t, low=1, high=MAX_ITERATIONS)

    def checked_rows(self, x: Any) -> tuple[Float[Tensor, "B N"], tuple[int, ...], bool]:
        """x as checked rows of floats, the shape of its positions, and whether x was numpy."""
        return checked_rows(x, self.config, self.corruption, self.units)

    @torch.no_grad()
    def freeze_statistics(
        self, scenes: Any, groups: int | None = None, iterations: int | None = None, *,
        seed: int = 0, batch_size: int = 100,
    ) -> Tagger:  # fmt: skip
        """Give BatchNorm the statistics of these scenes for good, so that no result depends on the rest of its batch.

        scenes: Scenes or an array like ``group``'s x, in any order; a few thousand are enough. ``batch_size`` should be
        that of training: every place that normalises gets the mean and variance of each iteration, averaged over such
        batches. Later iterations use the last one's; a K other than ``groups`` works too. Frozen statistics are saved
        with the model and are not used in training mode. Returns the model, in evaluation mode.
        """
        k, t = self._use(groups, iterations)
        check_count("batch_size", batch_size, low=2, high=10**9)
        check_integer("seed", seed)
        mapping = freezable(self.mapping)
        rows, _, _ = self.checked_rows(getattr(scenes, "x", scenes))
        if len(rows) < 2:
            raise ValueError("one scene has no statistics of its own: give at least 2 scenes, better 2,000")
        # Shuffled like the batches of training: a file may be sorted.
        rows = rows[Key.of(seed).fold("order").permutation(len(rows)).to(rows.device)]
        size = math.ceil(len(rows) / math.ceil(len(rows) / batch_size))  # no batch is much smaller than the others
        masks = Key.of(seed, self.w.device).fold("masks")
        loops = (
            self.iterate(seen, self.start(len(part), k, masks, first, seen), t, frozen=False)
            for first, part in batches(rows, size)
            for seen in [self.inputs(part)]
        )
        freeze(mapping, loops, t)
        self.config = replace(self.config, frozen_iterations=t)
        return self.eval()

    # --- save and load -----------------------------------------------------------------------------------

    def save(self, folder: str | Path, card: dict[str, Any] | None = None, *, half: bool = False) -> Path:
        """Write model.safetensors and config.json into a folder; ``card`` adds notes such as metrics."""
        if not isinstance(self.mapping, LadderMapping | ConvMapping):
            raise TypeError(
                f"the mapping is a {type(self.mapping).__name__}, but a model card only describes the package's own: "
                "save model.state_dict() with taggernet.fileio.write_tensors instead"
            )
        return model_io.write_model(
            folder, self.config, self.state_dict(), card, groups=self.groups, iterations=self.iterations, half=half,
            whole={name for name, _ in self.named_buffers()},
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> Tagger:
        """Read what ``save`` wrote. Nothing is ever unpickled."""
        config, weights = model_io.read_model(folder, device)
        groups, iterations = model_io.read_use(folder)
        with torch.device("meta"):
            model = cls(config, groups=groups, iterations=iterations)
        model_io.assign_weights(model, weights, Path(folder) / model_io.WEIGHTS)
        return model.to(device).eval()

    @classmethod
    def from_pretrained(
        cls, name: str | PathLike[str], device: torch.device | str = "cpu", *, revision: str | None = None
    ) -> Tagger:
        """Load a shipped model by its name, or one by its folder, a run's folder or a Hub id.

        Of a run with several seeds, the one that is best on validation is loaded; a warning says which.
        """
        return cls.load(locate(name, revision), device)

    def push_to_hub(
        self, hub_id: str, card: dict[str, Any] | None = None, *,
        half: bool = False, private: bool = False, message: str = "Upload a taggernet model",
    ) -> str:  # fmt: skip
        """Upload model.safetensors and config.json to the Hugging Face Hub; returns the address."""
        if not hub.is_hub_id(hub_id):
            raise ValueError(f"{hub_id!r} is not a Hub id: give owner/name, e.g. 'me/my-tagger'")
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder, card, half=half)
            return hub.upload(Path(folder), hub_id, private=private, message=message)

    def parameter_roles(self) -> Roles:
        """What training must know of each parameter; w sets the variance."""
        return inner_roles(self) | {self.w: ParameterRole(is_variance=True)}

    def use_kernels(self, kernels: Kernels) -> None:
        """Use the fused kernels of this package where they apply (auto, the default), or the plain equations (off)."""
        use_kernels(self, kernels)

    def share_statistics(self) -> None:
        """Let BatchNorm use the global batch of all processes."""
        for norm in batch_norms(self):
            norm.shared_statistics = True
