"""The classifiers of Table 2 that Tagger is compared with: FC MLP, FC Ladder and ConvNet."""

from paper.baselines.recipes import BASELINES, BaselineConfig, baseline, fresh, quick
from paper.baselines.run import run_baseline

__all__ = ["BASELINES", "BaselineConfig", "baseline", "fresh", "quick", "run_baseline"]
