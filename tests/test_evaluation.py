"""Cost, AMI and class error against a naive pass: plain loops in float64, written from the paper's equations.

The oracle calls a model's mapping and reads its w; the likelihood, the loop, the batches, the metrics are its own. It
draws the random start and the noise of all scenes at once, so that a batch which begins at the wrong place shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from taggernet.data import Scenes
from taggernet.evaluation import Evaluation, evaluate_weights, stack_weights
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig

Vector = NDArray[np.float64]
N, CLASSES, SCENES, BATCH, K, T = 6, 4, 7, 3, 3, 3
SEEDS, SEED = 3, 5
"""How many models there are, and the seed of the evaluation."""
BETA, SIGMA = 0.2, 0.3
BINARY = TaggerConfig(shape=(2, 3), widths=(8, 6), noise=BETA, mean=0.3, norm_eps=1e-3)
REAL = TaggerConfig(shape=(2, 3), kind="real", widths=(8, 6), classes=CLASSES, noise=SIGMA, v_start=0.4, norm_eps=1e-3)
CASES = {
    f"{name}, {norm}": replace(config, norm=norm)  # type: ignore[arg-type]
    for norm in ("batch", "layer")
    for name, config in {"binary": BINARY, "real": REAL, "units": replace(REAL, offset=-3.0, scale=4.0)}.items()
}


def models(config: TaggerConfig) -> list[Tagger]:
    """Of several seeds, every parameter random."""
    torch.manual_seed(1)
    found = [Tagger(config).requires_grad_(False) for _ in range(SEEDS)]
    for model in found:
        for parameter in model.mapping.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return found


def scenes(config: TaggerConfig, digits: int = 2) -> Scenes:
    """Random ones in the user's units, some elements unscored, one scene without a label, one with a digit twice."""
    random = np.random.default_rng(2)
    x = random.random((SCENES, 2, 3))
    x = (x < 0.5).astype(np.uint8) if config.kind == "binary" else (x * config.scale + config.offset).astype(np.float32)
    classes = random.integers(0, CLASSES, (SCENES, digits))
    classes[2], classes[4] = 3, -1
    groups = random.integers(0, 4, x.shape)
    return Scenes(x, groups, classes if digits > 1 else classes[:, 0], config.kind)


# --- the naive pass -----------------------------------------------------------------------------------------------


@dataclass
class Naive:
    """Per iteration and scene."""

    cost: list[list[float]] = field(default_factory=list)
    labels: list[list[list[int]]] = field(default_factory=list)
    classes: list[list[list[float]]] = field(default_factory=list)


def naive(model: Tagger, given: Scenes, *, noisy: bool) -> Naive:
    """The scenes of each batch through the loop; each of the lists is in the order of the scenes."""
    config = model.config
    key = Key.of(SEED).fold("evaluation")
    start = key.fold("noisy masks" if noisy else "masks").normal(SCENES, K, N).double().numpy()
    x = (given.x.reshape(SCENES, N).astype(np.float64) - config.offset) / config.scale
    binary = config.kind == "binary"
    x_tilde = corrupted(x, key.fold("noise"), config.kind) if noisy else x
    v = math.exp(math.asinh(float(model.w)))
    found = Naive(*([[] for _ in range(T)] for _ in range(3)))
    for first in range(0, SCENES, BATCH):
        members = range(first, min(first + BATCH, SCENES))
        z = {b: np.full((K, N), config.mean) for b in members}
        m = {b: softmax(start[b]) for b in members}
        fed = dict(z)
        for i in range(T):
            rows = [
                features(x_tilde[b], z[b], m[b], fed[b], k, v, config.kind == "binary")
                for b in members
                for k in range(K)
            ]
            mapped = model.mapping(torch.tensor(np.array(rows)).float())
            for b in members:
                own = slice((b - first) * K, (b - first + 1) * K)
                z_pre, m_pre = mapped.z_pre[own].double().numpy(), mapped.m_pre[own].double().numpy()
                z[b] = 1 / (1 + np.exp(-z_pre)) if binary else z_pre
                fed[b], m[b] = z_pre, softmax(m_pre)
                cost = [minus_log_q(x[b, j], z[b][:, j], m[b][:, j], v, binary) for j in range(N)]
                found.cost[i].append(sum(cost) / N)
                found.labels[i].append([max(range(K), key=lambda k, b=b, j=j: m[b][k, j]) for j in range(N)])  # type: ignore[misc]
                if config.classes:
                    found.classes[i].append(class_shares(mapped.top[own].double().numpy()))
    return found


def corrupted(x: Vector, key: Key, kind: str) -> Vector:
    if kind == "binary":
        flips = key.bernoulli(BETA, SCENES, N).numpy()
        return np.array([[1 - x[b, j] if flips[b, j] else x[b, j] for j in range(N)] for b in range(SCENES)])
    noise = key.normal(SCENES, N).double().numpy()
    return np.array([[x[b, j] + SIGMA * noise[b, j] for j in range(N)] for b in range(SCENES)])


