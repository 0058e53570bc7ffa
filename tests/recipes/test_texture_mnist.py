"""The paper's numbers are what the recipes of TextureMNIST say."""

from __future__ import annotations

import pytest

from taggernet.recipes import recipe


@pytest.mark.parametrize(
    ("name", "widths", "epochs", "rate", "noise", "iterations"),
    [
        ("texture-mnist-1", (3000, 2000, 1000), 150, 1e-3, 0.2, (3, 5)),
        ("texture-mnist-2", (3000, 2000, 1000), 150, 1e-3, 0.2, (3, 5)),
        ("texture-mnist-2-labels-1k", (3000, 2000, 1000, 500, 250), 40, 2e-3, 0.15, (4, 4)),
        ("texture-mnist-1-labels-50k", (3000, 2000, 1000, 500, 250), 40, 5e-4, 0.18, (4, 4)),
        ("texture-mnist-2-reader-labels-50k", (3000, 2000, 1000), 50, 1e-3, 0.18, (4, 5)),
    ],
)
def test_the_papers_data_and_layers(
    name: str, widths: tuple[int, ...], epochs: int, rate: float, noise: float, iterations: tuple[int, int]
) -> None:
    """Batch 100, K = 4; epochs x scenes / batch updates; the up-left digit on top."""
    c = recipe(name)
    assert (c.model.widths, c.optimiser.lr, c.model.noise) == (widths, rate, noise)
    assert c.optimiser.updates == epochs * c.data.train // c.optimiser.batch
    assert (c.optimiser.batch, c.data.train, c.data.valid, c.data.test) == (100, 50_000, 10_000, 10_000)
    assert (c.iterations, c.test_iterations, c.groups, c.test_groups) == (*iterations, 4, 4)
    assert (c.data.mode, c.data.depth) == ("fixed", "up-left")
    assert c.optimiser.schedule == ("cosine" if c.class_cost else "constant")
    assert c.data.label_subset == ("per-seed" if c.class_cost else "shared")
    assert c.model.classes == (10 if c.class_cost else 0)


def test_a_second_phase_carries_the_layers_of_the_first() -> None:
    for digits in (1, 2):
        first = recipe(f"texture-mnist-{digits}").model
        for labels, count in (("1k", 1_000), ("50k", 50_000)):
            second = recipe(f"texture-mnist-{digits}-labels-{labels}")
            assert second.model.widths[: len(first.widths)] == first.widths
            assert second.data.labels == count
    small = recipe("texture-mnist-2-small").model
    assert recipe("texture-mnist-2-small-labels-50k").model.widths == small.widths
    assert recipe("texture-mnist-2-small-labels-50k").model.ratio_variance == small.ratio_variance
