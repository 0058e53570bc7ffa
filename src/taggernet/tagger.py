"""Tagger = TAG + Ladder + optional classes: the model of the paper, to train, use, save and load.

# B batch · K groups · N elements · T iterations · C classes
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from taggernet import hub, model_io
from taggernet.config.model import TaggerConfig
from taggernet.config.validate import MAX_GROUPS, MAX_ITERATIONS, MAX_STARTS, check_count, check_integer
from taggernet.model_io import Bits
from taggernet.nets.conv import ConvMapping
from taggernet.nets.cpu import AT_ONCE, keep_freed_memory
from taggernet.nets.frozen import freezable, freeze
from taggernet.nets.ladder import LadderMapping
from taggernet.pretrained import locate
from taggernet.rng import Key
from taggernet.tag import Grouping, Mapping
from taggernet.tag.grouping import batches, join_histories
from taggernet.tagger_input import checked_rows, has_channels_first
from taggernet.tagger_loop import TaggerLoop

__all__ = ["Tagger", "TaggerConfig"]


class Tagger(TaggerLoop):
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
        super().__init__(config, mapping)
        keep_freed_memory()
        self.groups = check_count("groups", groups, low=1, high=MAX_GROUPS)
        self.iterations = check_count("iterations", iterations, low=1, high=MAX_ITERATIONS)

    # --- use ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def group(
        self, x: Any, groups: int | None = None, iterations: int | None = None, *,
        seed: int = 0, noisy: bool = False, batch_size: int = 100, starts: int = 1,
    ) -> Grouping:  # fmt: skip
        """Split each input into groups, by default with the K and T that the model was trained to be used with.

        x: (B, *shape) or rows of elements (B, N), numpy or torch, with channels last or first; what comes out
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
            for first, part in batches(rows, self.inputs_at_once(batch_size, k))
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

    def inputs_at_once(self, most: int, groups: int, models: int = 1) -> int:
        """How many inputs to give to the loop: on a CPU fewer where they are large, if the result is the same."""
        if self.config.norm == "batch" or self.w.device.type != "cpu":
            return most
        return max(1, min(most, AT_ONCE // (models * groups * self.config.elements)))

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

    def save(self, folder: str | Path, card: dict[str, Any] | None = None, *, bits: Bits = 32) -> Path:
        """Write model.safetensors and config.json into a folder; ``card`` adds notes such as metrics.

        16 ``bits`` halve the file, 8 quarter it; both change the groups very little.
        """
        if not isinstance(self.mapping, LadderMapping | ConvMapping):
            raise TypeError(
                f"the mapping is a {type(self.mapping).__name__}, but a model card only describes the package's own: "
                "save model.state_dict() with taggernet.fileio.write_tensors instead"
            )
        return model_io.write_model(
            folder, self.config, self.state_dict(), card, groups=self.groups, iterations=self.iterations, bits=bits,
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
        bits: Bits = 32, private: bool = False, message: str = "Upload a taggernet model",
    ) -> str:  # fmt: skip
        """Upload model.safetensors and config.json to the Hugging Face Hub; returns the address."""
        if not hub.is_hub_id(hub_id):
            raise ValueError(f"{hub_id!r} is not a Hub id: give owner/name, e.g. 'me/my-tagger'")
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder, card, bits=bits)
            return hub.upload(Path(folder), hub_id, private=private, message=message)