def softmax(values: Vector) -> Vector:
    """Over the groups, element by element."""
    out = np.empty_like(values)
    for j in range(values.shape[1]):
        powers = [math.exp(value - max(values[:, j])) for value in values[:, j]]
        out[:, j] = [power / sum(powers) for power in powers]
    return out


def density(x: float, mean: float, variance: float) -> float:
    return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def features(x: Vector, z: Vector, m: Vector, fed: Vector, k: int, v: float, binary: bool) -> list[float]:
    """[z, m, delta z, L(m)] of group k (the paper's supplement: Eqs. for both kinds of input)."""
    delta, ratio = [], []
    for j in range(N):
        if binary:
            xi = [(1 - 2 * BETA) * z[h, j] + BETA for h in range(K)]
            delta.append((1 - 2 * BETA) * m[k, j] / (sum(xi[h] * m[h, j] for h in range(K)) - 1 + x[j]))
            soft = [p * (1 - 2e-4) + 1e-4 for p in xi]
            likely = [x[j] * p + (1 - x[j]) * (1 - p) for p in soft]
        else:
            delta.append(m[k, j] * (x[j] - z[k, j]))
            likely = [density(x[j], z[h, j], v + SIGMA**2) for h in range(K)]
        ratio.append(likely[k] / sum(likely))
    return [*fed[k], *m[k], *delta, *ratio]


def minus_log_q(x: float, z: Vector, m: Vector, v: float, binary: bool) -> float:
    """Of one element, with the public code's floors: 1e-4 on a probability, 1e-5 on a mask."""
    if binary:
        p = sum(m[k] * z[k] for k in range(K)) * (1 - 2e-4) + 1e-4
        return -math.log(p if x == 1 else 1 - p)
    return -math.log(sum((m[k] + 1e-5) * density(x, z[k], v) for k in range(K)))


def class_shares(top: Vector) -> list[float]:
    """Drop 'no class', add up the groups, make it one (section 3.3)."""
    each = [sum(top[k, c] for k in range(K)) for c in range(CLASSES)]
    return [share / sum(each) for share in each]


def missing(shares: Sequence[float], true: Sequence[int]) -> list[bool]:
    """Which true digits are not among as many of the most probable classes as there are different digits."""
    ranked = sorted(range(CLASSES), key=lambda c: -shares[c])
    return [digit not in ranked[: len(set(true))] for digit in true]


# --- compared -----------------------------------------------------------------------------------------------------


def evaluated(name: str, digits: int = 2) -> tuple[list[Tagger], Scenes, Evaluation]:
    config = CASES[name]
    found, given = models(config), scenes(config, digits)
    options = {"groups": K, "iterations": T, "batch": BATCH, "seed": SEED}
    return found, given, evaluate_weights(found[0], stack_weights(found), given, **options)


