"""Groups that talk: against a loop over groups, in any order, for any K; and without them everything is as before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import functional_call

from taggernet.nets.group_attention import GroupAttention
from taggernet.nets.roles import named_roles
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig

CONFIG = TaggerConfig(shape=(3, 4), widths=(16, 12, 8), norm="layer", group_attention=5, noise=0.1)


def shaken(module: Any, seed: int = 0) -> Any:
    """All parameters away from their start, where the gate is closed."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.add_(0.4 * torch.randn_like(parameter) * (name != "w"))
    return module


def test_it_is_the_equation_group_by_group() -> None:
    attention, groups = shaken(GroupAttention(6, 3)), 4
    z = torch.randn(5 * groups, 6)
    found = attention(z, groups).detach().numpy()
    rows = z.double().numpy().reshape(5, groups, 6)
    query, key, value, gate = (
        part.detach().double().numpy()
        for part in (attention.query.weight, attention.key.weight, attention.value.weight, attention.gate)
    )
    for scene in range(5):
        for k in range(groups):
            others = [j for j in range(groups) if j != k]
            scores = np.array([0.0, *(rows[scene, k] @ query @ (rows[scene, j] @ key) / np.sqrt(3) for j in others)])
            shares = np.exp(scores) / np.exp(scores).sum()
            heard = sum(share * (rows[scene, j] @ value) for share, j in zip(shares[1:], others, strict=True))
            np.testing.assert_allclose(found[scene * groups + k], heard * gate[0], rtol=1e-4, atol=1e-5)


def test_a_group_alone_hears_nothing_and_a_fresh_one_neither() -> None:
    z = torch.randn(6, 6)
    assert torch.equal(shaken(GroupAttention(6, 3))(z, 1), torch.zeros(6, 6))
    assert torch.equal(GroupAttention(6, 3)(z, 3), torch.zeros(6, 6))


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_the_order_of_the_groups_plays_no_part(groups: int, norm: Any) -> None:
    model = shaken(Tagger(replace(CONFIG, norm=norm)))
    x = (torch.rand(7, 12) < 0.4).float()
    start, order = model.start(7, groups, Key.of(0)), torch.randperm(groups)
    other = start.map(lambda part: part[:, order])
    for one, two in zip(model.iterate(x, start, 3), model.iterate(x, other, 3), strict=True):
        torch.testing.assert_close(two.m, one.m[:, order], rtol=0, atol=1e-3)
        torch.testing.assert_close(two.z, one.z[:, order], rtol=0, atol=1e-3)


def test_groups_hear_each_other_and_no_other_scene() -> None:
    """A change of one group's state reaches the others of its scene, through attention alone, and no other scene."""
    attention = shaken(GroupAttention(6, 3))
    z = torch.randn(12, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(attention(z, 4)[0].sum(), z)
    reached = gradient.abs().sum(1) > 0
    assert reached.tolist() == [True] * 4 + [False] * 8


def test_every_parameter_learns_and_belongs_to_the_topmost_layer() -> None:
    model = shaken(Tagger(CONFIG))
    x = (torch.rand(7, 12) < 0.4).float()
    *_, last = model.iterate(x, model.start(7, 3, Key.of(0)), 2)
    model.cost(x, last).mean().backward()
    parts = {name: p for name, p in model.named_parameters() if "attention" in name}
    assert len(parts) == 4
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parts.values())
    roles = named_roles(model)
    assert {roles[name].layer for name in parts} == {2}


def test_stacked_seeds_are_each_seed_alone() -> None:
    attention = GroupAttention(6, 3)
    stacked = {name: torch.randn(2, *p.shape) for name, p in attention.named_parameters()}
    z = torch.randn(2, 8, 6)
    together = functional_call(attention, stacked, (z, 4))
    for seed in range(2):
        alone = functional_call(attention, {name: p[seed] for name, p in stacked.items()}, (z[seed], 4))
        torch.testing.assert_close(together[seed], alone)


def test_with_a_closed_gate_and_without_attention_all_is_the_same_bit_for_bit() -> None:
    talking, silent = Tagger(CONFIG), Tagger(replace(CONFIG, group_attention=0))
    shaken(silent)
    assert not [name for name in silent.state_dict() if "attention" in name]
    talking.load_state_dict(silent.state_dict(), strict=False)
    x = (np.random.default_rng(0).random((5, 3, 4)) < 0.4).astype(np.float32)
    for groups in (1, 3, 6):
        assert np.array_equal(talking.group(x, groups, 4).masks, silent.group(x, groups, 4).masks)


def test_convolutions_have_it_too() -> None:
    config = TaggerConfig((8, 8), mapping="conv", conv_channels=(4, 6), widths=(8, 6), norm="layer", group_attention=3)
    model = shaken(Tagger(config))
    x = (np.random.default_rng(0).random((3, 8, 8)) < 0.4).astype(np.float32)
    before = model.group(x, 3, 2).masks
    with torch.no_grad():
        model.mapping.ladder.attention.gate.zero_()
    assert not np.allclose(before, model.group(x, 3, 2).masks)


def test_it_is_saved_and_loaded(tmp_path: Any) -> None:
    model = shaken(Tagger(CONFIG))
    x = (np.random.default_rng(0).random((5, 3, 4)) < 0.4).astype(np.float32)
    found = Tagger.load(model.save(tmp_path / "model"))
    assert found.config.group_attention == 5
    assert np.array_equal(found.group(x, 3, 2).masks, model.group(x, 3, 2).masks)
