"""The configuration of a baseline, and a plain function per cell of Table 2.

Names are method-data-labels, e.g. ladder-texture-mnist-2-1k; with -fresh behind it, the same on compositions drawn
anew at every update, with -permuted on elements in another order; a Ladder with -unwhitened sees scenes as they are.
ladder-mnist-1k is the Ladder's own anchor, permutation-invariant MNIST (Rasmus et al.: 0.84 %).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import Literal

from paper.baselines.convnet import CHANNELS
from taggernet.config.run import OptimiserConfig
from taggernet.config.validate import Range, check_fields, check_integer, check_number
from taggernet.recipes.texture_mnist import shorthand

Method = Literal["mlp", "ladder", "convnet"]
Data = Literal["mnist", "texture-mnist-1", "texture-mnist-2"]
Compositions = Literal["fixed", "fresh"]


@dataclass(frozen=True)
class BaselineConfig:
    """A baseline: the method, its data, how it is trained, and how many times."""

    recipe: str = "mlp-texture-mnist-1-50k"
    """Name of the recipe this came from."""
    method: Method = "mlp"
    """mlp (FC MLP), ladder (FC Ladder, Rasmus et al. 2015) or convnet (Model C)."""
    data: Data = "texture-mnist-1"
    """mnist (plain digits), texture-mnist-1 or texture-mnist-2."""
    depth: Literal["up-left", "random"] = "up-left"
    """Of two digits, the one on top (the same as DataConfig.depth)."""
    labels: int = 50_000
    """Training scenes with labels: all, or a multiple of 10, equally many of each class (by the first digit)."""
    widths: tuple[int, ...] = (2000, 2000, 2000)
    """Hidden widths; for the convnet the channels of its seven convolutions."""
    whiten: float = 0.0
    """Whiten the input by the covariance of the scenes that the method may know (ZCA), with this share of their mean
    variance added to every variance; 0: take it as it is."""
    input_noise: float = 0.0
    """Standard deviation of the Gaussian noise on the input, in training."""
    layer_noise: float = 0.0
    """Standard deviation of the Gaussian noise on every level after its normalisation, in training."""
    lambdas: tuple[float, ...] = ()
    """Ladder: weights of the denoising costs, from the input to the top; empty: 1000, 10, 0.1, 0.1, ..."""
    normalise_estimates: bool = True
    """Ladder: normalise an estimate by the clean path's statistics before its cost (the paper)."""
    labelled: Compositions = "fixed"
    """fixed: the scenes of the training set; fresh: new compositions of labelled digits at every update."""
    unlabelled: Compositions = "fixed"
    """Ladder: the same for its scenes without labels."""
    permuted: bool = False
    """Apply one fixed permutation to the elements of every scene (the same as DataConfig.permuted)."""
    digits: Literal["mnist", "fixture"] = "mnist"
    """fixture: the six hundred bundled digits, for a toy run."""
    data_seed: int = 0
    """Fixes the scenes and which of them have labels; the same for all seeds."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    select: Literal["last", "best"] = "last"
    """Of each seed, keep the last weights, or those with the lowest error on validation."""
    evaluate_every: int = 2_500
    """Updates between two looks at validation; 0: only at the end."""
    statistics: int = 10_000
    """Training scenes whose moments the looks at validation use; the end uses all."""
    seeds: int = 5
    """How many models to train at once, with seeds first_seed, first_seed + 1, ..."""
    first_seed: int = 0
    """The first of the seeds."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """Of the products in training; auto: bfloat16 on CUDA. Evaluation is float32."""
    device: str = "auto"
    """auto takes CUDA, then MPS, then the CPU; or name one, e.g. cuda:1."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Compile the update and capture it as one CUDA graph; auto: on CUDA only."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("labels", "statistics"):
            check_integer(name, getattr(self, name), Range(1))
        for name in ("whiten", "input_noise", "layer_noise"):
            check_number(name, getattr(self, name), Range(0))
        if self.method != "ladder" and (self.lambdas or self.unlabelled == "fresh"):
            raise ValueError(f"lambdas and unlabelled belong to the ladder, not to the {self.method}: leave them out")
        if self.data == "mnist" and "fresh" in (self.labelled, self.unlabelled):
            raise ValueError("plain mnist has no compositions to draw: leave labelled and unlabelled at fixed")

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))


LABELS = (100, 1_000, 10_000, 50_000)
"""Numbers of labels over which the curve of errors goes; the table has 1,000 and 50,000."""


def _name(method: Method, data: Data, labels: int) -> str:
    return f"{method}-{data}-{shorthand(labels)}"


def mlp(data: Data, labels: int) -> BaselineConfig:
    """FC MLP: 2000-2000-2000 with all labels, 1000-1000 with few; on whitened scenes, with noise to suit."""
    few = labels < 50_000
    return BaselineConfig(
        recipe=_name("mlp", data, labels),
        method="mlp",
        data=data,
        labels=labels,
        widths=(1000, 1000) if few else (2000, 2000, 2000),
        whiten=0.1 if few or data == "texture-mnist-1" else 0.01,
        input_noise=1.0 if few else 0.5,
        layer_noise=0.3 if few else 0.5,
        optimiser=OptimiserConfig(lr=1e-3, batch=100, updates=3_000 if few else 20_000, schedule="cosine"),
        select="best",
        evaluate_every=100 if few else 2_500,
    )


