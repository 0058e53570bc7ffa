"""The loop with any mapping, any K and T; and the edits of a Grouping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from taggernet.nets import LadderMapping, MLPMapping
from taggernet.rng import Key
from taggernet.tag import (
    BernoulliGroups,
    GaussianGroups,
    Grouping,
    Mapped,
    Mapping,
    State,
    Units,
    Variant,
    run,
    start,
    step,
)
from taggernet.tag.grouping import batches, features

B, K, N = 3, 4, 6
V = torch.ones(1, 1, 1)


def echo(rows: Tensor) -> Mapped:
    """A mapping that is not a module: hands back its second and fourth feature."""
    _, m, _, ratio = rows.chunk(4, dim=-1)
    return Mapped(z_pre=m, m_pre=ratio)


def grouping(seed: int = 0, shape: tuple[int, ...] = (2, 3), **options: Any) -> Grouping:
    random = torch.Generator().manual_seed(seed)
    history = []
    for _ in range(3):
        m_pre = torch.randn(B, K, N, generator=random)
        z = torch.rand(B, K, N, generator=random)
        history.append(State(z=z, m=torch.softmax(m_pre, 1), fed=z, m_pre=m_pre, top=torch.ones(B, K, 2)))
    return Grouping(tuple(history), shape, **options)


def test_features_are_ordered_z_m_delta_ratio() -> None:
    state = start(B, K, torch.full((N,), 0.3), Key.of(0))._replace(fed=torch.full((B, K, N), 7.0))
    x = torch.ones(B, N)
    likelihood = BernoulliGroups(0.2)
    z, m, delta_z, ratio = features(likelihood, x, state, V).chunk(4, dim=-1)
    assert torch.equal(z, state.fed)
    assert torch.equal(m, state.m)
    assert torch.equal(delta_z, likelihood.delta_z(x.unsqueeze(1), state.z, state.m, V))
    assert torch.equal(ratio, likelihood.likelihood_ratio(x.unsqueeze(1), state.z, V))


def test_any_callable_can_be_the_mapping() -> None:
    """Rows are b * K + k: what a row's features were comes back to the same example and group."""
    assert isinstance(echo, Mapping)
    state = start(B, K, torch.full((N,), 0.3), Key.of(0))
    x = (Key.of(1).uniform(B, N) > 0.5).float()
    likelihood = GaussianGroups(0.2)
    after = step(echo, likelihood, x, state, V)
    assert torch.equal(after.z, state.m)
    assert torch.equal(after.m_pre, likelihood.likelihood_ratio(x.unsqueeze(1), state.z, V))
    assert torch.equal(after.m, torch.softmax(after.m_pre, 1))
    assert after.top is None


def test_run_is_step_again_and_again() -> None:
    mapping = MLPMapping(N, (8,))
    x, likelihood = torch.ones(B, N), BernoulliGroups(0.2)
    state = start(B, K, torch.full((N,), 0.3), Key.of(0))
    states = list(run(mapping, likelihood, x, state, V, 4))
    assert len(states) == 4
    for given_state in states:
        state = step(mapping, likelihood, x, state, V)
        assert torch.equal(state.z, given_state.z)
        assert torch.equal(state.m, given_state.m)
    assert not torch.equal(states[0].z, states[3].z)


