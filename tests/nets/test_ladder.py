"""The Ladder as a mapping: its start, its symmetries, many seeds at once, few rows.

That it computes what the paper says is in test_paper.py, against numpy.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from taggernet import fast
from taggernet.nets import Ladder, LadderMapping, MLPMapping
from taggernet.nets.ladder import Combinator
from taggernet.nets.norm import make_norm, use_kernels
from taggernet.tag import Mapping
from taggernet.tagger import Tagger, TaggerConfig

N, R = 5, 12


def ladder(seed: int = 0, norm: Any = "batch", gate: Any = "plain", top: Any = "softmax") -> LadderMapping:
    """All parameters away from their start."""
    torch.manual_seed(seed)
    mapping = LadderMapping(N, (8, 6, 4), norm, gate, top)
    with torch.no_grad():
        for name, parameter in mapping.named_parameters():
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return mapping


def rows(seed: int = 0, count: int = R) -> Tensor:
    return torch.randn(count, 4 * N, generator=torch.Generator().manual_seed(seed))


class Mean(Combinator):
    """A combinator of another equation."""

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        return (z + u) / 2


class Wider(Combinator):
    """A subclass that computes the same."""


def test_only_the_equation_of_the_kernel_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA, where the kernels would apply to everything."""
    monkeypatch.setattr(fast, "applies", lambda *_, **__: True)
    z, x = rows(1), rows(2)
    norm = make_norm("layer")
    for kind, choice, fused in [
        (Combinator, "auto", True), (Combinator, "off", False), (Wider, "auto", True), (Mean, "auto", False),
    ]:  # fmt: skip
        combine: Any = kind(4 * N, "plain")
        use_kernels(norm, choice)  # type: ignore[arg-type]
        with mock.patch.object(fast, "norm_combine", return_value=z) as kernel:
            out = combine.denoise(norm, z, x, half=False)
        assert kernel.called == fused, (kind, choice)
        if not fused:
            torch.testing.assert_close(out, combine(z, norm(x)))


def test_kernels_are_switched_off_for_one_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "applies", lambda *_, **__: True)
    one, other = (Tagger(TaggerConfig(shape=(2, 2), widths=(8, 6))) for _ in range(2))
    one.use_kernels("off")
    x = (torch.rand(3, 4) < 0.5).float()
    with mock.patch.object(fast, "norm_activate", side_effect=ZeroDivisionError):
        one.group(x)
        with pytest.raises(ZeroDivisionError):
            other.group(x)
        one.use_kernels("auto")
        with pytest.raises(ZeroDivisionError):
            one.group(x)


@pytest.mark.usefixtures("without_typecheck")
def test_another_choice_of_kernels_is_refused() -> None:
    with pytest.raises(ValueError, match="kernels='of' is not known: choose one of 'auto', 'off'"):
        use_kernels(ladder(), "of")  # type: ignore[arg-type]


def test_parameters_start_as_in_the_public_code() -> None:
    mapping = LadderMapping(N, (8, 6, 4))
    for name, parameter in mapping.named_parameters():
        if name.endswith(".a"):
            for number, values in enumerate(parameter, start=1):
                assert torch.equal(values, torch.full_like(values, float(number in (2, 7)))), (name, number)
        elif "scale" in name:
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        elif "bias" in name:
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
    assert mapping.m_scale.numel() == 1
    assert mapping.z_scale.shape == mapping.z_bias.shape == (1, N)


