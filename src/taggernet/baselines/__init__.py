"""The classifiers of Table 2 that Tagger is compared with: FC MLP, FC Ladder and ConvNet."""

from taggernet.baselines.recipes import BASELINES, PAPER, BaselineConfig, baseline, fresh, quick
from taggernet.baselines.row import run_baseline

__all__ = ["BASELINES", "PAPER", "BaselineConfig", "baseline", "fresh", "quick", "run_baseline"]