def test_posterior_masks_weigh_the_mappings_by_the_evidence() -> None:
    """Bayes' rule by hand, with densities of torch.distributions."""
    x, state = Key.of(1).normal(B, N), start(B, K, torch.zeros(N), Key.of(0))
    after = step(echo, GaussianGroups(0.5), x, state, 2 * V, Variant(posterior=True))
    prior = torch.softmax(step(echo, GaussianGroups(0.5), x, state, 2 * V).m_pre, 1)
    joint = prior * torch.distributions.Normal(after.z, (2 + 0.25) ** 0.5).log_prob(x.unsqueeze(1)).exp()
    torch.testing.assert_close(after.m, joint / joint.sum(1, keepdim=True))
    x = (x > 0).float()
    after = step(echo, BernoulliGroups(0.2), x, state, V, Variant(posterior=True))
    prior = torch.softmax(step(echo, BernoulliGroups(0.2), x, state, V).m_pre, 1)
    seen = 0.8 * after.z + 0.2 * (1 - after.z)
    joint = prior * torch.where(x.unsqueeze(1) > 0, seen, 1 - seen)
    torch.testing.assert_close(after.m, joint / joint.sum(1, keepdim=True), rtol=1e-3, atol=1e-3)


@given(groups=st.integers(1, 7), iterations=st.integers(1, 5), batch=st.integers(1, 4), ladder=st.booleans())
@settings(max_examples=20)
def test_any_k_t_and_batch(groups: int, iterations: int, batch: int, ladder: bool) -> None:
    torch.manual_seed(0)
    mapping: Mapping = LadderMapping(N, (8, 5), "batch", "stable") if ladder else MLPMapping(N, (8,))
    state = start(batch, groups, torch.full((N,), 0.3), Key.of(0))
    x = (Key.of(1).uniform(batch, N) > 0.5).float()
    *_, last = run(mapping, BernoulliGroups(0.2), x, state, V, iterations)
    assert last.z.shape == last.m.shape == (batch, groups, N)
    assert all(torch.isfinite(part).all() for part in last if part is not None)
    assert last.top is not None
    assert last.top.shape[:2] == (batch, groups)
    torch.testing.assert_close(last.m.sum(1), torch.ones(batch, N))


@pytest.mark.parametrize("likelihood", [BernoulliGroups(0.2), GaussianGroups(0.2, "exact")])
def test_stacked_seeds_run_as_each_alone(likelihood: Any) -> None:
    """start and step with leading dimension S."""
    x = (Key.of(1).uniform(2, B, N) > 0.5).float()
    v = torch.tensor([0.5, 2.0]).reshape(2, 1, 1, 1)
    together = step(echo, likelihood, x, start(B, K, torch.full((N,), 0.3), Key.of([4, 5])), v)
    for row, seed in enumerate([4, 5]):
        alone = step(echo, likelihood, x[row], start(B, K, torch.full((N,), 0.3), Key.of(seed)), v[row])
        torch.testing.assert_close(together.z[row], alone.z)
        torch.testing.assert_close(together.m[row], alone.m)


@given(first=st.integers(0, 1000), seed=st.integers(0, 2**31))
def test_starting_masks_belong_to_a_scene(first: int, seed: int) -> None:
    mean = torch.full((N,), 0.3)
    whole = start(first + 2, K, mean, Key.of(seed))
    part = start(2, K, mean, Key.of(seed), first=first)
    assert torch.equal(whole.m[first:], part.m)


def test_fields_read_the_last_state() -> None:
    out = grouping()
    last = out.history[-1]
    assert out.groups == K
    assert torch.equal(out.masks, last.m.reshape(B, K, 2, 3))
    assert torch.equal(out.reconstructions, last.z.reshape(B, K, 2, 3))
    assert torch.equal(out.denoised, (last.m * last.z).sum(1).reshape(B, 2, 3))
    assert out.labels.shape == (B, 2, 3)
    for b in range(B):
        for j in range(N):
            assert last.m[b, out.labels[b].flatten()[j], j] == last.m[b, :, j].max()
    assert torch.equal(out.top, torch.ones(B, K, 2))


def test_numpy_fields() -> None:
    torch_out, out = grouping(), grouping(as_numpy=True)
    for name in ("masks", "reconstructions", "denoised", "labels", "top"):
        assert isinstance(getattr(out, name), np.ndarray)
        np.testing.assert_array_equal(getattr(out, name), getattr(torch_out, name).numpy())
    without_top = Grouping(tuple(s._replace(top=None) for s in out.history), (2, 3), as_numpy=True)
    assert without_top.top is None


