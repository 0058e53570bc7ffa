"""What a Tagger is made of, in one frozen record that checks itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np

from taggernet.nets.norm import NormKind
from taggernet.tag import BernoulliGroups, BitFlip, Corruption, GaussianGroups, GaussianNoise, Likelihood, Units

MAX_ELEMENTS, MAX_WIDTH, MAX_LEVELS = 10_000_000, 100_000, 100
LARGEST = 1e6
"""The largest value in the model's units: its square, over a small variance, still fits float32."""


@dataclass(frozen=True)
class TaggerConfig:
    """Everything that fixes a Tagger's function but its weights."""

    shape: tuple[int, ...] = (20, 20)
    """Shape of one input; N is its product."""
    kind: Literal["binary", "real"] = "binary"
    """Binary inputs get Bernoulli groups and bit flips, real ones Gaussian groups and noise."""
    widths: tuple[int, ...] = (2000, 1000, 500)
    """Widths of the Ladder's levels, the projected input first."""
    classes: int = 0
    """Number of classes; 0 for none. Adds a topmost level with one more neuron for 'no class'."""
    norm: NormKind = "batch"
    """batch: over batch x groups, as the paper; layer: over features, the paper's starred rows."""
    noise: float = 0.2
    """Bit-flip probability (binary) or standard deviation (real) of the corruption."""
    mean: float = 0.5
    """Where every z starts: the mean of the data."""
    v_start: float = 1 + math.sqrt(2)
    """Initial variance of a Gaussian group; training drives it down like an annealing schedule."""
    feedback: Literal["logits", "probabilities"] = "logits"
    """Binary: the form in which the mapping sees its last z."""
    delta_z: Literal["eq4", "algorithm", "exact"] = "eq4"
    """Real: which of the paper's forms of delta z."""
    ratio_variance: Literal["v+sigma2", "reference"] = "v+sigma2"
    """Real: the variance inside L(m)."""
    gate: Literal["auto", "plain", "stable"] = "auto"
    """Sigmoid on the decoder's gate; auto: stable for real inputs only."""
    top: Literal["softmax", "relu"] = "softmax"
    """Activation of the topmost level when there are no classes."""
    heads: Literal["auto", "normalised", "plain"] = "auto"
    """Whether z and m are normalised before their activations; auto: with BatchNorm only, as LayerNorm would
    force every group's mask to the same mean."""
    norm_eps: float = 1e-10
    """Added to the variance in every normalisation."""
    offset: float = 0.0
    """The user's value that the model sees as 0."""
    scale: float = 1.0
    """What one unit of the model's input is in the user's units."""
    class_widths: tuple[int, ...] = ()
    """Widths of layers of their own that read a group's class from what the mapping sees of it; empty: the classes are
    the Ladder's topmost level (the paper)."""
    class_input: Literal["features", "evidence", "masks"] = "features"
    """With class_widths: all that the mapping sees of a group (features), its mask and how likely each element is under
    it (evidence), or its mask alone (masks)."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal:
                _check_choice(name, getattr(self, name), get_args(hint))
            elif hint is float:
                object.__setattr__(self, name, as_float(name, getattr(self, name)))
        self._check_sizes()
        self._check_numbers()

    def _check_sizes(self) -> None:
        shape, widths = _integers(self.shape), _integers(self.widths)
        if not shape or min(shape) < 1:
            raise ValueError(f"shape={self.shape} is not an input shape: give positive integers, e.g. (20, 20)")
        if math.prod(shape) > MAX_ELEMENTS:
            raise ValueError(f"shape={self.shape} has more than {MAX_ELEMENTS} elements: give smaller inputs")
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(
                f"widths={self.widths} does not make a Ladder: give two or more positive integers, "
                "e.g. (2000, 1000, 500)"
            )
        if len(widths) > MAX_LEVELS or max(widths) > MAX_WIDTH:
            raise ValueError(
                f"widths={self.widths} makes too large a Ladder: give at most {MAX_LEVELS} levels of {MAX_WIDTH}"
            )
        self._check_class_widths()
        if not _integers([self.classes]):
            raise TypeError(f"classes={self.classes!r} is not an integer: give the number of classes, or 0 for none")
        if self.classes < 0:
            raise ValueError(f"classes={self.classes} is negative: give the number of classes, or 0 for none")
        if self.classes > MAX_WIDTH:
            raise ValueError(f"classes={self.classes} is too many: give at most {MAX_WIDTH}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "widths", widths)
        object.__setattr__(self, "classes", int(self.classes))

    def _check_class_widths(self) -> None:
        widths = _integers(self.class_widths)
        given = isinstance(self.class_widths, list | tuple)
        if not given or len(widths) < len(self.class_widths) or min(widths, default=1) < 1:
            raise ValueError(
                f"class_widths={self.class_widths} are not widths: give positive integers, e.g. (2000, 500), or none"
            )
        if len(widths) > MAX_LEVELS or max(widths, default=1) > MAX_WIDTH:
            raise ValueError(
                f"class_widths={self.class_widths} are too many or too wide: at most {MAX_LEVELS} of {MAX_WIDTH}"
            )
        if widths and not self.classes:
            raise ValueError(f"class_widths={widths} were given, but there are no classes: set classes, e.g. 10")
        if self.class_input != "features" and not widths:
            raise ValueError(
                f"class_input={self.class_input!r} was given, but the classes are the Ladder's topmost level: set "
                "class_widths, e.g. (1000, 500)"
            )
        object.__setattr__(self, "class_widths", widths)

    def _check_numbers(self) -> None:
        self.corruption  # noqa: B018  checks the noise level
        if self.noise > LARGEST:
            raise ValueError(f"noise={self.noise} is too much: give at most {LARGEST:g}, and scale the data to match")
        if not abs(self.mean) <= LARGEST:
            raise ValueError(f"mean={self.mean} is not a mean: give a number from {-LARGEST:g} to {LARGEST:g}")
        if not 1 / LARGEST <= self.v_start <= LARGEST:
            raise ValueError(
                f"v_start={self.v_start} is not a variance: give a number from {1 / LARGEST:g} to {LARGEST:g}"
            )
        if not 0 <= self.norm_eps <= LARGEST:
            raise ValueError(f"norm_eps={self.norm_eps} is not usable: give a small number, 0 or more")
        if not (1e-30 <= self.scale <= 1e30 and abs(self.offset) <= 1e30):
            raise ValueError(
                f"offset={self.offset}, scale={self.scale}: give a finite offset and a positive scale, within 1e30"
            )

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def units(self) -> Units:
        return Units(self.offset, self.scale)

    @property
    def corruption(self) -> Corruption:
        return BitFlip(self.noise) if self.kind == "binary" else GaussianNoise(self.noise)

    @property
    def likelihood(self) -> Likelihood:
        if self.kind == "binary":
            return BernoulliGroups(self.noise, self.feedback)
        return GaussianGroups(self.noise, self.delta_z, self.ratio_variance)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not known: choose {' or '.join(map(repr, choices))}")


def _integers(values: object) -> tuple[int, ...]:
    """A list or tuple of integers as a tuple of plain ones; empty if it is anything else."""
    if not isinstance(values, list | tuple):
        return ()
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) for n in values):
        return ()
    return tuple(int(n) for n in values)


def as_float(name: str, value: object) -> float:
    """A plain float, infinite where an integer is too large for one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give a float, e.g. {name}=0.5")
    try:
        return float(value)
    except OverflowError:
        return math.inf
