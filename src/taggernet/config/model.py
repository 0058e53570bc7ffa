"""The configuration of a model: one frozen record that checks itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from taggernet.config.validate import (
    LARGEST,
    MAX_ELEMENTS,
    MAX_LEVELS,
    MAX_WIDTH,
    RANGES,
    Range,
    check_fields,
    check_number,
    check_numbers,
    check_sizes,
)


@dataclass(frozen=True)
class TaggerConfig:
    """The configuration of a Tagger: everything but its weights."""

    shape: tuple[int, ...] = (20, 20)
    """Shape of one input; N is its product."""
    kind: Literal["binary", "real"] = "binary"
    """Binary inputs get Bernoulli groups and bit flips, real ones Gaussian groups and noise."""
    widths: tuple[int, ...] = (2000, 1000, 500)
    """Widths of the Ladder's levels, the projected input first."""
    classes: int = 0
    """Number of classes; 0 for none. Adds a topmost level with one more neuron for 'no class'."""
    norm: Literal["batch", "layer"] = "batch"
    """batch: BatchNorm over batch x groups (the paper); layer: LayerNorm over features (the paper's starred rows)."""
    noise: float = 0.2
    """Bit-flip probability (binary) or standard deviation (real) of the corruption."""
    mean: float = 0.5
    """Initial value of z: the mean of the data."""
    v_start: float = 1 + math.sqrt(2)
    """Real: initial variance of a group; training lowers it, like an annealing schedule."""
    feedback: Literal["logits", "probabilities"] = "logits"
    """Binary: the form in which the mapping sees its last z."""
    delta_z: Literal["eq4", "algorithm", "exact"] = "eq4"
    """Real: form of delta z (the paper states three)."""
    ratio_variance: Literal["v+sigma2", "reference"] = "v+sigma2"
    """Real: the variance inside L(m)."""
    gate: Literal["auto", "plain", "stable"] = "auto"
    """Sigmoid on the decoder's gate; auto: stable for real inputs only."""
    top: Literal["softmax", "relu"] = "softmax"
    """Activation of the topmost level when there are no classes."""
    heads: Literal["auto", "normalised", "plain"] = "auto"
    """Whether z and m are normalised before their activations; auto: with BatchNorm only, as LayerNorm would
    give every group's mask the same mean."""
    norm_eps: float = 1e-10
    """Added to the variance in every normalisation."""
    offset: float = 0.0
    """Subtracted from the data before the model sees them."""
    scale: float = 1.0
    """The data are divided by this: x -> (x - offset) / scale."""
    offsets: tuple[float, ...] = ()
    """An offset for every element, in place of the one for all: what --scale-by element sets."""
    scales: tuple[float, ...] = ()
    """A scale for every element."""
    class_widths: tuple[int, ...] = ()
    """Widths of a class head beside the Ladder; empty: the classes are the Ladder's topmost level (the paper)."""
    class_input: Literal["features", "masks"] = "features"
    """Input of the class head: all that the mapping sees of a group (features), or its mask alone (masks)."""
    frozen_iterations: int = 0
    """BatchNorm: iterations whose statistics are frozen, set by ``Tagger.freeze_statistics``; 0: those of the batch."""

    def __post_init__(self) -> None:
        check_fields(self)
        binary = self.kind == "binary"
        check_number("noise", self.noise, Range(0, 0.5, below=True) if binary else Range(0, LARGEST))
        self._set("shape", check_sizes("shape", self.shape, least=1, most=MAX_LEVELS, largest=MAX_ELEMENTS))
        self._set("widths", check_sizes("widths", self.widths, least=2, most=MAX_LEVELS, largest=MAX_WIDTH))
        self._set(
            "class_widths",
            check_sizes("class_widths", self.class_widths, least=0, most=MAX_LEVELS, largest=MAX_WIDTH),
        )
        if self.elements > MAX_ELEMENTS:
            raise ValueError(f"shape={self.shape} has more than {MAX_ELEMENTS:,} elements: give smaller inputs")
        for name in ("offsets", "scales"):
            self._set(name, check_numbers(name, getattr(self, name), self.elements, RANGES[name[:-1]]))
        if bool(self.offsets) != bool(self.scales):
            raise ValueError("offsets and scales belong together: give both, or neither")
        if self.offsets and (self.offset, self.scale) != (0, 1):
            raise ValueError(
                f"offset={self.offset} and scale={self.scale} were given beside offsets and scales of each element: "
                "set offsets and scales to (), or leave the others out"
            )
        if self.class_widths and not self.classes:
            raise ValueError(f"class_widths={self.class_widths} needs classes: set classes, e.g. 10")
        if self.class_input != "features" and not self.class_widths:
            raise ValueError(f"class_input={self.class_input!r} needs a class head: set class_widths, e.g. (1000, 500)")
        if self.frozen_iterations and self.norm != "batch":
            raise ValueError(
                f"frozen_iterations={self.frozen_iterations} needs BatchNorm, but norm={self.norm!r}: set it to 0"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)