@given(seed=st.integers(0, 2**31))
@settings(max_examples=20)
def test_combinator_interpolates_between_lateral_and_prior(seed: int) -> None:
    """The stable gate lies in (0, 1), so the estimate lies between z and mu; a plain one need not."""
    torch.manual_seed(seed)
    combine = Combinator(4, "stable")
    nn.init.normal_(combine.a, std=3.0)
    z, u = 5 * torch.randn(6, 4), torch.randn(6, 4)
    a = combine.a.detach()[:, 0]
    mu = a[0] * torch.sigmoid(a[1] * u + a[2]) + a[3] * u + a[4]
    out = combine(z, u)
    assert (out >= torch.minimum(z, mu) - 1e-4).all()
    assert (out <= torch.maximum(z, mu) + 1e-4).all()
    gate = a[5] * torch.sigmoid(a[6] * u + a[7]) + a[8] * u + a[9]
    combine.gate = "plain"
    torch.testing.assert_close(combine(z, u), gate * z + (1 - gate) * mu, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("top", ["softmax", "relu"])
def test_top_is_a_distribution_or_rectified(top: Any) -> None:
    out = ladder(top=top)(rows()).top
    assert out is not None
    assert out.shape == (R, 4)
    assert (out >= 0).all()
    is_distribution = torch.allclose(out.sum(-1), torch.ones(R))
    assert is_distribution == (top == "softmax")
    assert (ladder(top=top).ladder.top_scale is None) == (top == "relu")


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("gate", ["plain", "stable"])
@pytest.mark.parametrize("top", ["softmax", "relu"])
def test_every_parameter_learns(norm: Any, gate: Any, top: Any) -> None:
    mapping = ladder(norm=norm, gate=gate, top=top)
    out = mapping(rows())
    torch.manual_seed(1)
    (out.z_pre * torch.randn(R, N) + out.m_pre * torch.randn(R, N)).sum().backward()
    for name, parameter in mapping.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("make", [ladder, lambda: ladder(norm="layer"), lambda: MLPMapping(N, (8,), "batch")])
def test_rows_are_treated_alike(make: Any) -> None:
    mapping, x = make(), rows()
    order = torch.randperm(R, generator=torch.Generator().manual_seed(0))
    for straight, permuted in zip(mapping(x), mapping(x[order]), strict=True):
        torch.testing.assert_close(straight[order], permuted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [lambda: ladder(norm="layer"), lambda: MLPMapping(N, (8,))])
def test_layernorm_rows_do_not_know_each_other(make: Any) -> None:
    mapping, x = make(), rows()
    for part in (x[:1], x[3:7]):
        first = 0 if len(part) == 1 else 3
        for whole, alone in zip(mapping(x), mapping(part), strict=True):
            torch.testing.assert_close(whole[first : first + len(part)], alone, rtol=1e-4, atol=1e-5)


def test_batchnorm_with_one_row_says_nothing_of_it() -> None:
    """Documented in nets/norm.py: every normalised value is 0, so z and m are the mapping's constants."""
    mapping = ladder()
    one, other = mapping(rows(0, 1)), mapping(rows(1, 1))
    for out in (one, other):
        assert torch.equal(out.z_pre, mapping.z_bias)
        assert torch.equal(out.m_pre, torch.zeros(1, N))
    assert torch.equal(one.top, other.top)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: ladder(seed, "batch", "stable"),
        lambda seed: ladder(seed, "layer", "plain", "relu"),
        lambda seed: MLPMapping(N, (8, 6), "batch"),
    ],
)
def test_stacked_parameters_are_each_seed_alone(make: Any) -> None:
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(make(seed))
    parameters, _ = stack_module_state(models)
    x = torch.stack([rows(seed) for seed in range(3)])
    together = functional_call(models[0], parameters, (x,))
    for seed, model in enumerate(models):
        for stacked, alone in zip(together, model(x[seed]), strict=True):
            torch.testing.assert_close(stacked[seed], alone, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(together.z_pre[0], together.z_pre[1], atol=1e-2)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_bfloat16_products_agree_with_float32(norm: Any) -> None:
    """Training hands in bfloat16 copies of the weights; what comes out is float32 and near."""
    mapping, x = ladder(norm=norm, gate="stable"), rows(count=64)
    rounded = {
        name: p.bfloat16() if p.ndim == 2 and name.endswith("weight") else p for name, p in mapping.named_parameters()
    }
    half = functional_call(mapping, rounded, (x,))
    full = mapping(x)
    for near, exact in zip(half, full, strict=True):
        assert near.dtype == torch.float32
        assert (near - exact).square().mean().sqrt() < 0.1 * exact.std()


def test_ladder_alone_takes_any_number_of_levels() -> None:
    for widths in ((6, 3), (6, 5, 4, 3, 2)):
        estimate, top = Ladder(widths, "layer", "stable", "relu")(torch.randn(R, 6))
        assert estimate.shape == (R, 6)
        assert top.shape == (R, widths[-1])


def test_mappings_follow_the_protocol() -> None:
    for mapping in (ladder(), MLPMapping(N, (8,))):
        assert isinstance(mapping, Mapping)
