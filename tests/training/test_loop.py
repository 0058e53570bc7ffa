"""``train_to_end``: finished models, or KeyboardInterrupt. Models of a user's data are left with frozen statistics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_files import sensors, short, write

import taggernet as tn
from taggernet.recipes import recipe
from taggernet.tag.informed import by_parts, find_parts
from taggernet.training import Run, datasets, loop
from taggernet.training.auto_config import config_for
from taggernet.training.loop import train_to_end


def test_an_unfinished_run_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    config = recipe("small")
    config = replace(config, optimiser=replace(config.optimiser, updates=10))
    asked: list[Any] = []

    def stopped(*arguments: Any, start: Any, since: Any) -> Run:
        asked.append((*arguments, start, since))
        return Run(config, {}, step, 1.0, {})

    monkeypatch.setattr(loop, "train", stopped)
    step = 9
    with pytest.raises(KeyboardInterrupt):
        train_to_end(config, "runs/mine", start={}, since=1.0)
    step = 10
    assert train_to_end(config, "runs/mine", start={}, since=1.0).finished
    assert asked == [(config, "runs/mine", None, {}, 1.0)] * 2


@pytest.mark.parametrize("resident", [0, 2048])
def test_batchnorm_models_of_own_data_are_frozen(resident: int, tmp_path: Path) -> None:
    """In memory or read from the disk; a second phase starts from their weights, with the statistics of the batch."""
    arrays = sensors()
    config = short(config_for(write(tmp_path / "my.npy", arrays)))
    runtime = replace(config.runtime, resident=resident)
    config = replace(config, seeds=2, runtime=runtime, model=replace(config.model, norm="batch"))
    run = tn.train(config, tmp_path / "run")
    loaded = tn.Tagger.from_pretrained(tmp_path / "run" / "seed-0")
    assert loaded.config == replace(config.model, frozen_iterations=config.test_iterations)
    for name, tensor in run.model().state_dict().items():
        assert tensor.equal(loaded.state_dict()[name]), name
    x = arrays["x"]
    np.testing.assert_allclose(loaded.group(x[:1], 2).masks, loaded.group(x, 2).masks[:1], rtol=0, atol=1e-4)
    assert len(tn.evaluate(tmp_path / "run", device="cpu")["figures"]["cost"]) == 2
    second = tn.train(replace(config, start_from=str(tmp_path / "run")), tmp_path / "second")
    assert set(second.weights) == set(run.weights)


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_recipes_and_layernorm_are_not_frozen(norm: Any, tmp_path: Path) -> None:
    arrays = sensors()
    own = replace(short(config_for(write(tmp_path / "my.npy", arrays))), recipe="own")
    config = own if norm == "layer" else short(recipe("small"))
    run = tn.train(replace(config, model=replace(config.model, norm=norm)))
    assert run.finished
    assert not run.model().config.frozen_iterations


@pytest.mark.parametrize("resident", [0, 2048])
def test_masks_start_from_the_parts_of_the_data(resident: int, tmp_path: Path) -> None:
    """Those of the training scenes for every seed; they are not trained, and saved and resumed with a run."""
    arrays = sensors()
    config = replace(short(config_for(write(tmp_path / "my.npy", arrays))), seeds=2)
    model = replace(config.model, start="parts", norm="layer")
    config = replace(config, model=model, runtime=replace(config.runtime, resident=resident))
    x = torch.from_numpy(arrays["x"][datasets.own_rows(config.data, "train").rows]).reshape(-1, 10)
    wanted = find_parts(tn.Tagger(model).inputs(x).detach().reshape(-1, 10, 1), "common")
    longer = replace(config, optimiser=replace(config.optimiser, updates=8))
    for run in (tn.train(config, tmp_path / "run"), tn.train(longer, tmp_path / "run")):
        for name, part in wanted._asdict().items():
            for found in run.weights[f"start_{name}"]:
                torch.testing.assert_close(found, part, rtol=1e-4, atol=1e-4)
    loaded = tn.Tagger.from_pretrained(tmp_path / "run" / "seed-1")
    plain = tn.Tagger(replace(loaded.config, start="random"))
    informed, random = (one.group(arrays["x"], 2).history[0].m_pre for one in (loaded, plain))
    seen = loaded.inputs(torch.from_numpy(arrays["x"]).reshape(-1, 10))
    torch.testing.assert_close(informed, by_parts(seen, random, 1, wanted), atol=1e-2, rtol=1e-2)