def convnet(data: Data, labels: int) -> BaselineConfig:
    """ConvNet: Model C with BatchNorm; with all labels on scenes as they are, with fewer on whitened ones, with noise.

    5,000 updates with few labels; with all, 25 epochs.
    """
    two = data == "texture-mnist-2"
    updates = max(5_000, min(12_500, labels + 2_000))
    lr = (8e-3 if two else 4e-3) * (2 if labels >= 10_000 else 1)
    whiten, input_noise, layer_noise = 0.3, 0.3, 0.5
    if labels >= 50_000:
        whiten, input_noise, layer_noise = 0.0, 0.0, 0.0
    elif labels >= 10_000 and not two:
        whiten, input_noise, layer_noise = 0.1, 0.5, 0.3
    return BaselineConfig(
        recipe=_name("convnet", data, labels),
        method="convnet",
        data=data,
        labels=labels,
        widths=CHANNELS,
        whiten=whiten,
        input_noise=input_noise,
        layer_noise=layer_noise,
        optimiser=OptimiserConfig(lr=lr, batch=100, updates=updates, schedule="cosine"),
        select="best",
        evaluate_every=updates // (20 if labels < 50_000 else 10),
    )


def ladder(data: Data, labels: int) -> BaselineConfig:
    """FC Ladder on whitened scenes, with the costs and the noise that validation chose, the same for both data sets.

    Unwhitened, textures are nearly all that denoising has to explain, and it teaches next to nothing of digits.
    """
    few = labels < 10_000
    return BaselineConfig(
        recipe=_name("ladder", data, labels),
        method="ladder",
        data=data,
        labels=labels,
        widths=(3000, 2000, 1000, 500, 250),
        whiten=0.01 if few else 0.1,
        input_noise=0.6,
        layer_noise=0.15 if few else 0.3,
        lambdas=(300.0, 3.0, *[0.01] * 5) if few else (100.0, 1.0, *[0.1] * 5),
        optimiser=OptimiserConfig(lr=1e-3, batch=100, updates=50_000, schedule="cosine"),
        select="best",
    )


def unwhitened_ladder(data: Data, labels: int) -> BaselineConfig:
    """FC Ladder on scenes as they are, with the costs and the noise that validation chose for them."""
    few = labels < 10_000
    return replace(
        ladder(data, labels),
        recipe=f"{_name('ladder', data, labels)}-unwhitened",
        whiten=0.0,
        input_noise=0.3 if few else 0.1,
        layer_noise=0.3,
        lambdas=(1000.0, *[0.0] * 6) if few else (10.0, 0.1, *[0.01] * 5),
    )


def ladder_anchor() -> BaselineConfig:
    """The Ladder on plain MNIST with 1,000 labels: widths, costs and noise of Rasmus et al."""
    return BaselineConfig(
        recipe=_name("ladder", "mnist", 1_000),
        method="ladder",
        data="mnist",
        labels=1_000,
        widths=(1000, 500, 250, 250, 250),
        input_noise=0.3,
        layer_noise=0.2,
        lambdas=(2000.0, 20.0, *[0.1] * 5),
        optimiser=OptimiserConfig(lr=2e-3, batch=100, updates=75_000, schedule="cosine"),
        evaluate_every=5_000,
    )


def fresh(config: BaselineConfig) -> BaselineConfig:
    """The same on compositions drawn anew at every update, of the digits that have labels and, for the Ladder, of all.

    With few labels that is other labels than the paper's: those of 1,000 digits, as in Tagger by our own recipe, not of
    1,000 scenes.
    """
    return replace(
        config,
        recipe=f"{config.recipe}-fresh",
        labelled="fresh",
        unlabelled="fresh" if config.method == "ladder" else "fixed",
    )


def permuted(config: BaselineConfig) -> BaselineConfig:
    """The same on scenes whose elements are shuffled by one fixed permutation: no image prior can help."""
    return replace(config, recipe=f"{config.recipe}-permuted", permuted=True)


def _all() -> dict[str, BaselineConfig]:
    textures: tuple[Data, ...] = ("texture-mnist-1", "texture-mnist-2")
    cells = [make(data, labels) for make in (mlp, ladder, convnet) for data in textures for labels in (50_000, 1_000)]
    plain = [unwhitened_ladder(data, labels) for data in textures for labels in (50_000, 1_000)]
    renewed = [fresh(cell) for cell in cells]
    shuffled = [permuted(cell) for cell in cells if cell.method == "convnet" and cell.data == "texture-mnist-2"]
    curve = [make(data, labels) for make in (ladder, convnet) for data in textures for labels in LABELS]
    return {config.recipe: config for config in [*cells, *plain, *renewed, *shuffled, *curve, ladder_anchor()]}


BASELINES: dict[str, BaselineConfig] = _all()


def baseline(name: str) -> BaselineConfig:
    """The configuration of a baseline by its name."""
    if name not in BASELINES:
        near = difflib.get_close_matches(name, BASELINES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(BASELINES)}"
        raise ValueError(f"there is no baseline {name!r}: {hint}")
    return BASELINES[name]


def quick(config: BaselineConfig) -> BaselineConfig:
    """The same at toy size, on the bundled digits: it takes seconds, and its metrics mean nothing."""
    least = 4 if config.method == "convnet" else 16
    return replace(
        config,
        digits="fixture",
        labels=400 if config.labels >= 50_000 else 100,
        widths=tuple(max(least, width // 50) for width in config.widths),
        optimiser=replace(config.optimiser, batch=20, updates=20, warmup=min(config.optimiser.warmup, 5)),
        evaluate_every=10,
        seeds=min(config.seeds, 2),
    )