@pytest.mark.parametrize("seeds", [(), (2,)])
@pytest.mark.parametrize("top", [False, True])
def test_states_are_cut_and_joined_along_the_batch(seeds: tuple[int, ...], top: bool) -> None:
    random = torch.Generator().manual_seed(0)
    parts = [torch.rand(*seeds, 7, K, n, generator=random) for n in (N, N, N, N, 2)]
    state = State(*parts[:4], top=parts[4] if top else None)
    cut = [state.rows(0, 3), state.rows(3, 6), state.rows(6, 7)]
    assert torch.equal(cut[1].z, state.z[..., 3:6, :, :])
    assert [one.m.shape[-3] for one in cut] == [3, 3, 1]
    assert (cut[0].top is None) == (not top)
    joined = State.cat(cut)
    for one, other in zip(joined, state, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_a_change_reaches_every_part_of_a_state() -> None:
    state = grouping().history[0]
    for after, before in zip(state.map(lambda part: part + 1), state, strict=True):
        assert torch.equal(after, before + 1)
    assert state.to(torch.device("meta")).top.device.type == "meta"
    assert state._replace(top=None).map(torch.neg).top is None


def test_batches_cover_the_rows_in_order() -> None:
    x = torch.arange(7.0)[:, None]
    found = list(batches(x, 3))
    assert [first for first, _ in found] == [0, 3, 6]
    assert torch.equal(torch.cat([part for _, part in found]), x)
    for first, part in found:
        assert part[0, 0] == first


def test_units_of_the_input_come_back() -> None:
    out, plain = grouping(units=Units(10.0, 4.0)), grouping()
    torch.testing.assert_close(out.reconstructions, plain.reconstructions * 4 + 10)
    torch.testing.assert_close(out.denoised, plain.denoised * 4 + 10)
    assert torch.equal(out.masks, plain.masks)


def test_at() -> None:
    out = grouping()
    for i in range(3):
        assert torch.equal(out.at(i).masks.flatten(2), out.history[i].m)
        assert len(out.at(i).history) == i + 1
    for bad in (-1, 3):
        with pytest.raises(ValueError, match=rf"iteration {bad} was not run: choose 0 \(the start\) to 2"):
            out.at(bad)


@pytest.mark.usefixtures("without_typecheck")
def test_at_takes_integers_alone() -> None:
    out: Any = grouping()
    assert torch.equal(out.at(np.int64(1)).masks, out.at(1).masks)
    for odd in (1.0, "1", True, None):
        with pytest.raises(TypeError, match=rf"iteration {odd!r} is not a number: give an integer 0 \.\. 2"):
            out.at(odd)


@given(seed=st.integers(0, 2**31), gone=st.sets(st.integers(0, K - 1), max_size=K - 1))
@settings(max_examples=25)
def test_without_renormalises_the_others(seed: int, gone: set[int]) -> None:
    """Removing a group from a softmax divides the other masks by what it leaves."""
    out = grouping(seed)
    edited = out.without(*gone)
    masks = out.history[-1].m.clone()
    masks[:, list(gone)] = 0
    torch.testing.assert_close(edited.masks.flatten(2), masks / masks.sum(1, keepdim=True))
    assert torch.equal(edited.reconstructions, out.reconstructions)
    if gone:
        assert not torch.isin(edited.labels, torch.tensor(sorted(gone))).any()
    kept = [k for k in range(K) if k not in gone]
    assert torch.equal(out.only(*kept).masks, edited.masks)


def test_edits_change_the_last_state_of_a_copy() -> None:
    out = grouping()
    before = out.masks.clone()
    edited = out.without(1)
    assert torch.equal(out.masks, before)
    assert edited.history[:-1] == out.history[:-1]
    assert torch.equal(out.only(2).denoised, out.reconstructions[:, 2])
    assert torch.equal(edited.without(0).masks, out.without(0, 1).masks)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_edits_keep_the_precision_of_the_masks(dtype: torch.dtype) -> None:
    """A float64 mask that float32 would round to 1 stays below 1; half precision is widened."""
    m_pre = torch.tensor([20.0, 0.0, 0.0], dtype=dtype).reshape(1, 3, 1)
    state = State(z=m_pre, m=torch.softmax(m_pre, 1), fed=m_pre, m_pre=m_pre)
    masks = Grouping((state,), (1,)).only(0, 1).masks
    assert masks.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    if dtype == torch.float64:
        assert 0 < 1 - masks[0, 0, 0].item() < 1e-8


def test_a_group_that_was_taken_away_does_not_come_back_where_no_other_explains_the_input() -> None:
    m_pre = torch.tensor([0.0, -2e4, -1e12]).reshape(1, 3, 1)  # as of posterior masks: evidence has no lower end
    state = State(z=m_pre, m=torch.softmax(m_pre, 1), fed=m_pre, m_pre=m_pre)
    assert Grouping((state,), (1,)).without(0).masks.flatten().tolist() == [0, 1, 0]


@pytest.mark.usefixtures("without_typecheck")
def test_numpy_integers_name_groups() -> None:
    out = grouping()
    assert torch.equal(out.only(np.int64(2)).masks, out.only(2).masks)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_mapping_in_half_precision_gives_masks_that_sum_to_one(dtype: torch.dtype) -> None:
    """Three masks of 1/3 sum to 1.002 in bfloat16, which would make a probability larger than 1."""

    def equal_shares(rows: Tensor) -> Mapped:
        n = rows.shape[-1] // 4
        return Mapped(torch.full_like(rows[:, :n], 30.0).to(dtype), torch.zeros_like(rows[:, :n]).to(dtype))

    state = start(2, 3, torch.full((N,), 0.3), Key.of(0))
    x, likelihood = torch.zeros(2, N), BernoulliGroups(0.2)
    after = step(equal_shares, likelihood, x, state, V)
    assert after.m.dtype == torch.float32
    torch.testing.assert_close(after.m.sum(1), torch.ones(2, N))
    assert torch.isfinite(likelihood.cost(x.unsqueeze(1), after.z, after.m)).all()


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("edit", ["without", "only"])
def test_edits_refuse_groups_that_do_not_exist(edit: str) -> None:
    apply = getattr(grouping(), edit)
    for bad in (-1, 4):
        with pytest.raises(ValueError, match=rf"group {bad} does not exist: there are groups 0 \.\. 3"):
            apply(bad)
    for odd in (1.0, "1", True, None):
        with pytest.raises(TypeError, match=r"is not a number: name groups by integers 0 \.\. 3"):
            apply(odd)


def test_edits_keep_at_least_one_group() -> None:
    with pytest.raises(ValueError, match="every group was taken away: keep at least one"):
        grouping().without(0, 1, 2, 3)
    with pytest.raises(ValueError, match="no group was named: name at least one"):
        grouping().only()


@pytest.mark.parametrize(("as_numpy", "kind"), [(True, "numpy arrays"), (False, "tensors")])
def test_printed_a_grouping_says_what_it_is(as_numpy: bool, kind: str) -> None:
    first = start(2, 3, torch.zeros(20), Key.of(0))
    out = Grouping((first,) * 6, (4, 5), as_numpy)
    assert str(out).splitlines() == [
        "Grouping of 2 inputs into K=3 groups after T=5 iterations",
        f"  masks, reconstructions: {kind} (2, 3, 4, 5)",
        f"  labels, denoised: {kind} (2, 4, 5)",
    ]
    with_top = first._replace(top=torch.zeros(2, 3, 7))
    assert f"  top: {kind} (2, 3, 7)" in repr(Grouping((with_top,), (4, 5), as_numpy)).splitlines()
