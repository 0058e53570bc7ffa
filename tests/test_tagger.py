"""Tagger as its users meet it: arrays of any kind in, groups out, and one sentence for each bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_taggers import BINARY, REAL, scenes, tagger
from torch import Tensor

from taggernet.rng import Key
from taggernet.tag import BitFlip
from taggernet.tagger import Tagger, TaggerConfig

# --- what comes out --------------------------------------------------------------------------------------


def test_torch_in_torch_out() -> None:
    x = scenes()
    out = tagger().group(x, groups=3, iterations=2)
    assert isinstance(out.masks, Tensor)
    assert out.masks.shape == out.reconstructions.shape == (7, 3, 2, 3)
    assert out.labels.shape == out.denoised.shape == (7, 2, 3)
    assert out.labels.dtype == torch.int64
    assert len(out.history) == 3
    assert not out.masks.requires_grad
    torch.testing.assert_close(out.masks.sum(1), torch.ones(7, 2, 3))


def test_group_is_the_loop() -> None:
    """Clean input stands in for x~, masks from the seed's own stream."""
    model, x = tagger(), scenes()
    out = model.group(x, groups=3, iterations=2, seed=11)
    with torch.no_grad():
        states = list(model.iterate(x.flatten(1), model.start(7, 3, Key.of(11).fold("masks")), 2))
    assert torch.equal(out.history[-1].m, states[-1].m)
    assert torch.equal(out.history[1].z, states[0].z)
    noisy = model.group(x, groups=3, iterations=2, seed=11, noisy=True)
    with torch.no_grad():
        x_tilde = BitFlip(0.2)(x.flatten(1), Key.of(11).fold("noise"))
        states = list(model.iterate(x_tilde, model.start(7, 3, Key.of(11).fold("masks")), 2))
    assert torch.equal(noisy.history[-1].m, states[-1].m)
    assert not torch.equal(noisy.masks, out.masks)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.uint8, np.int64, np.bool_, ">f4"])
def test_numpy_in_numpy_out(dtype: Any) -> None:
    x = scenes()
    expected = tagger().group(x, groups=3, iterations=2)
    out = tagger().group(x.numpy().astype(dtype), groups=3, iterations=2)
    for name in ("masks", "reconstructions", "labels", "denoised"):
        assert isinstance(getattr(out, name), np.ndarray)
        np.testing.assert_array_equal(getattr(out, name), getattr(expected, name).numpy())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.bool])
def test_torch_dtypes(dtype: torch.dtype) -> None:
    x = scenes()
    expected = tagger().group(x, groups=3, iterations=2)
    assert torch.equal(tagger().group(x.to(dtype), groups=3, iterations=2).masks, expected.masks)


def test_lists_and_arrays_that_are_not_contiguous() -> None:
    x = scenes()
    expected = tagger().group(x.numpy(), groups=3, iterations=2).masks
    np.testing.assert_array_equal(tagger().group(x.tolist(), groups=3, iterations=2).masks, expected)
    backwards = x.numpy()[::-1].copy()[::-1]
    np.testing.assert_array_equal(tagger().group(backwards, groups=3, iterations=2).masks, expected)


def test_read_only_arrays_are_accepted_without_a_warning() -> None:
    """What a memory-mapped file gives; pytest turns a warning into a failure."""
    for dtype in (np.float32, np.float64, np.uint8):
        x = scenes().numpy().astype(dtype)
        x.flags.writeable = False
        assert tagger().group(x, iterations=1).masks.shape == (7, 4, 2, 3)


@pytest.mark.parametrize("shape", [(6,), (1, 2, 3), (6, 1, 1)])
def test_rows_of_elements_and_dimensions_of_one_are_welcome(shape: tuple[int, ...]) -> None:
    x = scenes()
    out = tagger().group(x.reshape(7, *shape), groups=3, iterations=2)
    assert out.masks.shape == (7, 3, *shape)
    assert out.labels.shape == (7, *shape)
    expected = tagger().group(x, groups=3, iterations=2)
    assert torch.equal(out.masks.flatten(2), expected.masks.flatten(2))


