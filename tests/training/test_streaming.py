"""Data that stays on the disk give the same batches as data in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_files import sensors, short, write

import taggernet as tn
from taggernet.data import files
from taggernet.data.lazy import open_data, survey
from taggernet.training.auto_config import config_for
from taggernet.training.datasets import source, training_set
from taggernet.training.sources import LabelledSource, Part
from taggernet.training.streaming import StreamedSource

pytestmark = pytest.mark.usefixtures("without_typecheck")


@pytest.mark.parametrize(("ending", "all_labelled"), [(".npy", False), (".npz", False), (".npz", True), (".h5", False)])
def test_left_on_the_disk_gives_the_same_batches_and_models(
    ending: str, all_labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = sensors() | ({"classes": np.arange(60) % 2} if all_labelled else {})
    path = write(tmp_path / f"my{ending}", arrays)
    config = replace(short(config_for(path)), seeds=2)
    whole, values = tn.train(config), survey(open_data(path))
    monkeypatch.setattr(files, "MAPPED", 0)
    data = open_data(path)
    assert not isinstance(data.x, np.ndarray) or isinstance(data.x, np.memmap)
    for found, wanted in zip(survey(data)[1:], values[1:], strict=True):
        np.testing.assert_allclose(found, wanted)
    disk = replace(config, runtime=replace(config.runtime, resident=0))
    part = Part.of(8)
    train = training_set(disk)
    made = source(disk, torch.device("cpu"), [0, 1], part, train)
    assert isinstance(made.scenes if isinstance(made, LabelledSource) else made, StreamedSource)
    mapped = tn.train(disk)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(mapped.weights[name], weight, rtol=0, atol=1e-6)


def test_an_interrupted_run_from_the_disk_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAPPED", 0)
    config = short(config_for(write(tmp_path / "my.npz", sensors())))
    config = replace(config, runtime=replace(config.runtime, resident=0))
    straight = tn.train(config, tmp_path / "straight")

    def stop(*args: Any) -> Any:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        from taggernet.training.step import Update

        advance = Update.advance
        patch.setattr(Update, "advance", lambda self, n: stop() if self.state.step == 5 else advance(self, n))
        with pytest.raises(RuntimeError, match="power cut"):
            tn.train(config, tmp_path / "cut")
    again = tn.train(config, tmp_path / "cut")
    assert all(torch.equal(again.weights[name], weight) for name, weight in straight.weights.items())
