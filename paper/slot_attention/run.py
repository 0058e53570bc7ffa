"""Slot Attention on the scenes of this package: Tagger's sources, update, optimiser and scores, another model.

# S seeds, always one here · B batch · K slots · P positions · n scenes
"""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from paper.quick import SIDES
from paper.slot_attention.model import SlotAutoencoder
from taggernet.config.run import Config, DataConfig, OptimiserConfig, RuntimeConfig
from taggernet.config.validate import check_count
from taggernet.data import Scenes
from taggernet.evaluation import Evaluation, Metrics
from taggernet.rng import Key
from taggernet.tag.grouping import batches
from taggernet.training.adam import TrainState
from taggernet.training.datasets import BUILT_IN, load_split, source
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.objective import Batch, Costs, Objective
from taggernet.training.precision import in_bfloat16, is_compiled, precision_of_products
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop
from taggernet.training.validation import check_built_in

Record = dict[str, Any]
_SHAPES: dict[str, DataConfig] = {
    "tetrominoes": DataConfig(name="tetrominoes", size=35),
    "sprites": DataConfig(name="sprites", size=64, objects=5, min_objects=2),
}
PUBLISHED_RATE = 4e-4


def data_of(name: str) -> DataConfig:
    """The data of this name as they were published; new scenes at every update."""
    if name not in BUILT_IN:
        raise ValueError(f"data={name!r} is not known: choose one of {', '.join(BUILT_IN)}")
    return replace(_SHAPES.get(name, DataConfig(name=name)), mode="fresh")


@dataclass(frozen=True)
class SlotAttentionRun:
    """Slot Attention as published, but for fewer updates (500,000 in the paper, where the rate halves five times)."""

    data: DataConfig = field(default_factory=lambda: data_of("sprites"))
    slots: int = 0
    """K; 0: one more than the most objects, and 4 for TextureMNIST, as for Tagger."""
    iterations: int = 3
    """Rounds of attention."""
    width: int = 32
    """Channels of the convolutions."""
    dim: int = 64
    """Width of a slot."""
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(
            lr=PUBLISHED_RATE, batch=64, updates=100_000, schedule="cosine", warmup=5_000, final=0.03
        )
    )
    seeds: int = 1
    """Models, trained one after the other, with seeds first_seed, first_seed + 1, ..."""
    first_seed: int = 0
    """The first of the seeds."""
    evaluate_every: int = 5_000
    """Updates between two evaluations on validation scenes; 0: only at the end."""
    evaluate_scenes: int = 1_000
    """Validation scenes used while training."""
    test: bool = True
    """Score the test split at the end; leave it alone while choosing settings."""
    device: str = "auto"
    """auto, cpu, cuda, ..."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Compile the update and capture it as one CUDA graph; auto: on CUDA only."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """Precision of the convolutions; auto: bfloat16 on CUDA."""
    progress: bool = True
    """Show a progress bar."""

    def __post_init__(self) -> None:
        for name, low in (("slots", 0), ("iterations", 1), ("width", 1), ("dim", 1), ("seeds", 1)):
            check_count(name, getattr(self, name), low=low)

    @property
    def groups(self) -> int:
        """K."""
        return self.slots or (4 if self.data.name.startswith("texture") else self.data.objects + 1)


LOOKS = 60
"""How often validation is looked at in a training whose best weights, or whose speed, count; evenly spaced."""


def between_looks(updates: int) -> int:
    """Updates from one look at validation to the next."""
    return max(1, updates // LOOKS)


def of_length(run: SlotAttentionRun, updates: int, lr: float) -> SlotAttentionRun:
    """With this many updates, a twentieth of them to warm up as in the paper, and this rate."""
    optimiser = replace(run.optimiser, updates=updates, warmup=updates // 20, lr=lr)
    return replace(run, optimiser=optimiser, evaluate_every=between_looks(updates))


def quick_slots(run: SlotAttentionRun) -> SlotAttentionRun:
    """The same at toy size: seconds, and its metrics mean nothing."""
    small = SIDES.get(run.data.name, run.data.size)
    return replace(
        run,
        data=replace(run.data, train=200, valid=40, test=40, size=small, digits="fixture"),
        width=8,
        dim=16,
        optimiser=replace(run.optimiser, batch=8, updates=10, warmup=2),
        evaluate_every=5,
        evaluate_scenes=20,
        compile="no",
    )


def run_slot_attention(run: SlotAttentionRun) -> Record:
    """Train each seed; score the weights that were best on validation, there and once on the test split."""
    check_built_in(run.data)
    device = pick_device(run.device)
    scenes = {name: load_split(run.data, name) for name in (("valid", "test") if run.test else ("valid",))}
    record: Record = {
        "method": "slot-attention",
        "config": asdict(run),
        "slots": run.groups,
        "environment": environment(),
        "seeds": [],
    }
    for seed in range(run.first_seed, run.first_seed + run.seeds):
        training = Training(run, seed, device, scenes["valid"])
        with precision_of_products(device):
            seconds = training.run_updates()
        if not training.finished:
            raise KeyboardInterrupt
        found: Record = {name: training.score(part, training.best.weights) for name, part in scenes.items()}
        record["parameters"] = sum(w.numel() for w in training.model.parameters())
        record["seeds"].append(
            {
                "seed": seed,
                "chosen_update": training.best.update,
                "training_seconds": seconds,
                "milliseconds_per_update": 1000 * training.spent.seconds["updates"] / run.optimiser.updates,
                "gib": torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None,
                "curve": training.curve,
                **found,
            }
        )
    record["summary"] = {name: _summary([seed[name] for seed in record["seeds"]]) for name in scenes}
    return record


def _summary(metrics: list[dict[str, float]]) -> Record:
    """Mean and sample standard deviation over seeds; the spread of one seed is null."""
    return {
        name: {
            "mean": statistics.fmean(one[name] for one in metrics),
            "sd": statistics.stdev(one[name] for one in metrics) if len(metrics) > 1 else None,
        }
        for name in metrics[0]
    }


class SlotObjective(Objective):
    """The squared error of the autoencoder in the place of Tagger's cost, so that the same update minimises it."""

    def __init__(self, model: SlotAutoencoder, half: bool) -> None:
        nn.Module.__init__(self)
        self.add_module("model", model)
        self.half_precision = half

    def forward(self, batch: Batch, noise: Key, masks: Key, first: int = 0) -> Costs:
        model = cast(SlotAutoencoder, self._modules["model"])
        stacked = batch.x.ndim == 3
        x = (batch.x[0] if stacked else batch.x) * 2 - 1
        weights = {name: w[0] if stacked else w for name, w in model.named_parameters()}
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.half_precision):
            decoded = functional_call(model, weights, (x,))
        error = (decoded.whole.flatten(1) - x).square().mean()
        error = error[None] if stacked else error
        return Costs(error, error, torch.zeros_like(error))


