"""The figures that the paper prints, to stand beside ours."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A printed figure; its sample standard deviation and number of runs where the paper gives them."""

    value: float
    sd: float | None = None
    n: int | None = None

    def __str__(self) -> str:
        return f"{self.value}" if self.sd is None else f"{self.value} ± {self.sd}"


TABLE_1A: dict[str, dict[str, list[float]]] = {
    "shapes": {"cost": [0.094, 0.068, 0.063, 0.063, 0.063], "ami": [0.58, 0.73, 0.77, 0.79, 0.79]},
    "shapes-layernorm": {"cost": [0.100, 0.069, 0.057, 0.054, 0.054], "ami": [0.70, 0.90, 0.95, 0.96, 0.97]},
}
"""Medians over 20 seeds after iterations 1 to 5, by recipe and metric."""
TABLE_1B = {
    "rc": Published(0.61, 0.005),
    "shapes": Published(0.79, 0.034, 20),
    "shapes-layernorm": Published(0.97, 0.009, 20),
}
"""AMI, median over seeds."""
OBJECTS = {
    "tetrominoes": {"Slot Attention": Published(0.995), "IODINE": Published(0.992)},
    "sprites": {"Slot Attention": Published(0.913), "MONet": Published(0.904), "IODINE": Published(0.767)},
}
"""Foreground ARI on other draws of like data (Locatello et al. 2020, Table 1)."""
TABLE_2 = {
    name: Published(error, sd, 5)
    for name, error, sd in (
        ("mlp-texture-mnist-1-50k", 31.1, 2.2),
        ("mlp-texture-mnist-1-1k", 89.0, 0.2),
        ("mlp-texture-mnist-2-50k", 55.2, 1.0),
        ("mlp-texture-mnist-2-1k", 79.4, 0.3),
        ("ladder-texture-mnist-1-50k", 7.2, 0.1),
        ("ladder-texture-mnist-1-1k", 30.5, 0.5),
        ("ladder-texture-mnist-2-50k", 41.1, 0.2),
        ("ladder-texture-mnist-2-1k", 68.5, 0.2),
        ("convnet-texture-mnist-1-50k", 3.9, 0.3),
        ("convnet-texture-mnist-1-1k", 52.4, 5.3),
        ("convnet-texture-mnist-2-50k", 12.6, 0.4),
        ("convnet-texture-mnist-2-1k", 79.1, 0.8),
        ("texture-mnist-1-labels-50k", 4.0, 0.3),
        ("texture-mnist-1-labels-1k", 10.5, 0.9),
        ("texture-mnist-2-labels-50k", 7.9, 0.3),
        ("texture-mnist-2-labels-1k", 24.9, 1.8),
    )
}
"""Test error in percent, mean over 5 runs, by recipe."""
LADDER_ON_MNIST = Published(0.84, 0.08)
"""Rasmus et al. 2015: test error in percent on permutation-invariant MNIST with 1,000 labels."""
