"""Figures of a generalisation record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from drawings import written
from matplotlib.figure import Figure

from paper.charts import generalisation_figure, surface, worst_scenes_figure
from paper.generalisation import generalisation
from taggernet.config.run import DataConfig
from taggernet.evaluation import stack_weights
from taggernet.tagger import Tagger, TaggerConfig

DATA = DataConfig(objects=2, size=10, style="small")


@pytest.fixture
def model() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm="layer", mean=0.28))


@pytest.mark.parametrize("seeds", [1, 3])
def test_figures_of_a_record(model: Tagger, tmp_path: Path, drawn: list[Figure], seeds: int) -> None:
    record = generalisation(
        model, stack_weights([model] * seeds), scenes=30, groups=(2, 3), objects=(1, 2), iterations=2, data=DATA,
        standard=(3, 2, 2),
    )  # fmt: skip
    generalisation_figure(record, tmp_path / "generalisation")
    assert written(tmp_path / "generalisation")
    assert len(drawn[0].axes) == 7
    assert surface(record, "ami", 2)[1, 0] == pytest.approx(np.mean([s[1] for s in record["sweep"][2]["ami"]]))
    worst_scenes_figure(model, record, tmp_path / "worst", data=DATA, columns=4)
    assert written(tmp_path / "worst")
    assert len(drawn[-1].axes) == sum(2 * min(len(w), 4) for w in record["standard"]["worst"][0].values())
