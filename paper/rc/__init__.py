"""Reconstruction Clustering (Greff et al. 2015), the baseline of Table 1b."""

from paper.rc.model import RCConfig, ReconstructionClustering
from paper.rc.run import RCRun, run_rc

__all__ = ["RCConfig", "RCRun", "ReconstructionClustering", "run_rc"]
