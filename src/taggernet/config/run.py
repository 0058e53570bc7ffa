"""The configuration of a run: frozen dataclasses whose field docstrings are the command line's help."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from taggernet.config.validate import check_fields
from taggernet.data.textures import Depth, DigitPool
from taggernet.tagger import TaggerConfig


@dataclass(frozen=True)
class DataConfig:
    """Where x comes from."""

    name: str = "shapes"
    """shapes, texture-mnist-1, texture-mnist-2, or a .npz, .npy or .h5 file of your own."""
    mode: Literal["fixed", "fresh"] = "fixed"
    """fixed: one data set, shuffled every epoch (the paper); fresh: new scenes at every update."""
    train: int = 50_000
    """Scenes in the fixed training set."""
    valid: int = 10_000
    """Scenes for validation."""
    test: int = 10_000
    """Scenes for the final test."""
    seed: int = 0
    """Fixes the data set; the same for all seeds of a run."""
    objects: int = 3
    """Shapes: objects per scene."""
    size: int = 20
    """Shapes: height and width of a scene."""
    style: str = "paper"
    """Shapes: 'paper' for its three shapes, 'small' for the small preset's."""
    digits: Literal["mnist", "fixture"] = "mnist"
    """TextureMNIST: the digits; fixture: the few hundred that travel with the package, for a toy run."""
    depth: Depth = "up-left"
    """TextureMNIST2: which digit is on top; up-left: always the up-left one (the paper's data); random: either."""
    digit_pool: DigitPool = "split"
    """TextureMNIST: split: validation scenes have digits of their own; shared: training and validation scenes are drawn
    from one pool of 60,000 digits (the paper's data)."""
    labels: int = 0
    """How many training scenes have labels; 0: none, of your own data all that have one."""
    label_subset: Literal["shared", "per-seed"] = "shared"
    """TextureMNIST: whether all seeds have the same labelled scenes, or each draws its own."""
    label_pass: Literal["shared", "separate"] = "shared"
    """Where every scene has a label: one pass serves both costs, or labelled scenes have a pass of their own."""
    permuted: bool = False
    """Apply one fixed permutation to the elements of every scene: nothing may depend on their order."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class OptimiserConfig:
    """Adam, and how its step size changes."""

    lr: float = 4e-4
    """Learning rate (the largest one, for a schedule)."""
    batch: int = 100
    """Scenes per update, over all processes."""
    updates: int = 50_000
    """Number of updates: epochs x scenes / batch."""
    schedule: Literal["constant", "cosine"] = "constant"
    """constant, or a cosine from lr down to final x lr."""
    warmup: int = 0
    """Updates over which the rate rises linearly from 0."""
    final: float = 0.0
    """Cosine: the last rate as a share of lr."""
    clip: float = 0.0
    """Largest norm of a seed's gradient; 0: no clipping."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW): each update takes rate x weight_decay of every matrix away; 0: none."""
    ema: float = 0.0
    """Decay of an average of the weights that evaluation uses; 0: none."""
    v_rate: float = 1.0
    """Real inputs: learning rate of the variance v, relative to that of everything else. As v = exp(asinh(w)), Adam
    takes 1 / (2 v lr) updates to bring it down to v, however soon a smaller one would fit."""
    lower_layers: int = 0
    """How many layers, counted from the input and each with its decoder, have a rate of their own: in a second phase
    those that the first has trained; 0: none."""
    lower_rate: float = 1.0
    """Their learning rate, relative to that of the layers above."""
    beta1: float = 0.9
    """Adam's memory of the gradient."""
    beta2: float = 0.999
    """Adam's memory of its square."""
    eps: float = 1e-8
    """Adam's epsilon."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.v_rate >= 0:
            raise ValueError(f"v_rate={self.v_rate} must not be negative: 1 treats v like every other weight")
        if self.lower_rate != 1 and not self.lower_layers:
            raise ValueError(f"lower_rate={self.lower_rate} was given for no layers: set lower_layers, e.g. 3")


@dataclass(frozen=True)
class RuntimeConfig:
    """How to run it. Nothing here changes what is computed beyond rounding, so a run may go on with other values."""

    device: str = "auto"
    """auto takes CUDA, then MPS, then the CPU; or name one, e.g. cuda:1."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Compile the update and capture it as one CUDA graph; auto: on CUDA only."""
    log_every: int = 100
    """Updates between two records of the loss."""
    evaluate_every: int = 5_000
    """Updates between two evaluations on validation scenes; 0: only at the end."""
    evaluate_scenes: int = 1_000
    """Validation scenes used while training."""
    checkpoint_every: int = 5_000
    """Updates between two checkpoints; 0: only when the run ends or is interrupted."""
    resident: int = 2_048
    """Own data that need more MiB than this stay on the disk, and the host gathers each batch."""
    progress: bool = True
    """Show a progress bar."""
    tensorboard: bool = True
    """Also write tensorboard's files."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Config:
    """A whole run."""

    recipe: str = "shapes"
    """Name of the recipe this came from."""
    model: TaggerConfig = field(default_factory=TaggerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    groups: int = 4
    """K in training."""
    iterations: int = 3
    """T in training."""
    test_groups: int = 4
    """K in evaluation."""
    test_iterations: int = 5
    """T in evaluation."""
    evaluation_batch: int = 100
    """Scenes per evaluation batch, whose statistics BatchNorm uses."""
    discount: float = 1.0
    """Share of an iteration in the denoising cost, relative to the next one's; 1: all alike (the paper)."""
    class_cost: float = 0.0
    """Weight of the classification cost of the last iteration."""
    class_dropout: float = 0.0
    """Share of units left out at every level on the way up to the classes, in the last iteration of the pass that the
    classification cost sees; 0: none (the paper)."""
    class_reach: Literal["all", "reader"] = "all"
    """What the classification cost trains: everything down to the groups (the paper), or with class_widths the
    layers that read them alone, so that few labels do not bend the groups."""
    class_agreement: float = 0.0
    """Weight, relative to the classification cost, of how far the classes that are read from scenes without labels with
    units left out (class_dropout) are from those read with all units; 0: labelled scenes alone teach classes."""
    start_from: str = ""
    """Folder of a finished run whose weights this one starts from, seed by seed (second phase)."""
    start_columns: Literal["as-trained", "unit"] = "as-trained"
    """Second phase, BatchNorm: unit divides every column of the first phase's matrices by its norm. The function stays
    the same, and the learning rate turns old layers as fast as fresh ones."""
    seeds: int = 1
    """How many models to train at once, with seeds first_seed, first_seed + 1, ..."""
    first_seed: int = 0
    """The first of the seeds."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """Of the matrix products; auto: bfloat16 on CUDA. Weights, statistics and likelihoods are always float32."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount={self.discount} must be from 0 (only the last iteration counts) to 1 (all do)")
        if self.start_columns == "unit" and self.model.norm != "batch":
            raise ValueError(
                f"start_columns='unit' was given with norm={self.model.norm!r}: only BatchNorm leaves the function "
                "unchanged; set start_columns to 'as-trained'"
            )
        if self.class_cost and not self.model.classes:
            raise ValueError("class_cost is set but the model has no classes: set classes, e.g. 10")
        if self.class_agreement and not (self.model.class_widths and self.class_dropout):
            raise ValueError(
                f"class_agreement={self.class_agreement} compares classes read with units left out and those read with "
                "all: set class_widths, e.g. (1000, 500), and class_dropout, e.g. 0.3"
            )
        if self.class_reach == "reader" and not self.model.class_widths:
            raise ValueError(
                "class_reach='reader' was given, but nothing reads the classes beside the Ladder: set "
                "class_widths, e.g. (1000, 500), or class_reach to 'all'"
            )

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))