@pytest.mark.parametrize("name", CASES)
def test_cost(name: str) -> None:
    seeds, given, found = evaluated(name)
    expected = [naive(model, given, noisy=True).cost for model in seeds]
    assert np.ptp(expected, axis=1).min() > 1e-4, "iterations must differ for this to say anything"
    assert np.ptp(expected, axis=0).min() > 1e-4, "so must seeds"
    np.testing.assert_allclose(found.cost, expected, rtol=2e-3)
    np.testing.assert_allclose(found.metrics()["cost"], np.mean(expected, axis=-1), rtol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_agreement(name: str) -> None:
    seeds, given, found = evaluated(name)
    labels = np.array([naive(model, given, noisy=False).labels for model in seeds])
    np.testing.assert_array_equal(found.labels.numpy(), labels)
    assert len(np.unique(labels)) > 1
    assert given.groups is not None
    true = given.groups.reshape(SCENES, N)
    scores: dict[str, Vector] = {metric: np.empty((SEEDS, T, SCENES)) for metric in ("ami", "ami_arithmetic", "ari")}
    for s, i, b in np.ndindex(SEEDS, T, SCENES):
        scored = true[b] > 0
        pair = true[b][scored], labels[s, i, b][scored]
        scores["ami"][s, i, b] = adjusted_mutual_info_score(*pair, average_method="max")
        scores["ami_arithmetic"][s, i, b] = adjusted_mutual_info_score(*pair, average_method="arithmetic")
        scores["ari"][s, i, b] = adjusted_rand_score(*pair)
    for metric, expected in scores.items():
        np.testing.assert_allclose(getattr(found, metric), expected, atol=1e-7, err_msg=metric)
        np.testing.assert_allclose(found.metrics()[metric], expected.mean(-1), atol=1e-7, err_msg=metric)


@pytest.mark.parametrize("masks", ["mapping", "posterior-result"])
def test_the_best_of_several_starts_is_each_models_own(masks: str) -> None:
    """Of stacked models as of each alone; the cost is that of the loop's own masks."""
    config = replace(CASES["real, layer"], masks=masks)
    found, given = models(config), scenes(config)
    options = {"groups": K, "iterations": T, "seed": SEED}
    stacked = evaluate_weights(found[0], stack_weights(found), given, starts=3, **options)
    key = Key.of(SEED).fold("evaluation").fold("masks")
    x = torch.from_numpy(given.x.reshape(SCENES, N))
    for s, model in enumerate(found):
        alone = model.best_states(x, K, T, key, 0, None, 3)[1:]
        assert torch.equal(stacked.labels[s], torch.stack([state.m.argmax(-2) for state in alone]).to(torch.uint8))
    once = evaluate_weights(found[0], stack_weights(found), given, **options)
    assert not torch.equal(once.labels, stacked.labels)
    plain = models(replace(config, masks="mapping"))
    np.testing.assert_allclose(
        stacked.cost, evaluate_weights(plain[0], stack_weights(plain), given, **options).cost, rtol=1e-6
    )


@pytest.mark.parametrize("background", [0, 1])
def test_agreement_without_the_background(background: int) -> None:
    _, given, found = evaluated("real, layer")
    assert found.ari_foreground is None
    assert "ari_foreground" not in found.metrics()
    known = replace(found, scenes=replace(given, background=background))
    assert given.groups is not None
    true = given.groups.reshape(SCENES, N)
    assert known.ari_foreground is not None
    for s, i, b in np.ndindex(SEEDS, T, SCENES):
        objects = true[b] > background
        expected = adjusted_rand_score(true[b][objects], found.labels[s, i, b].numpy()[objects])
        assert known.ari_foreground[s, i, b] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(known.metrics()["ari_foreground"], known.ari_foreground.mean(-1))


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("binary")])
def test_class_error(name: str, digits: int) -> None:
    seeds, given, found = evaluated(name, digits)
    assert given.classes is not None
    classes = given.classes.reshape(SCENES, -1).tolist()
    labelled = [b for b in range(SCENES) if min(classes[b]) >= 0]
    assert len(labelled) == SCENES - 1
    shares = [naive(model, given, noisy=False).classes for model in seeds]
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities.numpy(), shares, atol=1e-3)
    parts = np.array([[[missing(p[b], classes[b]) for b in labelled] for p in seed] for seed in shares], float)
    assert 0 < parts.mean() < 1
    assert found.error is not None
    np.testing.assert_array_equal(found.error, parts.mean(-1))
    metrics = found.metrics()
    np.testing.assert_allclose(metrics["error"], parts.mean((-1, -2)))
    if digits == 1:
        assert not {"error_first", "error_second"} & set(metrics)
    else:
        np.testing.assert_allclose(metrics["error_first"], parts[..., 0].mean(-1))
        np.testing.assert_allclose(metrics["error_second"], parts[..., 1].mean(-1))


def test_a_group_says_which_class_it_shows() -> None:
    seeds, given, found = evaluated("real, layer")
    assert found.group_classes is not None
    assert found.group_classes.shape == (SEEDS, T, SCENES, K)
    x = torch.from_numpy(given.x).flatten(1)
    *_, last = seeds[1].states(x[:BATCH], K, T, Key.of(SEED).fold("evaluation", "masks"))
    assert last.top is not None
    assert torch.equal(found.group_classes[1, -1, :BATCH], last.top.argmax(-1))


# --- what is not there --------------------------------------------------------------------------------------------


def test_scenes_without_truth_have_a_cost_alone() -> None:
    config = CASES["real, layer"]
    found = models(config)
    given = replace(scenes(config), groups=None, classes=None)
    evaluation = evaluate_weights(found[0], stack_weights(found), given, groups=K, iterations=T, batch=BATCH)
    assert set(evaluation.metrics()) == {"cost"}
    assert evaluation.ami is None


def test_scenes_without_known_groups_do_not_count() -> None:
    """AMI of nothing is 1 by scikit-learn's rule, and so is foreground ARI of a scene without objects."""
    _, given, found = evaluated("real, layer")
    assert given.groups is not None
    groups = given.groups.copy()
    groups[:3], groups[3] = 0, 1
    some = replace(found, scenes=replace(given, groups=groups, background=1))
    assert some.ami is not None
    assert some.ari_foreground is not None
    metrics = some.metrics()
    np.testing.assert_allclose(metrics["ami"], some.ami[..., 3:].mean(-1))
    np.testing.assert_allclose(metrics["ari_foreground"], some.ari_foreground[..., 4:].mean(-1))
    none = replace(found, scenes=replace(given, groups=np.zeros_like(groups), background=1))
    assert not {"ami", "ari", "ari_foreground"} & set(none.metrics())


def test_scenes_without_a_single_label_have_no_error() -> None:
    config = CASES["real, layer"]
    found = models(config)
    given = replace(scenes(config), classes=np.full(SCENES, -1))
    evaluation = evaluate_weights(found[0], stack_weights(found), given, groups=K, iterations=T, batch=BATCH)
    assert evaluation.error is None
    assert set(evaluation.metrics()) == {"cost", "ami", "ami_arithmetic", "ari"}


def test_a_model_without_classes_has_no_error_on_scenes_with_some() -> None:
    _, given, found = evaluated("binary, layer")
    assert given.classes is not None
    assert found.error is None
    assert found.group_classes is None