def test_a_seed_fixes_the_result() -> None:
    x = scenes()
    first, again, other = (tagger().group(x, seed=seed).masks for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_grouping_leaves_the_callers_array_alone() -> None:
    x = scenes()
    before = x.clone()
    tagger().group(x, noisy=True)
    assert torch.equal(x, before)


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("iterations", [1, 10])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_other_k_and_t(groups: int, iterations: int, norm: Any) -> None:
    out = tagger(replace(BINARY, norm=norm)).group(scenes(), groups, iterations)
    assert out.masks.shape == (7, groups, 2, 3)
    assert len(out.history) == iterations + 1
    assert torch.isfinite(out.masks).all()


def test_more_iterations_continue_fewer() -> None:
    short, long = (tagger().group(scenes(), iterations=t) for t in (2, 5))
    assert torch.equal(long.at(2).masks, short.masks)


@pytest.mark.parametrize("config", [BINARY, REAL])
@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_layernorm_does_not_depend_on_the_batch(config: TaggerConfig, batch_size: int) -> None:
    """A last, smaller batch included: 7 = 3 + 3 + 1. The same noise and masks go to the same scene."""
    x = scenes()
    whole = tagger(config).group(x, noisy=True, batch_size=1000)
    parts = tagger(config).group(x, noisy=True, batch_size=batch_size)
    torch.testing.assert_close(parts.masks, whole.masks, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(parts.reconstructions, whole.reconstructions, rtol=1e-3, atol=1e-5)
    alone = tagger(config).group(x[:1], noisy=True)
    torch.testing.assert_close(alone.masks, whole.masks[:1], rtol=1e-3, atol=1e-5)


def test_large_inputs_are_grouped_a_few_at_a_time_on_a_cpu() -> None:
    """No more than a million numbers of z at once, but at least one input; BatchNorm has the batch it was given."""
    image = replace(REAL, shape=(200, 200), widths=(4, 3), norm="layer")
    model = tagger(image)
    assert [model.inputs_at_once(100, k) for k in (1, 5, 20, 40)] == [25, 5, 1, 1]
    assert model.inputs_at_once(100, 5, models=2) == 2
    assert model.inputs_at_once(3, 5) == 3
    assert tagger(replace(image, norm="batch")).inputs_at_once(100, 5) == 100
    x = Key.of(1).uniform(7, 40_000)
    np.testing.assert_allclose(model.group(x, 5, 2).masks, model.group(x, 5, 2, batch_size=1).masks, atol=1e-5)


def test_batchnorm_depends_on_the_batch_and_says_nothing_of_one_row() -> None:
    model, x = tagger(replace(BINARY, norm="batch")), scenes()
    assert not torch.allclose(model.group(x, batch_size=3).masks, model.group(x).masks, atol=1e-3)
    # One scene of one group is one row: what comes out is the same whatever the scene.
    one, other = (model.group(scene, groups=1).reconstructions for scene in (x[:1], 1 - x[:1]))
    assert torch.equal(one, other)
    # One scene of several groups has several rows, and is seen.
    one, other = (model.group(scene, groups=3).reconstructions for scene in (x[:1], 1 - x[:1]))
    assert not torch.allclose(one, other, atol=1e-3)


def test_units() -> None:
    """offset and scale: data in the user's units behaves as the same data in the model's."""
    x = Key.of(0).uniform(5, 2, 3)
    plain = tagger(REAL).group(x)
    scaled = tagger(replace(REAL, offset=-100.0, scale=50.0)).group(x * 50 - 100)
    torch.testing.assert_close(scaled.masks, plain.masks, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(scaled.denoised, plain.denoised * 50 - 100, rtol=1e-3, atol=0.05)


def test_units_of_each_element(tmp_path: Path) -> None:
    """Saved and loaded too: they are a part of the configuration."""
    x, generator = Key.of(0).uniform(5, 6), np.random.default_rng(0)
    offset, scale = generator.uniform(-100, 100, 6), generator.uniform(0.01, 50, 6)
    plain = tagger(REAL).group(x)
    model = tagger(replace(REAL, offsets=tuple(offset.tolist()), scales=tuple(scale.tolist())))
    theirs = x * torch.tensor(scale) + torch.tensor(offset)
    for one in (model, Tagger.load(model.save(tmp_path / "model"))):
        out = one.group(theirs)
        torch.testing.assert_close(out.masks, plain.masks, rtol=1e-3, atol=1e-3)
        units = (out.denoised - torch.tensor(offset)) / torch.tensor(scale)
        torch.testing.assert_close(units.float(), plain.denoised, rtol=1e-3, atol=1e-3)


def test_without_takes_a_group_out_of_the_scene() -> None:
    out = tagger().group(scenes(), groups=3)
    edited = out.without(1)
    assert edited.masks[:, 1].max() == 0
    others = out.masks[:, [0, 2]]
    torch.testing.assert_close(edited.masks[:, [0, 2]], others / others.sum(1, keepdim=True))
    assert torch.equal(out.only(1).denoised, out.reconstructions[:, 1])


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("x", "error", "sentence"),
    [
        (torch.zeros(7, 2, 4), ValueError, r"\(7, 2, 4\), that is 8 elements .* N=6: give \(B, 2, 3\)"),
        (torch.zeros(6), ValueError, r"shape \(6,\), but a batch \(B, 2, 3\) is expected: add a batch"),
        (torch.tensor(1.0), ValueError, r"shape \(\), but a batch \(B, 2, 3\) is expected"),
        (torch.zeros(0, 2, 3), ValueError, r"x is empty, shape \(0, 2, 3\): give at least one input"),
        (torch.full((1, 6), math.nan), ValueError, r"x holds 6 NaN or infinite values of 6"),
        (np.full((1, 6), np.inf), ValueError, r"x holds 6 NaN or infinite values of 6"),
        (torch.full((1, 6), 0.5), ValueError, r"0 or 1, but x holds 0\.5: threshold the data"),
        (np.full((1, 6), 255, np.uint8), ValueError, r"0 or 1, but x holds 255"),
        (np.array([["a"] * 6]), TypeError, r"x is an array of <U1: give numbers"),
        (np.array([[None] * 6]), TypeError, r"x is an array of object: give numbers"),
        (np.zeros((1, 6), complex), TypeError, r"x is an array of complex128: give numbers"),
        (torch.zeros(1, 6, dtype=torch.complex64), TypeError, r"x is a tensor of torch.complex64: give real"),
        ("shapes", TypeError, r"x is an array of <U6: give numbers"),
        (None, TypeError, r"x is an array of object: give numbers"),
        ([[0, 1, 0], [0, 1]], ValueError, r"x is a list whose parts differ in shape: give inputs of one shape"),
        (np.full((1, 6), 1e300), ValueError, r"0 or 1, but x holds 1e\+300"),
    ],
)
def test_bad_x(x: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        tagger().group(x)


@pytest.mark.parametrize("large", [1e30, -1e30, 1.1e6])
def test_values_whose_squares_overflow_are_refused(large: float) -> None:
    x = torch.zeros(2, 6)
    x[1, 2] = large
    with pytest.raises(ValueError, match=r"in the model's units, beyond 1e\+06: scale the data"):
        tagger(REAL).group(x)
    out = tagger(replace(REAL, scale=abs(large))).group(x)
    assert torch.isfinite(out.denoised).all()


def test_the_largest_values_allowed_are_finite() -> None:
    x = 1e6 * (2 * scenes() - 1)
    for delta_z in ("eq4", "algorithm", "exact"):
        out = tagger(replace(REAL, delta_z=delta_z, v_start=1e-6, noise=0.0)).group(x)
        assert torch.isfinite(out.masks).all()
        assert torch.isfinite(out.denoised).all()


def test_float64_beyond_float32_is_refused_without_a_warning() -> None:
    """In its own precision, so that the sentence names the value; pytest turns a warning into a failure."""
    with pytest.raises(ValueError, match=r"as large as 1e\+300 in the model's units"):
        tagger(REAL).group(np.full((2, 6), 1e300))
    if np.finfo(np.longdouble).max > 1e308:
        with pytest.raises(ValueError, match="NaN or infinite"):
            tagger(REAL).group(np.full((2, 6), np.longdouble("1e4000")))


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("name", ["groups", "iterations", "batch_size"])
@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (0, ValueError, "{}=0 is out of range: give an integer from 1 to"),
        (-3, ValueError, "{}=-3 is out of range"),
        (10**10, ValueError, "{}=10000000000 is out of range"),
        (2.0, TypeError, "{}=2.0 is not an integer: give an integer from 1 to"),
        ("4", TypeError, "{}='4' is not an integer"),
        (True, TypeError, "{}=True is not an integer"),
        ([4], TypeError, r"{}=\[4\] is not an integer"),
    ],
)
def test_bad_counts(name: str, value: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence.format(name)):
        tagger().group(scenes(), **{name: value})


@pytest.mark.usefixtures("without_typecheck")
def test_bad_seed() -> None:
    for bad in ("0", 1.0, None, True, [1.5]):
        with pytest.raises(TypeError, match=r"seed=.* is not an integer: give an integer"):
            tagger().group(scenes(), seed=bad)  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_typecheck")
def test_numpy_integers_are_seeds() -> None:
    """What a loop over np.arange gives."""
    for kind in (np.int64, np.int32, np.uint8):
        out = tagger().group(scenes(), seed=kind(3))
        assert torch.equal(out.masks, tagger().group(scenes(), seed=3).masks)


# --- classes ---------------------------------------------------------------------------------------------


def test_predict() -> None:
    model = tagger(replace(BINARY, classes=3))
    x = scenes()
    probabilities = model.predict(x.numpy(), groups=2, iterations=2)
    assert isinstance(probabilities, np.ndarray)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert torch.equal(model.predict(x, groups=2, iterations=2), torch.from_numpy(probabilities))
    expected = model.class_probabilities(model.group(x, 2, 2).history[-1])
    assert torch.equal(model.predict(x, 2, 2), expected)


def test_groups_and_iterations_are_the_models_own_unless_named() -> None:
    model = tagger(replace(BINARY, classes=3))
    model.groups, model.iterations = 2, 3
    assert model.group(scenes()).groups == 2
    torch.testing.assert_close(model.predict(scenes()), model.predict(scenes(), 2, 3), rtol=0, atol=0)
    assert not torch.equal(model.predict(scenes()), model.predict(scenes(), 4, 5))
    assert (tagger().groups, tagger().iterations) == (4, 5), "the paper's"
    with pytest.raises(ValueError, match="groups=65 is out of range"):
        Tagger(BINARY, groups=65)
