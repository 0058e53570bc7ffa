"""What training leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from torch import Tensor

from taggernet.arrays import Array
from taggernet.config.run import Config
from taggernet.evaluation import Metrics
from taggernet.tagger import Tagger
from taggernet.training.seeds import one_seed


@dataclass(frozen=True)
class Run:
    """What training leaves: the weights of all seeds and the last metrics on validation."""

    config: Config
    weights: dict[str, Tensor]
    step: int
    seconds: float
    """Of training, in all calls that worked on the run."""
    metrics: Metrics
    folder: Path | None = None
    done_early: bool = False
    """Whether groups had formed and validation was flat before the last update (``patience``)."""
    freeze_on: Array | None = None
    """Scenes on which BatchNorm's statistics are frozen once training is finished; None: never."""
    times: dict[str, float] = field(default_factory=dict)
    """Seconds by what they were spent on, from the command's start to its end."""

    def __repr__(self) -> str:
        """Short: the weights would fill pages."""
        last = {name: f"{fmean(seed[-1] for seed in of_seeds):.3f}" for name, of_seeds in self.metrics.items()}
        validation = ", ".join(f"{name} {value}" for name, value in last.items())
        seeds, updates = self.config.seed_list, f"{self.step:,} of {self.config.optimiser.updates:,} updates"
        return f"<run of {self.config.recipe}, seeds {seeds}, {updates}, validation: {validation}; {self.folder}>"

    @property
    def finished(self) -> bool:
        return self.done_early or self.step >= self.config.optimiser.updates

    def model(self, index: int = 0) -> Tagger:
        """The model of the index-th seed, as it is saved."""
        config = self.config
        k, t = config.test_groups, config.test_iterations
        model = one_seed(config.model, self.weights, index, groups=k, iterations=t)
        if self.freeze_on is None or not self.finished:
            return model
        model.to(next(iter(self.weights.values())).device)  # where this is fast
        model.freeze_statistics(self.freeze_on, k, t, batch_size=max(2, config.optimiser.batch))
        return model.to("cpu")
