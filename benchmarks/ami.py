"""Batched adjusted mutual information against a loop over scikit-learn.

    python benchmarks/ami.py                          # 10,000 Shapes scenes on the CPU
    python benchmarks/ami.py --device cuda --scenes 1000000

Both sides score the same scenes: the true groups of Shapes, background and overlaps unscored, and a
prediction of four groups of which a share of elements is wrong. Ours uses torch's threads, scikit-learn's
loop has one. Reported are the median and the range of
the repeats after one warm-up. scikit-learn runs on at most 10,000 scenes, since its time per scene is
constant; the difference is taken on those.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
import torch
from rich.console import Console
from rich.table import Table
from sklearn.metrics import adjusted_mutual_info_score

import taggernet.data
from taggernet.metrics import adjusted_mutual_information

SKLEARN_SCENES = 10_000
GROUPS = 4


def labellings(scenes: int, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """The true groups of Shapes and a prediction of which up to half the elements are drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.from_numpy(taggernet.data.shapes(scenes, seed=seed).groups)
    wrong = torch.rand(scenes, 1, 1, generator=generator) / 2
    noise = torch.randint(GROUPS, true.shape, generator=generator, dtype=true.dtype)
    pred = torch.where(torch.rand(true.shape, generator=generator) < wrong, noise, true)
    return true.to(device), pred.to(device)


def sklearn_loop(true: np.ndarray, pred: np.ndarray) -> np.ndarray:
    scores = np.empty(len(true))
    for scene, (labels, groups) in enumerate(zip(true, pred, strict=True)):
        scored = labels != 0
        scores[scene] = adjusted_mutual_info_score(labels[scored], groups[scored], average_method="max")
    return scores


def timed(call: Callable[[], object], repeats: int, device: torch.device) -> list[float]:
    """Seconds per repeat, after one call to warm up."""

    def once() -> float:
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    once()
    return [once() for _ in range(repeats)]


def hardware(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    name = names[0].split(":")[1].strip() if names else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    device = torch.device(arguments.device)
    true, pred = labellings(arguments.scenes, arguments.seed, device)
    some_true, some_pred = (labels[:SKLEARN_SCENES].flatten(1).to(torch.int64).cpu().numpy() for labels in (true, pred))

    ours = timed(lambda: adjusted_mutual_information(true, pred), arguments.repeats, device)
    theirs = timed(lambda: sklearn_loop(some_true, some_pred), arguments.repeats, torch.device("cpu"))
    found = adjusted_mutual_information(true[:SKLEARN_SCENES], pred[:SKLEARN_SCENES]).cpu().numpy()
    difference = np.abs(found - sklearn_loop(some_true, some_pred)).max()
    speed_ours = len(true) / statistics.median(ours)
    speed_theirs = len(some_true) / statistics.median(theirs)

    table = Table(title="Adjusted mutual information, max normaliser")
    for column in ("", "scenes", "seconds: median", "range", "scenes/s", "ratio"):
        table.add_column(column, justify="right")
    for name, scenes, seconds, ratio in (
        ("scikit-learn loop", len(some_true), theirs, 1.0),
        ("taggernet", len(true), ours, speed_ours / speed_theirs),
    ):
        median = statistics.median(seconds)
        spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
        table.add_row(name, f"{scenes:,}", f"{median:.3f}", spread, f"{scenes / median:,.0f}", f"{ratio:.1f}")
    console = Console()
    console.print(table)
    console.print(f"largest difference {difference:.1e} · {arguments.repeats} repeats · {hardware(device)}")
    console.print(f"torch {torch.__version__} · scikit-learn {sklearn.__version__} · seed {arguments.seed}")


if __name__ == "__main__":
    main()
