"""The configuration of a run: frozen dataclasses whose field docstrings are the command line's help."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from taggernet.config.model import TaggerConfig
from taggernet.config.validate import check_fields

T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    """Where x comes from."""

    name: str = "shapes"
    """shapes, texture-mnist-1, texture-mnist-2, tetrominoes, sprites, or a .npz, .npy or .h5 file of your own."""
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
    """Shapes, tetrominoes, sprites: objects per scene; with min_objects, the most."""
    min_objects: int = 0
    """Shapes, sprites: fewest objects per scene, whose number is then random; 0: every scene has ``objects``."""
    size: int = 20
    """Shapes, tetrominoes, sprites: height and width of a scene."""
    style: Literal["paper", "small"] = "paper"
    """Shapes: 'paper' for its three shapes, 'small' for the small preset's."""
    variant: Literal["colour", "one-colour", "texture"] = "colour"
    """Sprites: a colour for each object, one for all objects of a scene, or a grey texture for each."""
    digits: Literal["mnist", "fixture"] = "mnist"
    """TextureMNIST: the digits; fixture: a few hundred bundled digits, for a toy run."""
    depth: Literal["up-left", "random"] = "up-left"
    """TextureMNIST2: the digit on top; up-left: always the up-left one (the paper's data); random: either."""
    digit_pool: Literal["split", "shared"] = "split"
    """TextureMNIST: split: training and validation have digits of their own; shared: both draw from one pool of 60,000
    (the paper's data)."""
    labels: int = 0
    """Number of labelled training scenes, all of them if there are fewer; 0: none, or for your own data every scene
    that has a label."""
    label_subset: Literal["shared", "per-seed"] = "shared"
    """TextureMNIST: shared: all seeds have the same labelled scenes; per-seed: each seed draws its own."""
    twins: bool = False
    """TextureMNIST, fresh scenes: every second one without labels has the digits of the one before it, with other
    textures and the other digit on top; class_agreement then asks for one answer to both."""
    permuted: bool = False
    """Apply one fixed permutation to the elements of every scene (no image prior)."""
    channels_axis: Literal["none", "first", "last"] = "none"
    """Your own data: which dimension holds the channels of a position, which share a mask: first (n, C, ...), last
    (n, ..., C), or none; guessed for colour images (n, 3, H, W) and (n, H, W, 3)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class OptimiserConfig:
    """Adam and its learning-rate schedule."""

    lr: float = 4e-4
    """Learning rate; with a schedule, its peak."""
    batch: int = 100
    """Scenes per update, over all processes."""
    updates: int = 50_000
    """Number of updates: epochs x scenes / batch."""
    schedule: Literal["constant", "cosine"] = "constant"
    """constant, or cosine decay from lr to final x lr."""
    warmup: int = 0
    """Updates of linear warm-up from 0."""
    final: float = 0.0
    """Cosine: final learning rate as a fraction of lr."""
    clip: float = 0.0
    """Maximum gradient norm, per seed; 0: no clipping."""
    ema: float = 0.0
    """Decay of the exponential moving average of the weights, which evaluation uses; 0: none."""
    v_rate: float = 1.0
    """Real inputs: learning rate of the variance v, relative to lr. v = exp(asinh(w)), so Adam needs about 1 / (2 v lr)
    updates to bring it down to v."""
    lower_layers: int = 0
    """Number of layers, counted from the input and each with its decoder, that use lower_rate; in a second phase, those
    trained in the first; 0: none."""
    lower_rate: float = 1.0
    """Learning rate of the lower layers, relative to lr."""
    lower_wait: int = 0
    """Updates for which the lower layers and v stay as they are, so that the layers above them learn alone at first."""
    beta1: float = 0.9
    """Adam's beta1."""
    beta2: float = 0.999
    """Adam's beta2."""
    eps: float = 1e-8
    """Adam's epsilon."""
    patience: int = 0
    """Your own data: stop early once groups have formed and this many evaluations in a row made neither the cost nor
    the agreement of random starts better; 0: never."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, unset in (("lower_rate", 1), ("lower_wait", 0)):
            if getattr(self, name) != unset and not self.lower_layers:
                raise ValueError(f"{name}={getattr(self, name)} was given for no layers: set lower_layers, e.g. 3")


@dataclass(frozen=True)
class RuntimeConfig:
    """How to run it. These options change results by rounding at most, so a run may be resumed with other values."""

    device: str = "auto"
    """auto: CUDA, else MPS, else the CPU; or a device, e.g. cuda:1."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Compile the update and, on CUDA, capture it as one graph; auto: for a long run, on a CPU if there is a compiler;
    a short one is captured alone. Compiled code is kept in the cache folder of the user for later runs."""
    kernels: Literal["auto", "off"] = "auto"
    """off: only the plain torch equations, also on CUDA; auto: fused Triton kernels where they apply."""
    log_every: int = 100
    """Updates between two log entries of the loss."""
    evaluate_every: int = 5_000
    """Updates between two evaluations on validation scenes; 0: only at the end."""
    evaluate_scenes: int = 1_000
    """Validation scenes used while training."""
    checkpoint_every: int = 5_000
    """Updates between two checkpoints; 0: only when the run ends or is interrupted."""
    resident: int = 2_048
    """Your own data stay on disk and are streamed if they need more MiB of device memory than this."""
    progress: bool = True
    """Say on the terminal how training goes: a progress bar, times, and whether groups formed."""
    tensorboard: bool = True
    """Also write TensorBoard logs."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Config:
    """The configuration of a run."""

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
    test_starts: int = 1
    """Random starts of a scene in evaluation, of which the one whose groups explain it best counts; 1: the paper."""
    evaluation_batch: int = 100
    """Scenes per evaluation batch, whose statistics BatchNorm uses."""
    discount: float = 1.0
    """Weight of an iteration in the denoising cost relative to the next one's; 1: equal weights (the paper)."""
    class_cost: float = 0.0
    """Weight of the classification cost, taken after the last iteration."""
    class_pass: Literal["shared", "own"] = "shared"
    """Where every scene has a label: shared: one batch for both costs; own: a second batch for the classification cost,
    as with few labels (the paper's public code)."""
    class_dropout: float = 0.0
    """Dropout rate on the way up to the classes, in the last iteration of the classification pass; 0: none (the
    paper)."""
    class_distortion: float = 0.0
    """With class_input masks, how much those of an image are turned, stretched and bent in that iteration, each in its
    own way; 1: by up to 15 degrees; 0: not at all."""
    class_reach: Literal["all", "reader"] = "all"
    """What the classification cost trains: all layers (the paper), or with class_widths the class head alone (reader),
    so that few labels do not change the grouping."""
    class_agreement: float = 0.0
    """Weight of the cost of unlabelled scenes, whose classes should be the same with dropout and distortion as without,
    relative to the classification cost; 0: none."""
    start_from: str = ""
    """Weights to start from: a finished run's, seed by seed (second phase), or those of a model by its folder, its
    shipped name or its Hub id."""
    seeds: int = 1
    """How many models to train at once, with seeds first_seed, first_seed + 1, ..."""
    first_seed: int = 0
    """The first of the seeds."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """Precision of matrix products; auto: bfloat16 on CUDA, and for a long run on a CPU that has it, else float32;
    float32 on CUDA is TF32. Weights, statistics and likelihoods are always float32."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.model.frozen_iterations:
            raise ValueError(
                f"frozen_iterations={self.model.frozen_iterations} was given, but training uses the statistics of the "
                "batch: set it to 0, and call freeze_statistics on the trained model"
            )
        if self.class_cost and not self.model.classes:
            raise ValueError("class_cost is set but the model has no classes: set classes, e.g. 10, or class_cost to 0")
        if self.class_agreement and not (self.model.class_widths and (self.class_dropout or self.class_distortion)):
            raise ValueError(
                f"class_agreement={self.class_agreement} needs a class head with dropout or distortion: set "
                "class_widths, e.g. (1000, 500), and class_dropout, e.g. 0.3"
            )
        if self.class_distortion and not (self.model.class_input == "masks" and len(self.model.shape) == 2):
            raise ValueError(
                f"class_distortion={self.class_distortion} is for a class head that reads the masks of images: set "
                "class_widths and class_input masks, or leave it out"
            )
        if self.class_distortion and self.data.permuted:
            raise ValueError(
                f"class_distortion={self.class_distortion} turns images, but permuted elements form none: leave one of "
                "them out"
            )
        if self.data.twins and not (self.class_agreement and self.data.mode == "fresh" and "mnist" in self.data.name):
            raise ValueError(
                "twins are for fresh scenes of TextureMNIST and class_agreement: set these, or leave them out"
            )
        if self.data.twins and self.optimiser.batch % 2:
            raise ValueError(f"twins come in pairs, but batch={self.optimiser.batch}: give an even number")
        if self.class_reach == "reader" and not self.model.class_widths:
            raise ValueError(
                "class_reach='reader' needs a class head: set class_widths, e.g. (1000, 500), or class_reach to 'all'"
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


def is_longer(ours: Config, theirs: Config) -> bool:
    """Whether ours is theirs with more updates or another patience and nothing else: a run that can be resumed."""
    differing = set(differing_fields(ours, theirs))
    more = ours.optimiser.updates >= theirs.optimiser.updates
    return bool(differing) and differing <= {"optimiser.updates", "optimiser.patience"} and more


RETIRED: dict[str, object] = {
    "weight_decay": 0.0, "mixed_groups": [], "start_correlated": False, "levels": 0.0, "residual": 0.0,
}  # fmt: skip
"""Fields of earlier versions that stored configurations still hold, and the one value that had no effect."""


def without_retired(values: dict[str, Any], source: object) -> dict[str, Any]:
    """A stored configuration without retired fields, which may only have had no effect."""
    for name, inert in RETIRED.items():
        if name in values and values[name] != inert:
            raise ValueError(
                f"{source}: {name}={values[name]!r} is an option of an earlier version that no longer exists: only "
                f"{name}={inert!r} can be loaded, or use the version that wrote it"
            )
    return {name: value for name, value in values.items() if name not in RETIRED}


def to_json(config: Config) -> dict[str, Any]:
    return asdict(config)


def from_json(content: dict[str, Any], source: object) -> Config:
    """The configuration in a run's config.json, every field checked by name."""
    parts = {"model": TaggerConfig, "data": DataConfig, "optimiser": OptimiserConfig, "runtime": RuntimeConfig}
    for name in parts:
        if name not in content:
            raise ValueError(f"{source} lacks the field {name!r}: copy or write it again")
    built: dict[str, Any] = {name: build(kind, content[name], source) for name, kind in parts.items()}
    return build(Config, content | built, source)


def with_former_depth(data: dict[str, Any]) -> dict[str, Any]:
    """The stored fields of a DataConfig; version 0.1 wrote no ``depth``, and either digit was on top then."""
    return {"depth": "random"} | data if data.get("name") == "texture-mnist-2" else data


def build(kind: type[T], values: Any, source: object) -> T:
    """A configuration from the object in a JSON file; ``source`` is the file, for the message."""
    if not isinstance(values, dict):
        raise ValueError(f"{source}: {kind.__name__} must be an object, not {type(values).__name__}")
    if kind is DataConfig:
        values = with_former_depth(values)
    values = without_retired(values, source)
    known = set(get_type_hints(kind))
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"{source} has unknown fields {unknown} in {kind.__name__}: expected some of {sorted(known)}")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    except (ValueError, TypeError) as error:
        raise ValueError(f"{source}: {error}") from None
