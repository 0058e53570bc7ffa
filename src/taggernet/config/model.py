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
    """Shape of one input, without its channels; its product is the number of positions, each with a mask of its own."""
    kind: Literal["binary", "real", "categorical"] = "binary"
    """Binary inputs get Bernoulli groups and bit flips, real ones Gaussian groups and noise; categorical: each position
    is in one of several states, given as one-hot channels."""
    widths: tuple[int, ...] = (2000, 1000, 500)
    """Widths of the Ladder's levels, the projected input first."""
    classes: int = 0
    """Number of classes; 0 for none. Adds a topmost level with one more neuron for 'no class'."""
    norm: Literal["batch", "layer"] = "batch"
    """batch: BatchNorm over batch x groups (the paper); layer: LayerNorm over features (the paper's starred rows)."""
    noise: float = 0.2
    """Probability of a flipped bit (binary) or of another state (categorical), or standard deviation (real), of the
    corruption."""
    mean: float = 0.5
    """Initial value of z, relative to its origin: the mean of the data; categorical: always 1 / channels."""
    origin: Literal["data", "scene"] = "data"
    """Real: what z is drawn relative to; data: 0, the same for all (the paper); scene: the median of each channel of
    the scene, for backgrounds that differ from scene to scene."""
    v_start: float = 1 + math.sqrt(2)
    """Real: initial variance of a group; training lowers it, like an annealing schedule."""
    feedback: Literal["logits", "probabilities"] = "logits"
    """Binary and categorical: the form in which the mapping sees its last z."""
    delta_z: Literal["eq4", "algorithm", "exact"] = "eq4"
    """Real: form of delta z (the paper states three)."""
    ratio_variance: Literal["v+sigma2", "reference"] = "v+sigma2"
    """Real: the variance inside L(m)."""
    masks: Literal["mapping", "posterior", "posterior-result"] = "mapping"
    """mapping: m is what the mapping says (the paper); posterior: that is a prior, and m is the posterior, given how
    well each group's z explains the corrupted input; posterior-result: the same of the result alone, so that edges are
    as sharp as the input's where the mapping's are not, and the loop is the paper's."""
    start: Literal["random", "values", "parts", "places"] = "random"
    """What masks start from; random: chance (the paper); values: like values of a scene start in one group; parts:
    so do positions that are explained by parts of the training data which appear together; places: so do like values
    that are near each other. Of more than two groups silence has one of parts or places. All but chance also tie the
    masks to their start."""
    tie: float = 1.0
    """How much of the tie to a start from the scene remains from one iteration to the next; 1: all of it."""
    place_weight: float = 2.0
    """places: how far two ends of an image are from each other, in units of twice the spread of its values."""
    start_apart: float = 0.0
    """places: clusters of like values begin at least this share of an image's side from each other, so that a scene of
    few objects leaves groups empty; 0: however near."""
    start_sizes: bool = False
    """places: clusters differ in size, so that the border of a large and a small one is not half-way between them."""
    start_smooth: int = 1
    """places: side of the squares of positions in which textures are judged, so that those of like texture start in one
    group; odd. 1: those of like values do."""
    start_patch: int = 1
    """Side of the squares of positions that start with one random mask, so that groups differ at a scale that
    convolutions see; 1: every position has its own (the paper)."""
    gate: Literal["auto", "plain", "stable"] = "auto"
    """Sigmoid on the decoder's gate; auto: for real inputs and with mapping conv."""
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
    class_conv_channels: tuple[int, ...] = ()
    """Channels of the levels of convolutions through which the class head sees the masks of images, two on each level;
    the second halves height and width. Empty: none."""
    frozen_iterations: int = 0
    """BatchNorm: iterations whose statistics are frozen, set by ``Tagger.freeze_statistics``; 0: those of the batch."""
    channels: int = 1
    """Numbers at each position, e.g. 3 for colour: they share the position's mask."""
    channels_first: bool = False
    """Whether inputs are (channels, *shape) rather than (*shape, channels)."""
    mapping: Literal["ladder", "conv"] = "ladder"
    """ladder: fully connected, knows nothing of neighbours (the paper); conv: convolutions, for images."""
    conv_channels: tuple[int, ...] = (32, 48, 64)
    """conv: channels of its levels; each has half the height and width of the one before, and the Ladder's widths come
    on top."""
    patch: int = 1
    """conv: side of the patches of positions that its first level sees as one; 2 is about four times faster than 1."""
    group_attention: int = 0
    """Width of the attention between the groups of a scene on the topmost level; 0: none (the paper)."""
    lateral: bool = True
    """Lateral connections of the Ladder and of the convolutions (the paper). Without them all that a group knows passes
    through the topmost level: a narrow one holds a single object, which makes groups form with mapping conv."""
    decoder: Literal["mirror", "broadcast"] = "mirror"
    """conv without lateral connections: how a group is drawn from its code; mirror: by layers like the encoder's, in
    reverse; broadcast: by one function of the code and of the coordinates for all positions."""

    def __post_init__(self) -> None:
        check_fields(self)
        flips = {"binary": 0.5, "categorical": 1 - 1 / self.channels}
        noise = Range(0, flips[self.kind], below=True) if self.kind in flips else Range(0, LARGEST)
        if self.kind == "categorical" and self.channels < 2:
            raise ValueError("kind='categorical' needs a channel for each state, but channels=1: set channels")
        check_number("noise", self.noise, noise)
        if self.origin == "scene" and self.kind != "real":
            raise ValueError(f"origin='scene' is for real values, but kind={self.kind!r}: set origin to 'data'")
        self._set("shape", check_sizes("shape", self.shape, least=1, most=MAX_LEVELS, largest=MAX_ELEMENTS))
        if self.start == "values" and self.kind != "real":
            raise ValueError(f"start='values' is for real values, but kind={self.kind!r}: choose 'random' or 'parts'")
        for name, usual in (("start_apart", 0), ("place_weight", 2), ("start_smooth", 1), ("start_sizes", False)):
            if self.start != "places" and getattr(self, name) != usual:
                raise ValueError(
                    f"{name}={getattr(self, name)} is for masks that start from places, but start={self.start!r}: "
                    f"set it to {usual}, or start to 'places'"
                )
        if self.start_smooth % 2 == 0:
            raise ValueError(f"start_smooth={self.start_smooth} has no middle: give an odd number")
        if self.start != "random" and self.start_patch > 1:
            raise ValueError(
                f"start_patch={self.start_patch} is for masks that start at random, but start={self.start!r}: "
                "set it to 1, or start to 'random'"
            )
        self._set("widths", check_sizes("widths", self.widths, least=2, most=MAX_LEVELS, largest=MAX_WIDTH))
        self._set(
            "class_widths",
            check_sizes("class_widths", self.class_widths, least=0, most=MAX_LEVELS, largest=MAX_WIDTH),
        )
        for name, least in (("conv_channels", 1), ("class_conv_channels", 0)):
            self._set(name, check_sizes(name, getattr(self, name), least=least, most=MAX_LEVELS, largest=MAX_WIDTH))
        if self.mapping == "conv":
            check_conv(self.shape, self.patch, len(self.conv_channels))
        if self.decoder == "broadcast" and (self.mapping != "conv" or self.lateral):
            raise ValueError(
                f"decoder='broadcast' is for mapping='conv' with lateral=False, but mapping={self.mapping!r} and "
                f"lateral={self.lateral}: set these, or decoder='mirror'"
            )
        if self.elements > MAX_ELEMENTS:
            raise ValueError(f"shape={self.shape} has more than {MAX_ELEMENTS:,} elements: give smaller inputs")
        of = "elements" if self.channels == 1 else f"elements ({self.positions:,} positions x {self.channels} channels)"
        for name in ("offsets", "scales"):
            self._set(name, check_numbers(name, getattr(self, name), self.elements, RANGES[name[:-1]], of))
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
        if self.class_conv_channels and not (self.class_input == "masks" and len(self.shape) == 2):
            raise ValueError(
                f"class_conv_channels={self.class_conv_channels} is for a class head that reads the masks of images: "
                "set class_widths and class_input='masks', or leave it out"
            )
        if self.frozen_iterations and self.norm != "batch":
            raise ValueError(
                f"frozen_iterations={self.frozen_iterations} needs BatchNorm, but norm={self.norm!r}: set it to 0"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def positions(self) -> int:
        """P: an input has as many masks in every group."""
        return math.prod(self.shape)

    @property
    def elements(self) -> int:
        """N: all numbers of an input."""
        return self.positions * self.channels

    @property
    def is_tied(self) -> bool:
        """Whether the masks of every iteration are tied to the first ones."""
        return self.start != "random" and self.tie > 0

    @property
    def sees_the_batch(self) -> bool:
        """Whether a result depends on the scenes beside it: BatchNorm whose statistics are not frozen."""
        return self.norm == "batch" and not self.frozen_iterations

    @property
    def channels_axis(self) -> Literal["none", "first", "last"]:
        """Where an input has its channels."""
        return "none" if self.channels == 1 else "first" if self.channels_first else "last"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input with its channels."""
        if self.channels == 1:
            return self.shape
        return (self.channels, *self.shape) if self.channels_first else (*self.shape, self.channels)


def check_conv(shape: tuple[int, ...], patch: int, levels: int) -> None:
    """Raise ValueError if convolutions on this many levels do not fit inputs of this shape."""
    if len(shape) != 2:
        raise ValueError(
            f"mapping='conv' needs images of shape (height, width), but shape={shape}: choose mapping='ladder', or set "
            "channels if one dimension is that of colour"
        )
    least = patch * 2 ** (levels - 1)
    if min(shape) < least:
        raise ValueError(
            f"conv_channels has {levels} levels, which with patch={patch} need images of at least {least} x {least}, "
            f"but shape={shape}: give fewer levels, a smaller patch, or mapping='ladder'"
        )
