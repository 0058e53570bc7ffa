"""Many seeds in one run: each is the run of that seed alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toys import records, toy

from taggernet import pretrained
from taggernet.tagger import Tagger
from taggernet.training import train
from taggernet.training.checkpoint import load_latest
from taggernet.training.seeds import carry_over, initial_weights, one_seed

SCHEDULES = {
    "plain": {},
    "cosine, clip, ema": {"schedule": "cosine", "warmup": 3, "final": 0.1, "clip": 0.02, "ema": 0.8},
}


@pytest.mark.parametrize("optimiser", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("mode", ["fixed", "fresh"])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_each_seed_equals_its_run_alone(norm: str, mode: str, optimiser: dict[str, float], tmp_path: Path) -> None:
    together = train(toy(norm, mode, seeds=3, first_seed=4, **optimiser), tmp_path / "together")
    losses = [record["loss"] for record in records(tmp_path / "together") if "loss" in record]
    assert len(losses) == 3
    for index, seed in enumerate([4, 5, 6]):
        alone = train(toy(norm, mode, first_seed=seed, **optimiser), tmp_path / str(seed))
        assert [loss[index] for loss in losses] == pytest.approx(
            [record["loss"][0] for record in records(tmp_path / str(seed)) if "loss" in record], rel=1e-5
        )
        for name, weight in alone.weights.items():
            torch.testing.assert_close(together.weights[name][index], weight[0], rtol=1e-3, atol=2e-5, msg=name)
        assert together.metrics["cost"][index] == pytest.approx(alone.metrics["cost"][0], rel=1e-4)
    assert len(set(losses[-1])) == 3, "seeds that are all alike prove nothing"


def test_each_seed_has_a_checkpoint_and_a_model_of_its_own(tmp_path: Path) -> None:
    config = toy(seeds=2, first_seed=3, ema=0.5)
    run = train(config, tmp_path)
    found = load_latest(tmp_path, config, "cpu")
    assert found is not None
    for index, seed in enumerate([3, 4]):
        saved = Tagger.load(tmp_path / f"seed-{seed}").state_dict()
        for name, weight in run.weights.items():
            assert torch.equal(saved[name], weight[index])
            assert torch.equal(saved[name], found[0].average[name][index]), "evaluation uses the average"


def test_initial_weights_follow_the_seed_alone() -> None:
    config = toy().model
    both, one = initial_weights(config, [7, 8], "cpu"), initial_weights(config, [8], "cpu")
    for name in one:
        assert torch.equal(both[name][1], one[name][0])
    torch.manual_seed(123)  # torch's own generator has no say
    again = initial_weights(config, [8], "cpu")
    assert all(torch.equal(one[name], again[name]) for name in one)


def test_matrices_start_at_one_over_fan_in() -> None:
    weights = initial_weights(replace(toy().model, widths=(300, 200)), [0], "cpu")
    for name, weight in weights.items():
        if name.endswith(".weight"):
            assert weight.std().item() == pytest.approx(weight.shape[1] ** -0.5, rel=0.03)
            assert abs(weight.mean().item()) < 0.03 * weight.shape[1] ** -0.5 * 3
    start = dict(Tagger(replace(toy().model, widths=(300, 200))).named_parameters())
    for name in weights:
        if not name.endswith(".weight"):
            assert torch.equal(weights[name][0], start[name])


def test_one_seed_out_of_a_stack() -> None:
    weights = initial_weights(toy().model, [0, 1], "cpu")
    model = one_seed(toy().model, weights, 1)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, weights[name][1])
        assert parameter.untyped_storage().nbytes() == parameter.nbytes, "a view would keep all seeds alive"


def test_second_phase_keeps_what_fits_and_starts_the_rest_fresh(tmp_path: Path) -> None:
    """Seed by seed; the top level of the first phase has no place any more."""
    first = train(toy(seeds=2), tmp_path / "first")
    second = replace(toy(seeds=2, updates=1, lr=1e-12), start_from=str(tmp_path / "first"))
    second = replace(second, model=replace(second.model, widths=(24, 16, 8, 6)))
    run = train(second, tmp_path / "second")
    fresh = initial_weights(second.model, [0, 1], "cpu")
    carried = 0
    for name, weight in run.weights.items():
        same = name in first.weights and first.weights[name].shape == weight.shape
        carried += same
        torch.testing.assert_close(weight, first.weights[name] if same else fresh[name], rtol=0, atol=1e-9)
    assert 0 < carried < len(run.weights)
    assert set(carry_over(fresh, {})) == set(fresh)


def test_layers_of_a_first_phase_that_begin_at_random_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = toy(updates=1, lower_layers=2, lower_rate=0.1)
    config = replace(config, runtime=replace(config.runtime, progress=True))
    first = train(config, tmp_path / "first")
    assert "they begin at random here: say with --start-from" in " ".join(capsys.readouterr().err.split())
    train(replace(config, start_from=str(tmp_path / "first")))
    train(config, start=first.weights)
    assert "begin at random" not in " ".join(capsys.readouterr().err.split())


def test_second_phase_starts_from_weights_in_memory_as_from_a_folder(tmp_path: Path) -> None:
    first = train(toy(seeds=2), tmp_path / "first")
    before = {name: w.detach().clone() for name, w in first.weights.items()}
    second = replace(toy(seeds=2, updates=3), start_from=str(tmp_path / "first"))
    second = replace(second, model=replace(second.model, widths=(24, 16, 8, 6)))
    from_folder, from_memory = train(second), train(replace(second, start_from="first"), start=first.weights)
    for name, weight in from_folder.weights.items():
        assert torch.equal(weight, from_memory.weights[name]), name
    assert all(torch.equal(w, before[name]) for name, w in first.weights.items()), "the first phase is left as it was"
    with pytest.raises(ValueError, match="weights of 2 seeds, but seeds=3"):
        train(replace(second, seeds=3), start=first.weights)


def test_a_model_or_a_shipped_name_starts_every_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train(toy(), tmp_path / "first")
    monkeypatch.setattr(pretrained, "SHIPPED", tmp_path / "weights")
    first.model().save(tmp_path / "weights" / "mine")
    for start in (str(tmp_path / "first" / "seed-0"), "mine"):
        run = train(replace(toy(seeds=2, updates=1, lr=1e-12), start_from=start))
        for name, weight in run.weights.items():
            torch.testing.assert_close(weight, first.weights[name].expand_as(weight), rtol=0, atol=1e-9)


def test_a_model_of_other_sizes_cannot_be_started_from(tmp_path: Path) -> None:
    """Nothing would be carried over, and nobody would know."""
    folder = train(toy(updates=1)).model().save(tmp_path / "model")
    for change in ({"widths": (32, 16, 8)}, {"shape": (9, 9)}):
        other = replace(toy(), start_from=str(folder))
        other = replace(other, model=replace(other.model, **change))
        other = replace(other, data=replace(other.data, size=other.model.shape[0]))
        with pytest.raises(
            ValueError, match=r"has inputs of shape \(8, 8\) and widths \(24, 16, 8\), but this run has"
        ):
            train(other)


def test_second_phase_without_its_first_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        train(replace(toy(), start_from=str(tmp_path / "nowhere")))
