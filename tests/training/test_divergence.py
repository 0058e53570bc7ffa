"""A loss that is no number stops the run, and what was good stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toys import quiet, records, toy

from taggernet.training import Diverged, train
from taggernet.training.adam import Adam
from taggernet.training.checkpoint import load_latest
from taggernet.training.objective import Batch
from taggernet.training.sources import FixedSource


def test_a_rate_that_is_too_high(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"loss of seed 3 became nan at update \d+.*learning rate 1e\+20") as caught:
        train(toy("layer", "fixed", lr=1e20, first_seed=3), tmp_path)
    assert "--clip" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert isinstance(caught.value, ArithmeticError)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_data_is_named_by_its_step_and_the_last_good_checkpoint_stays(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates 0 to 7 are good, the data of update 8 is not; checkpoints fall after 5 and would after 10."""
    whole = train(toy("batch", "fixed", seeds=2), tmp_path / "whole")
    draw = FixedSource.batch

    def spoiled(self: FixedSource, step: torch.Tensor) -> Batch:
        batch = draw(self, step)
        if int(step) == 8:
            batch.x[1, 0, 0] = value
        return batch

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(FixedSource, "batch", spoiled)
        with pytest.raises(Diverged, match=r"of seed 1 became (nan|-?inf) at update 8; .* after update 5, is kept"):
            train(toy("batch", "fixed", seeds=2), run)
    found = load_latest(run, toy("batch", "fixed", seeds=2), "cpu")
    assert found is not None
    assert found[0].step == 5
    assert all(torch.isfinite(w).all() for w in found[0].weights.values())
    assert not (run / "seed-0").exists()
    again = train(toy("batch", "fixed", seeds=2), run)  # the data mended, it goes on from there
    assert all(torch.equal(again.weights[name], w) for name, w in whole.weights.items())
    assert records(run) == records(tmp_path / "whole")


def test_weights_that_are_no_numbers_are_never_saved(tmp_path: Path) -> None:
    """The loss of the last update was still one: nothing else would notice."""
    config = replace(toy("layer", "fixed", lr=3e38, updates=1), runtime=quiet(log_every=1))
    with pytest.raises(Diverged, match="became NaN or infinite, at the latest at update 0; there is no checkpoint"):
        train(config, tmp_path)
    assert not (tmp_path / "seed-0").exists()
    assert load_latest(tmp_path, config, "cpu") is None


def test_moments_that_are_no_numbers_are_never_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite second moment stills its weight for good, and no loss would tell."""
    update, config = Adam.update, toy("layer", "fixed")

    def steep(self: Adam, gradients: list[torch.Tensor], clip: torch.Tensor, step: torch.Tensor) -> None:
        update(self, [g + 1e30 if int(step) == 7 else g for g in gradients], clip, step)

    monkeypatch.setattr(Adam, "update", steep)
    with pytest.raises(Diverged, match=r"became NaN or infinite, at the latest at update 9; .* update 5, is kept"):
        train(config, tmp_path)
    found = load_latest(tmp_path, config, "cpu")
    assert found is not None
    assert found[0].is_finite
