"""Estimates of a scene as images, and the words beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from taggernet.data import Scenes
from taggernet.tag import Grouping, State, Units
from taggernet.viz.layout import Trace


def grouping(units: Units) -> Grouping:
    random = torch.Generator().manual_seed(0)
    history = []
    for _ in range(3):
        z, m_pre = torch.rand(2, 4, 6, generator=random), torch.randn(2, 4, 6, generator=random)
        history.append(State(z=z, m=torch.softmax(m_pre, 1), fed=z, m_pre=m_pre))
    return Grouping(tuple(history), (2, 3), units=units)


def scenes() -> Scenes:
    return Scenes(np.random.default_rng(0).random((2, 2, 3), np.float32) * 5 + 20, kind="real")


def test_a_trace_is_in_the_units_of_its_scene() -> None:
    out = grouping(Units(20.0, 5.0))
    trace = Trace.of(scenes(), out, 1)
    assert trace.real
    np.testing.assert_array_equal(trace.x, scenes().x[1].astype(float))
    for i in range(3):
        np.testing.assert_allclose(trace.z[i], out.at(i).reconstructions[1], rtol=1e-6)
        np.testing.assert_array_equal(trace.m[i], out.at(i).masks[1])


def test_a_trace_puts_permuted_elements_back() -> None:
    """Element j of a permuted scene is element order[j] of the image."""
    order = np.array([3, 0, 5, 1, 4, 2])
    plain, images = grouping(Units()), scenes()
    moved = Grouping(tuple(s.map(lambda part: part[..., order]) for s in plain.history), (2, 3))
    moved_images = Scenes(images.x.reshape(2, 6)[:, order].reshape(2, 2, 3), kind="real")
    found, expected = Trace.of(moved_images, moved, 0, order), Trace.of(images, plain, 0)
    for name in ("x", "z", "m"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(("position", "step", "share"), [(0.0, 0, 0.0), (0.25, 0, 0.25), (1.5, 1, 0.5), (2.0, 1, 1.0)])
def test_between_two_iterations(position: float, step: int, share: float) -> None:
    trace = Trace.of(scenes(), grouping(Units()), 0)
    found = trace.between(position)
    np.testing.assert_allclose(found.m[0], (1 - share) * trace.m[step] + share * trace.m[step + 1])


def test_a_trace_of_a_colour_image_has_its_colours_and_undoes_a_permutation() -> None:
    rng, order = np.random.default_rng(0), np.array([3, 0, 5, 1, 4, 2])
    x = rng.random((1, 2, 3, 3)).astype(np.float32)
    z, m = torch.rand(1, 2, 6 * 3), torch.softmax(torch.rand(1, 2, 6), 1)
    plain = Trace.of(Scenes(x, kind="real", channels=3), Grouping((State(z, m, z, m),), (2, 3), channels=3), 0)
    low, high = x.min(), x.max()
    np.testing.assert_allclose(plain.input(), (x[0] - low) / (high - low), rtol=1e-5)
    assert plain.group(0, 1).shape == plain.mask(0, 1).shape == plain.groups().shape == (2, 3, 3)
    moved_z = z.reshape(1, 2, 6, 3)[:, :, order].flatten(-2)
    state = State(moved_z, m[..., order], moved_z, m[..., order])
    scenes = Scenes(x.reshape(1, 6, 3)[:, order].reshape(x.shape), kind="real", channels=3)
    moved = Trace.of(scenes, Grouping((state,), (2, 3), channels=3), 0, order)
    for name in ("x", "z", "m"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(plain, name))
