"""Frozen statistics: what they are, in numpy; that no scene depends on its batch; where they are used and where not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from taggernet import fast
from taggernet.config.run import Config
from taggernet.data import Scenes, shapes
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.model_io import WEIGHTS, Bits
from taggernet.nets import BatchNorm, MLPMapping
from taggernet.nets.frozen import batch_norms
from taggernet.nets.norm import FrozenNorm
from taggernet.rng import Key
from taggernet.tag import Mapped, State
from taggernet.tag.grouping import features
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.seeds import carry_over, initial_weights

CONFIG = TaggerConfig(shape=(2, 3), widths=(8, 6, 4), classes=3)
HEAD = replace(CONFIG, class_widths=(7, 5), class_input="masks")
IMAGES = replace(HEAD, class_conv_channels=(3,))
REAL = replace(CONFIG, kind="real", classes=0, scale=2.0, offset=1.0)


def tagger(config: TaggerConfig = CONFIG, seed: int = 0, mapping: Any = None) -> Tagger:
    """All parameters away from their start."""
    torch.manual_seed(seed)
    model = Tagger(config, mapping)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.4 * torch.randn_like(parameter) * (name != "w"))
    return model


def scenes(n: int = 100, config: TaggerConfig = CONFIG, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = (
        rng.random((n, *config.shape)) < rng.random((n, 1, 1))
        if config.kind == "binary"
        else rng.normal(1, 2, (n, 2, 3))
    )
    return x.astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_they_are_the_means_of_the_batches_by_hand() -> None:
    """One hidden layer, two batches of six scenes, two iterations: the mapping and its statistics in numpy."""
    groups, x = 3, scenes(12)
    config = replace(CONFIG, classes=0)
    model = tagger(config, mapping=MLPMapping(6, (5,), "batch"))
    model.freeze_statistics(x, groups, iterations=2, batch_size=6)
    (norm,) = batch_norms(model)
    parameters = {name: p.detach().double().numpy() for name, p in model.mapping.named_parameters()}  # type: ignore[attr-defined]
    order = Key.of(0).fold("order").permutation(12)
    rows = torch.from_numpy(x.reshape(12, 6))[order]
    means, variances = np.zeros((2, 2, 5)), np.zeros((2, 2, 5))
    for batch, first in enumerate((0, 6)):
        state = model.start(6, groups, Key.of(0).fold("masks"), first)
        for i in range(2):
            seen = features(model.likelihood, rows[first : first + 6], state, model.v).detach().double().numpy()
            product = seen.reshape(18, 24) @ parameters["hidden.0.weight"]
            means[batch, i], variances[batch, i] = product.mean(0), product.var(0)
            h = np.maximum((product - product.mean(0)) / np.sqrt(product.var(0) + 1e-10) + parameters["bias.0"], 0)
            z_pre, m_pre = np.split((h @ parameters["out.weight"] + parameters["out_bias"]).reshape(6, 3, 12), 2, -1)
            m = np.exp(m_pre) / np.exp(m_pre).sum(1, keepdims=True)
            z, m, z_pre, m_pre = (torch.from_numpy(a).float() for a in (sigmoid(z_pre), m, z_pre, m_pre))
            state = State(z=z, m=m, fed=z_pre, m_pre=m_pre)
    assert norm.mean is not None
    assert norm.variance is not None
    np.testing.assert_allclose(norm.mean[:, 0].numpy(), means.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.variance[:, 0].numpy(), variances.mean(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", [CONFIG, HEAD, IMAGES, REAL])
def test_of_one_batch_they_change_nothing(config: TaggerConfig) -> None:
    """Frozen on a single batch, that batch is grouped as before, and every norm has its place."""
    model, x = tagger(config), scenes(40, config)
    x = x[Key.of(0).fold("order").permutation(40).argsort()]
    shuffled = x[Key.of(0).fold("order").permutation(40)]
    before = model.group(shuffled, 3, 4)
    assert model.freeze_statistics(x, 3, 4) is model
    assert model.config == replace(config, frozen_iterations=4)
    after = model.group(shuffled, 3, 4)
    for old, new in zip(before.history, after.history, strict=True):
        torch.testing.assert_close(new.m, old.m, rtol=0, atol=1e-6)
        torch.testing.assert_close(new.z, old.z, rtol=0, atol=1e-5)
    assert all(norm.mean is not None and norm.mean.shape == (4, 1, norm.features) for norm in batch_norms(model))


@pytest.mark.parametrize("config", [CONFIG, HEAD, IMAGES, REAL])
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_a_scene_alone_is_grouped_as_in_any_batch(config: TaggerConfig, groups: int) -> None:
    """Any K and any T, also beyond those of the freezing; six iterations carry on the rounding of the first."""
    model = tagger(config)
    x = scenes(100, config, seed=1)
    start = model.start(100, groups, Key.of(0))
    rows = torch.from_numpy(x.reshape(100, 6))

    def grouped(chosen: Tensor) -> State:
        begin = start.map(lambda part: part[chosen])
        with torch.no_grad():
            *_, last = model.iterate(model.inputs(rows[chosen]), begin, 6)
        return last

    everything, alone, mixed = torch.arange(100), torch.tensor([7]), Key.of(0).permutation(100)
    model.eval()
    assert not torch.allclose(grouped(everything).z[7], grouped(alone).z[0], atol=1e-3)
    model.freeze_statistics(scenes(200, config), 3, 4)
    together = grouped(everything)
    torch.testing.assert_close(grouped(alone).z[0], together.z[7], rtol=0, atol=2e-4)
    torch.testing.assert_close(grouped(alone).m[0], together.m[7], rtol=0, atol=2e-4)
    torch.testing.assert_close(grouped(mixed).m, together.m[mixed], rtol=0, atol=2e-4)


def test_iterations_beyond_the_last_use_its_statistics() -> None:
    norm = BatchNorm(features=3)
    norm.mean, norm.variance = torch.randn(2, 1, 3), torch.rand(2, 1, 3)
    for iteration, stored in [(1, 0), (2, 1), (3, 1), (99, 1)]:
        for given in (iteration, torch.tensor(iteration)):
            found = norm.at(given)
            assert isinstance(found, FrozenNorm)
            assert torch.equal(found.mean, norm.mean[stored])
            assert torch.equal(found.variance, norm.variance[stored])
    assert norm.at(None) is norm


def test_they_are_bounded_as_batchnorm_is() -> None:
    """A row far from all that were frozen on stays within what 400 rows could make of it."""
    x = torch.zeros(400, 1)
    x[0] = 1.0
    most = BatchNorm()(x).max()
    found = FrozenNorm(torch.zeros(1, 1), torch.zeros(1, 1), 1e-10)(torch.tensor([[1.0], [-1.0], [1e-4]]))
    assert found[:2].flatten().tolist() == pytest.approx([most.item(), -most.item()], rel=2e-3)
    assert found[2].item() == pytest.approx(10.0)


def test_the_order_of_the_scenes_plays_no_part_in_the_batches() -> None:
    """Sorted scenes would have next to no variance within a batch."""
    x = scenes(400)
    by_sum = x[np.argsort(x.sum((1, 2)))]
    (a, b) = (tagger().freeze_statistics(each, batch_size=20) for each in (x, by_sum))
    for one, other in zip(batch_norms(a), batch_norms(b), strict=True):
        assert one.variance is not None
        assert other.variance is not None
        ratio = other.variance[0].sum() / one.variance[0].sum()
        assert 0.8 < ratio < 1.25


def test_scenes_arrays_and_tensors_are_alike() -> None:
    x = scenes()
    given = (x, torch.from_numpy(x), Scenes.of(x), x.reshape(100, 6))
    frozen = [tagger().freeze_statistics(each, 3, 2).state_dict() for each in given]
    for name, tensor in frozen[0].items():
        assert all(torch.equal(other[name], tensor) for other in frozen[1:])


def test_freezing_again_starts_from_the_statistics_of_the_batch() -> None:
    model = tagger().freeze_statistics(scenes(seed=5), 2, 3).freeze_statistics(scenes(), 3, 2)
    fresh = tagger().freeze_statistics(scenes(), 3, 2)
    assert model.config == fresh.config
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_they_are_saved_and_loaded(bits: Bits, tmp_path: Path) -> None:
    """With fewer bits too they stay float32: a small variance would become 0."""
    model, x = tagger(replace(CONFIG, widths=(400, 60))), scenes(100, seed=2)
    model.freeze_statistics(scenes(), 3, 4)
    norm = batch_norms(model)[0]
    assert norm.variance is not None
    norm.variance[0, 0, 0] = 1e-9
    loaded = Tagger.load(model.save(tmp_path / "model", bits=bits))
    assert loaded.config == model.config
    for name, statistic in model.named_buffers():
        assert torch.equal(loaded.get_buffer(name), statistic)
    if bits == 32:
        np.testing.assert_array_equal(loaded.group(x[:1], 3, 6).masks, model.group(x[:1], 3, 6).masks)


def test_statistics_that_do_not_fit_the_card_are_refused(tmp_path: Path) -> None:
    frozen = tagger().freeze_statistics(scenes(), 3, 4).save(tmp_path / "frozen")
    plain = tagger().save(tmp_path / "plain")
    (plain / WEIGHTS).write_bytes((frozen / WEIGHTS).read_bytes())
    with pytest.raises(ValueError, match=r"does not fit its card: missing nothing, unknown .*mapping\.norm_h\.mean"):
        Tagger.load(plain)


def test_evaluation_uses_them_for_clean_input(tmp_path: Path) -> None:
    """Of several seeds at once; corrupted input is normalised as in training."""
    data = shapes(60, 0, 2, 8, style="small")
    config = TaggerConfig(shape=(8, 8), widths=(12, 8))
    models = [tagger(config, seed) for seed in range(2)]
    before = evaluate_weights(models[0], stack_weights(models), data, groups=3, iterations=3, batch=60)
    for model in models:
        model.freeze_statistics(data, 3, 3, batch_size=20)
    one, all_at_once = (
        evaluate_weights(models[0], stack_weights(models), data, groups=3, iterations=3, batch=batch)
        for batch in (1, 60)
    )
    assert (one.labels == all_at_once.labels).float().mean() > 0.999
    assert (before.labels != all_at_once.labels).float().mean() > 0.01
    np.testing.assert_allclose(all_at_once.cost, before.cost, rtol=1e-5)
    alone = evaluate_weights(models[1], stack_weights(models[1:]), data, groups=3, iterations=3, batch=60)
    assert (alone.labels[0] == all_at_once.labels[1]).float().mean() > 0.999


def test_training_never_uses_them() -> None:
    x = scenes(20)
    model, plain = tagger(), tagger()
    model.freeze_statistics(scenes(seed=3), 3, 4).train()
    np.testing.assert_array_equal(model.group(x, 3).masks, plain.group(x, 3).masks)
    assert not np.allclose(model.eval().group(x, 3).masks, plain.group(x, 3).masks, atol=1e-3)
    with pytest.raises(
        ValueError, match="frozen_iterations=4 was given, but training uses the statistics of the batch"
    ):
        Config(model=model.config)


def test_a_second_phase_takes_the_weights_alone() -> None:
    model = tagger().freeze_statistics(scenes(), 3, 4)
    fresh = initial_weights(CONFIG, [0], "cpu")
    started = carry_over(fresh, stack_weights([model]))
    assert set(started) == set(fresh)
    assert all(torch.equal(started[name][0], p) for name, p in model.named_parameters())


def test_kernels_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA: freezing measures the plain norms, and frozen ones are never fused."""
    monkeypatch.setattr(fast, "applies", lambda *_, **__: True)
    model = tagger()
    with (
        mock.patch.object(fast, "norm_activate", side_effect=ZeroDivisionError),
        mock.patch.object(fast, "norm_combine", side_effect=ZeroDivisionError),
    ):
        model.freeze_statistics(scenes(), 3, 4)
        model.group(scenes(3), 3)
        assert all(norm.kernels == "auto" for norm in batch_norms(model))
        with pytest.raises(ZeroDivisionError):
            model.train().group(scenes(3), 3)


