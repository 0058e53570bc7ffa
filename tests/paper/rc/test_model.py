"""Reconstruction Clustering against brute force, on toy data, and at its border."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paper.rc import RCConfig, ReconstructionClustering
from paper.rc.model import expectation, log_likelihood, start_gamma
from taggernet.data import shapes
from taggernet.metrics import adjusted_mutual_information
from taggernet.rng import Key

TOY = RCConfig(hidden=64, noise=0.2, lr=3e-3, batch=50, epochs=10)


@pytest.fixture(scope="module")
def toy() -> ReconstructionClustering:
    """Trained on single small shapes; two of them make a scene."""
    return ReconstructionClustering(TOY).fit(shapes(2000, objects=1, size=10, style="small"))


def test_e_step_is_the_posterior_of_a_mixture_of_bernoullis() -> None:
    rng = np.random.default_rng(0)
    x, logits = rng.integers(0, 2, (4, 7)), rng.normal(size=(4, 3, 7)).astype(np.float32)
    posterior = np.zeros((4, 3, 7))
    for b in range(4):
        for n in range(7):
            p = [1 / (1 + np.exp(-float(logits[b, k, n]))) for k in range(3)]
            likelihood = [p[k] if x[b, n] else 1 - p[k] for k in range(3)]
            for k in range(3):
                posterior[b, k, n] = likelihood[k] / sum(likelihood)
    log_p = log_likelihood(torch.from_numpy(x).float(), torch.from_numpy(logits))
    np.testing.assert_allclose(expectation(log_p).numpy(), posterior, rtol=1e-5)
    hard = expectation(log_p, "hard").numpy()
    assert np.array_equal(hard.argmax(1), posterior.argmax(1))
    assert set(np.unique(hard)) == {0.0, 1.0}
    assert np.array_equal(hard.sum(1), np.ones((4, 7)))


def test_e_step_stays_finite_where_a_copy_is_certain_and_wrong() -> None:
    log_p = log_likelihood(torch.ones(1, 2), torch.tensor([[[-500.0, -500.0], [-400.0, -500.0]]]))
    assert torch.allclose(expectation(log_p)[0], torch.tensor([[0.0, 0.5], [1.0, 0.5]]))


def test_one_iteration_is_an_m_step_then_an_e_step(toy: ReconstructionClustering) -> None:
    x = torch.from_numpy(shapes(3, objects=2, size=10, style="small").x).flatten(1).float()
    start, after = list(toy.iterate(x, groups=2, iterations=1))
    assert toy.network is not None
    for k in range(2):
        seen = torch.sigmoid(toy.network(start.m[:, k] * x))
        torch.testing.assert_close(after.z[:, k], seen)
    right = torch.where(x[:, None] > 0, after.z, 1 - after.z)
    torch.testing.assert_close(after.m, right / right.sum(1, keepdim=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("e_step", ["soft", "hard"])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_gamma_sums_to_one(toy: ReconstructionClustering, e_step: str, groups: int) -> None:
    model = ReconstructionClustering(RCConfig(e_step=e_step))
    model.network = toy.network
    out = model.group(shapes(4, objects=2, size=10, style="small").x, groups, iterations=3)
    assert out.masks.shape == (4, groups, 10, 10)
    for state in out.history:
        torch.testing.assert_close(state.m.sum(1), torch.ones(4, 100))
        assert (state.m >= 0).all()


def test_toy_training_learns_to_group(toy: ReconstructionClustering) -> None:
    scenes = shapes(200, objects=2, size=10, style="small", split="valid")
    out = toy.group(scenes.x, groups=2, iterations=10)
    score = adjusted_mutual_information(scenes.groups, out.labels).mean()
    chance = adjusted_mutual_information(scenes.groups, out.at(0).labels).mean()
    assert abs(chance) < 0.05
    assert score > 0.6


def test_loss_falls_and_is_reported_to_the_last_update() -> None:
    seen: list[tuple[int, float]] = []
    data = shapes(500, objects=1, size=10, style="small")
    ReconstructionClustering(TOY).fit(data, report=lambda done, loss: seen.append((done, loss)))
    assert [done for done, _ in seen] == [50, 100]
    assert seen[-1][1] < 0.8 * seen[0][1]


def test_the_seed_decides_everything_and_labels_nothing() -> None:
    data = shapes(300, objects=1, size=10, style="small")
    scenes = shapes(20, objects=2, size=10, style="small").x
    config = RCConfig(hidden=16, batch=50, epochs=1)
    first = ReconstructionClustering(config).fit(data, seed=1).group(scenes, 2, 3, seed=5).masks
    torch.manual_seed(123)  # the global generator plays no part
    again = ReconstructionClustering(config).fit(data.x, seed=1)
    assert np.array_equal(first, again.group(scenes, 2, 3, seed=5).masks)
    assert not np.array_equal(first, again.group(scenes, 2, 3, seed=6).masks)
    other = ReconstructionClustering(config).fit(data, seed=2).group(scenes, 2, 3, seed=5).masks
    assert not np.array_equal(first, other)


def test_batches_only_bound_memory(toy: ReconstructionClustering) -> None:
    x = shapes(10, objects=2, size=10, style="small").x
    whole, parts = toy.group(x, 2, 2), toy.group(x, 2, 2, batch_size=3)
    np.testing.assert_allclose(whole.masks, parts.masks, atol=1e-5)


def test_start_is_random_and_normalised() -> None:
    gamma = start_gamma(8, 3, 50, Key.of(0))
    torch.testing.assert_close(gamma.sum(1), torch.ones(8, 50))
    assert torch.equal(gamma[2:5], start_gamma(3, 3, 50, Key.of(0), first=2))


def test_numpy_gives_numpy_and_torch_gives_torch(toy: ReconstructionClustering) -> None:
    x = shapes(4, objects=2, size=10, style="small").x
    arrays, tensors = toy.group(x, 2, 2), toy.group(torch.from_numpy(x), 2, 2)
    assert isinstance(arrays.labels, np.ndarray)
    assert isinstance(tensors.labels, torch.Tensor)
    assert np.array_equal(arrays.labels, tensors.labels.numpy())


def test_grouping_before_fit_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="call fit first"):
        ReconstructionClustering().group(np.zeros((1, 4, 4)))


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.full((2, 10, 10), 0.5), "other than 0 and 1"),
        (np.full((2, 10, 10), np.nan), "NaN"),
        (np.zeros((2, 9, 10)), "90 elements per input, but the network was fitted to 100"),
        (np.zeros((0, 10, 10)), "empty"),
        (np.zeros(100), "pass x"),
    ],
)
def test_bad_inputs_are_named(toy: ReconstructionClustering, x: np.ndarray, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        toy.group(x, 2, 1)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("noise", 1.5, "share of elements"),
        ("lr", 0.0, "is out of range: give a finite number above 0"),
        ("lr", float("nan"), "is out of range: give a finite number above 0"),
        ("output_bias", float("inf"), "is out of range: give a number from"),
        ("epochs", 0, "at least 1"),
        ("hidden", -1, "at least 1"),
        ("e_step", "medium", "choose one of 'soft', 'hard'"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_bad_settings_are_named(field: str, value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        RCConfig(**{field: value})


@pytest.mark.usefixtures("without_typecheck")
def test_bad_counts_are_named(toy: ReconstructionClustering) -> None:
    x = np.zeros((1, 10, 10))
    with pytest.raises(ValueError, match="groups=0"):
        toy.group(x, 0)
    with pytest.raises(TypeError, match=r"iterations=1\.5 is not an integer: give an integer from 1 to 1,000"):
        toy.group(x, 2, 1.5)
    with pytest.raises(ValueError, match="lower batch"):
        ReconstructionClustering().fit(np.zeros((99, 4)))


def test_a_loss_that_runs_away_is_said() -> None:
    data = shapes(100, objects=1, size=10, style="small")
    wild = RCConfig(hidden=8, batch=50, lr=1e36, epochs=5)
    with pytest.raises(ValueError, match="lower lr"):
        ReconstructionClustering(wild).fit(data)