class Chosen(NamedTuple):
    """The weights that were best on validation, and after which update."""

    score: float
    update: int
    weights: dict[str, Tensor]


class Training(UpdateLoop):
    """One seed in training."""

    metric = "ARI"

    def __init__(self, run: SlotAttentionRun, seed: int, device: torch.device, valid: Scenes) -> None:
        self.run, self.valid, self.seed, self.device = run, valid[: run.evaluate_scenes], seed, device
        self.half = in_bfloat16(run.precision, device)
        torch.manual_seed(seed)
        sides = cast(tuple[int, int], valid.shape)
        self.model = SlotAutoencoder(
            sides, valid.channels, slots=run.groups, iterations=run.iterations, width=run.width, dim=run.dim
        ).to(device)
        weights = {name: w.detach().clone()[None] for name, w in self.model.named_parameters()}
        train = load_split(run.data, "train") if run.data.mode == "fixed" else valid
        config = replace(Config(), data=run.data, optimiser=run.optimiser)
        part = Part.of(run.optimiser.batch)
        update = Update(
            SlotObjective(self.model, self.half),
            source(config, device, [seed], part, train),
            TrainState.fresh(weights, ema=run.optimiser.ema > 0),
            run.optimiser,
            Key.of([seed], device),
            part,
            compiled=is_compiled(run.compile, device),
        )
        every = run.evaluate_every or run.optimiser.updates
        runtime = RuntimeConfig(log_every=every, evaluate_every=every, checkpoint_every=0, progress=run.progress)
        super().__init__(update, run.optimiser, runtime, [seed])
        self.curve: list[Record] = []
        self.best = Chosen(-math.inf, 0, {})

    def log(self, costs: Tensor) -> None:
        self.curve.append({"step": self.step, "loss": costs[:, 0].mean().item()})

    def evaluate(self) -> float:
        weights = {name: w[0] for name, w in self.update.current_state().evaluated.items()}
        found = self.score(self.valid, weights)
        self.curve[-1] |= {"valid": found, "seconds_trained": self.seconds_trained}
        score = found.get("ari_foreground", found["ami"])
        if score > self.best.score:
            self.best = Chosen(score, self.step, {name: w.clone() for name, w in weights.items()})
        return found["ari"]

    @torch.no_grad()
    def score(self, scenes: Scenes, weights: dict[str, Tensor]) -> dict[str, float]:
        """AMI, ARI and foreground ARI of the slots' masks, as for Tagger; ``cost`` is the squared error."""
        x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
        labels, errors = [], []
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self.seed)  # the same start of the slots at every evaluation
            for _, part in batches(x, 100):
                rows = part.to(self.device).float() * 2 - 1
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
                    decoded = functional_call(self.model, weights, (rows,))
                labels.append(decoded.masks.argmax(1).to(torch.uint8))
                errors.append((decoded.whole.flatten(1) - rows).square().mean(1))
        cost = torch.cat(errors).cpu().numpy()[None, None]
        metrics: Metrics = Evaluation(scenes, cost, torch.cat(labels)[None, None]).metrics()
        return {name: values[0][0] for name, values in metrics.items()}


def summary_lines(record: Record) -> list[str]:
    """What the command prints: the means over the seeds, and the time."""
    lines = []
    for split, metrics in record["summary"].items():
        shown = [f"{name} {value['mean']:.3f}" + _spread(value["sd"]) for name, value in metrics.items()]
        lines.append(f"{split}: {', '.join(shown)} (n={len(record['seeds'])})")
    per_update = statistics.fmean(seed["milliseconds_per_update"] for seed in record["seeds"])
    return [*lines, f"{per_update:.2f} ms per update, {record['parameters']:,} parameters"]


def _spread(sd: float | None) -> str:
    return "" if sd is None or math.isnan(sd) else f" ± {sd:.3f}"