class Own(nn.Module):
    """A user's mapping that knows of no iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = BatchNorm()

    def forward(self, rows: Tensor) -> Mapped:
        x = self.norm(rows)
        return Mapped(x[..., :6], x[..., 6:12])


class Shared(Own):
    """One norm for two places."""

    def __init__(self, features: int | None) -> None:
        super().__init__()
        self.norm = BatchNorm(features=features)

    def forward(self, rows: Tensor, iteration: Any = None) -> Mapped:
        norm = self.norm
        return Mapped(norm(rows[..., :6]), norm(rows[..., 6:12]))


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Tagger(replace(CONFIG, norm="layer")), "has no BatchNorm: its results depend on no other scene"),
        (Tagger(CONFIG, Own()), "Own takes no argument 'iteration'"),
        (Tagger(CONFIG, Shared(None)), "Shared has a BatchNorm without its number of features"),
        (Tagger(CONFIG, Shared(6)), "Shared does not use each BatchNorm once per iteration"),
    ],
)
def test_what_cannot_be_frozen_gets_one_sentence(model: Tagger, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.freeze_statistics(scenes())
    assert not model.config.frozen_iterations


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenes": scenes(1)}, "one scene has no statistics"),
        ({"scenes": np.zeros((9, 5))}, "this model has N=6"),
        ({"groups": 0}, "groups=0 is out of range"),
        ({"iterations": 0}, "iterations=0 is out of range"),
        ({"batch_size": 1}, "batch_size=1 is out of range"),
    ],
)
def test_bad_arguments_get_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tagger().freeze_statistics(**{"scenes": scenes(9)} | options)


def test_a_card_with_layernorm_has_none() -> None:
    with pytest.raises(ValueError, match="frozen_iterations=3 needs BatchNorm, but norm='layer'"):
        TaggerConfig(norm="layer", frozen_iterations=3)
