"""Splits and training batches of a configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from toys import fixture_digits, records, shrunk

from taggernet.training import train


@pytest.mark.parametrize("mode", ["fixed", "fresh"])
def test_training_and_evaluation_use_the_same_units(mode: str, tmp_path: Path) -> None:
    """At a learning rate of almost nothing both measure the cost of the same model on the same kind of scenes."""
    config = shrunk("texture-mnist-1", updates=5)
    config = replace(
        config,
        model=replace(config.model, offset=-3.0, scale=0.25),
        data=replace(config.data, mode=mode),
        optimiser=replace(config.optimiser, lr=1e-12, batch=20),
        runtime=replace(config.runtime, evaluate_scenes=20),
        test_iterations=config.iterations,
        test_groups=config.groups,
    )
    with fixture_digits():
        run = train(config, tmp_path)
    trained = [record["loss"][0] for record in records(tmp_path) if "loss" in record]
    evaluated = run.metrics["cost"][0]
    assert sum(trained) / len(trained) == pytest.approx(sum(evaluated) / len(evaluated), rel=0.1)