def differing_fields(ours: Any, theirs: Any, prefix: str = "") -> list[str]:
    """Names of the fields in which two configurations differ, the runtime left out."""
    if not is_dataclass(ours):
        return [] if ours == theirs else [prefix]
    names = [f.name for f in fields(ours) if f.name != "runtime"]
    found: list[str] = []
    for name in names:
        found += differing_fields(getattr(ours, name), getattr(theirs, name), f"{prefix}.{name}".lstrip("."))
    return found


def to_json(config: Config) -> dict[str, Any]:
    return asdict(config)


def from_json(content: dict[str, Any], source: object) -> Config:
    """The configuration in a run's config.json, every field checked by name."""
    from taggernet.model_io import model_config

    def build(kind: type, values: Any) -> Any:
        if not isinstance(values, dict):
            raise ValueError(f"{source}: {kind.__name__} must be an object, not {type(values).__name__}")
        unknown = sorted(set(values) - {f.name for f in fields(kind)})
        if unknown:
            raise ValueError(f"{source} has unknown fields {unknown} in {kind.__name__}")
        try:
            return kind(**values)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{source}: {error}") from None

    values = dict(content)
    try:
        parts = {
            "model": model_config(values.pop("model"), source),
            "data": build(DataConfig, values.pop("data")),
            "optimiser": build(OptimiserConfig, values.pop("optimiser")),
            "runtime": build(RuntimeConfig, values.pop("runtime")),
        }
        config: Config = build(Config, values | parts)
    except KeyError as missing:
        raise ValueError(f"{source} lacks the field {missing}") from None
    return config
