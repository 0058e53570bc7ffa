"""Reconstruction Clustering (Greff et al. 2015), the baseline of Table 1b."""

from taggernet.reconstruction_clustering.model import RCConfig, ReconstructionClustering
from taggernet.reconstruction_clustering.row import RCRun, run_rc

__all__ = ["RCConfig", "RCRun", "ReconstructionClustering", "run_rc"]
