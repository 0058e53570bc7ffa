"""TextureMNIST against brute force over elements, and its streams."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taggernet.data.mnist import fixture_digits, mnist
from taggernet.data.textures import compose, fresh_texture_mnist, texture_bank, texture_mnist
from taggernet.rng import Key

full_mnist = pytest.mark.skipif("TAGGERNET_DATA" not in os.environ, reason="TAGGERNET_DATA names no MNIST")


def digits_of(split: str = "train") -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = fixture_digits(split)
    return torch.from_numpy(images), torch.from_numpy(labels)


def test_each_texture_is_one_fourier_component() -> None:
    bank = texture_bank().double().numpy()
    assert bank.shape == (20, 38, 38)
    assert np.allclose(bank.min((1, 2)), 0)
    assert np.allclose(bank.max((1, 2)), 1)
    for index, texture in enumerate(bank):
        down, right = (4, 10, 21, 32, 37)[index // 4], (0, 4, 8, 12)[index % 4] + index // 4
        power = np.abs(np.fft.fft2(texture - texture.mean()))
        peaks = {(down, right), (-down % 38, -right % 38)}
        found = {(int(r), int(c)) for r, c in np.argwhere(power > 1e-2 * power.max())}
        assert found == peaks


@given(seed=st.integers(0, 2**40), digits=st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_compose_equals_a_loop_over_elements(seed: int, digits: int) -> None:
    key, n = Key.of(seed), 30
    grey = key.fold(0).integers(256, digits, n) * key.fold(1).integers(2, digits, n)  # half of them clear
    opacity, textures = grey.float() / 255, key.fold(2).uniform(digits + 1, n)
    x, groups = compose(opacity, textures)
    for i in range(n):
        value, seen = float(textures[0, i]), [1.0]
        for layer in range(digits):
            a = int(grey[layer, i]) / 255
            value = a * float(textures[layer + 1, i]) + (1 - a) * value
            seen = [(1 - a) * part for part in seen] + [a]
        assert sum(seen) == pytest.approx(1)
        assert float(x[i]) == pytest.approx(value, abs=1e-6)
        assert int(groups[i]) == (1 + int(np.argmax(seen)) if max(seen) > 0.9 else 0)


def moved(image: np.ndarray, by: int) -> np.ndarray:
    result = np.zeros_like(image)
    for row in range(28):
        for col in range(28):
            if 0 <= row - by < 28 and 0 <= col - by < 28:
                result[row, col] = image[row - by, col - by]
    return result


def find_texture(values: np.ndarray, where: np.ndarray) -> set[int]:
    """The textures of the bank that, cut at some window, show these values at these places."""
    windows = texture_bank().unfold(1, 28, 1).unfold(2, 28, 1).numpy()
    error = np.abs(windows[..., where] - values[where]).max(-1)
    return {int(index) for index in np.unique(np.argwhere(error < 1e-5)[:, 0])}


@pytest.mark.parametrize(("depth", "orders"), [("up-left", {False}), ("random", {True, False})])
def test_two_digits_are_moved_and_stacked(depth: str, orders: set[bool]) -> None:
    images, labels = fixture_digits()
    images, labels = images[:2], labels[:2]  # so that which digit is meant is known
    scenes = texture_mnist(2, seed=1, images=images, labels=labels, n=40, depth=depth)
    matched = set()
    for scene in range(len(scenes)):
        fits = []
        for a in (0, 1):
            for b in (0, 1):
                for first_below in (True, False):
                    first, second = moved(images[a], -2) / 255, moved(images[b], 2) / 255
                    lower, upper = (first, second) if first_below else (second, first)
                    seen = np.stack([(1 - lower) * (1 - upper), lower * (1 - upper), upper])
                    groups = np.where(seen.max(0) > 0.9, seen.argmax(0) + 1, 0)
                    if np.array_equal(groups, scenes.groups[scene]):
                        classes = (labels[a], labels[b]) if first_below else (labels[b], labels[a])
                        fits.append((classes, first_below, seen == 1))
        assert len(fits) == 1
        assert tuple(scenes.classes[scene]) == fits[0][0]
        matched.add(fits[0][1])
        found = [find_texture(scenes.x[scene], where) for where in fits[0][2] if where.sum() > 8]
        assert all(len(textures) == 1 for textures in found)
        assert len(set.union(*found)) == len(found)  # different ones
    assert matched == orders


def test_one_digit_is_not_moved() -> None:
    images, labels = fixture_digits("test")
    scenes = texture_mnist(1, "test", images=images, labels=labels)
    assert scenes.classes.shape == (100,)
    remaining = {image.tobytes(): label for image, label in zip(images > 229, labels, strict=True)}
    for groups, label in zip(scenes.groups, scenes.classes, strict=True):
        assert remaining.pop((groups == 2).tobytes()) == label  # each digit once
    assert not remaining


@pytest.mark.parametrize(("depth", "share"), [("up-left", 1.0), ("random", 0.5)])
def test_which_digit_is_on_top(depth: str, share: float) -> None:
    images, labels = digits_of()
    bright = torch.full_like(images, 255)
    _, groups, classes = fresh_texture_mnist(Key.of(0), bright, labels, texture_bank(), 2000, depth=depth)
    top_left = groups.reshape(-1, 28, 28)[:, 10, 10]  # both digits cover it: the upper one is seen
    assert set(top_left.tolist()) == {3}
    corner = groups.reshape(-1, 28, 28)[:, 0, 0]  # only the one moved up and left reaches it
    assert abs((corner == 3).double().mean().item() - share) <= (0.04 if share < 1 else 0)
    _, _, others = fresh_texture_mnist(
        Key.of(0), bright, labels, texture_bank(), 2000, depth="random" if share == 1 else "up-left"
    )
    assert torch.equal(classes.sort(-1).values, others.sort(-1).values)  # the same digits, in another order


def test_textures_are_even_and_different() -> None:
    images, labels = digits_of()
    bright = torch.full_like(images, 255)
    constant = torch.arange(20.0)[:, None, None].expand(20, 38, 38)
    x, _, _ = fresh_texture_mnist(Key.of(1), bright, labels, constant, 4000)
    triples = torch.stack([x.reshape(-1, 28, 28)[:, i, j] for i, j in ((0, 27), (0, 0), (27, 27))], -1)
    assert all(len(set(triple)) == 3 for triple in triples.int().tolist())
    for column in triples.unbind(-1):
        assert torch.histc(column, bins=20, min=-0.5, max=19.5).min() > 130  # 200 expected


def test_values_and_types() -> None:
    images, labels = fixture_digits("valid")
    for digits in (1, 2):
        scenes = texture_mnist(digits, "valid", images=images, labels=labels, n=250)
        assert scenes.x.dtype == np.float32
        assert scenes.x.min() >= 0
        assert scenes.x.max() <= 1
        assert scenes.kind == "real"
        assert len(scenes) == 250
        assert set(np.unique(scenes.groups)) == set(range(digits + 2))
    assert texture_mnist(2, images=images).classes is None
    as_float = texture_mnist(2, images=images.astype(np.float32) / 255, labels=labels)
    assert np.array_equal(as_float.x, texture_mnist(2, images=images, labels=labels).x)


def test_each_digit_is_used_once_per_place_and_lap() -> None:
    images, _ = fixture_digits("test")
    numbered = np.arange(100)
    scenes = texture_mnist(2, images=images, labels=numbered, n=200)
    counts = np.bincount(scenes.classes[:100].ravel()), np.bincount(scenes.classes[100:].ravel())
    assert all((count == 2).all() for count in counts)
    assert not np.array_equal(scenes.classes[:100], scenes.classes[100:])


@given(
    seeds=st.lists(st.integers(0, 2**62), min_size=1, max_size=3),
    start=st.integers(0, 20),
    digits=st.integers(1, 2),
)
@settings(max_examples=15, deadline=None)
def test_a_batch_of_seeds_and_an_offset_equal_each_seed_alone(seeds: list[int], start: int, digits: int) -> None:
    images, labels = digits_of("test")
    bank = texture_bank()
    together = fresh_texture_mnist(Key.of(seeds), images, labels, bank, 5, digits, start=torch.tensor(start))
    assert together[0].shape == (len(seeds), 5, 784)
    for row, seed in enumerate(seeds):
        alone = fresh_texture_mnist(Key.of(seed), images, labels, bank, start + 5, digits)
        for one, other in zip(together, alone, strict=True):
            assert torch.equal(one[row], other[start:])


def test_a_shared_pool_deals_every_digit_to_train_or_valid_at_each_place() -> None:
    images, _ = fixture_digits("train+valid")
    numbered = np.arange(500)
    parts = [
        texture_mnist(2, split, images=images, labels=numbered, digit_pool="shared") for split in ("train", "valid")
    ]
    assert [len(part) for part in parts] == [416, 84]
    for place in (0, 1):  # each place is a permutation of the pool, cut in two
        dealt = np.concatenate([part.classes[:, place] for part in parts])
        assert np.array_equal(np.sort(dealt), numbered)
    train, valid = (set(part.classes.ravel()) for part in parts)
    assert train & valid, "the two splits share digits"
    test = texture_mnist(2, "test", images=images, labels=numbered, digit_pool="shared")
    assert np.array_equal(test.classes, texture_mnist(2, "test", images=images, labels=numbered).classes)


@pytest.mark.parametrize("digits", [1, 2])
def test_a_subset_restricts_the_digits_of_each_stream(digits: int) -> None:
    images, _ = digits_of()
    numbered, keys = torch.arange(len(images)), Key.of([3, 4])
    subset = torch.tensor([[5, 6, 7], [50, 60, 70]])
    _, _, classes = fresh_texture_mnist(keys, images, numbered, texture_bank(), 40, digits, subset=subset)
    assert [set(row.ravel().tolist()) for row in classes] == [{5, 6, 7}, {50, 60, 70}]
    _, _, alone = fresh_texture_mnist(Key.of(4), images, numbered, texture_bank(), 40, digits, subset=subset[1])
    assert torch.equal(classes[1], alone)


@full_mnist
def test_split_sizes_of_all_of_mnist() -> None:
    sets = {split: texture_mnist(2, split) for split in ("train", "valid", "test")}
    assert [len(scenes) for scenes in sets.values()] == [50_000, 10_000, 10_000]
    for split, scenes in sets.items():
        expected = np.bincount(mnist(split)[1], minlength=10)
        assert np.array_equal(np.bincount(scenes.classes.ravel()), 2 * expected)


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"digits": 3}, ValueError, "digits=3 is out of range: give an integer from 1 to 2"),
        ({"digits": 1, "split": "dev"}, ValueError, "split='dev' is not known"),
        ({"digits": 2, "depth": "down-right"}, ValueError, "depth='down-right' is not known"),
        ({"digits": 2, "digit_pool": "all"}, ValueError, "digit_pool='all' is not known"),
        ({"digits": 1, "labels": np.zeros(3, int)}, ValueError, "labels were given without images"),
        ({"digits": 1, "images": np.zeros((3, 20, 20), np.uint8)}, ValueError, "expected \\(n, 28, 28\\)"),
        ({"digits": 1, "images": np.zeros((0, 28, 28), np.uint8)}, ValueError, "n at least 1"),
        ({"digits": 1, "images": np.zeros((3, 28, 28), int)}, TypeError, "dtype int64, expected uint8"),
        ({"digits": 1, "images": np.full((3, 28, 28), np.nan)}, ValueError, "outside 0 .. 1 \\(or NaN\\)"),
        ({"digits": 1, "images": np.full((3, 28, 28), 255.0)}, ValueError, "outside 0 .. 1"),
        (
            {"digits": 1, "images": np.zeros((3, 28, 28)), "labels": np.zeros(2, int)},
            ValueError,
            "there are 3 images: one label each",
        ),
        (
            {"digits": 1, "images": np.zeros((3, 28, 28)), "labels": np.zeros(3)},
            TypeError,
            "expected integers",
        ),
        ({"digits": 1, "images": np.zeros((3, 28, 28)), "n": 0}, ValueError, "n=0"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        texture_mnist(**arguments)


GOLDEN = {
    (1, 0, "up-left"): "8da0b3bc63fa51f167bd757292eb631c",
    (2, 0, "up-left"): "525574ea2af228010d42371faad207d4",
    (2, 1, "up-left"): "0f8c841241f0a5c8cd51e6e1bd190cbb",
    (2, 0, "random"): "d63c57149b585c65506e7b4e1c43741c",
    (2, 1, "random"): "c1663369f185af69d48e71f664896cb7",
}


@pytest.mark.parametrize(("digits", "seed", "depth"), GOLDEN)
def test_golden_checksums(digits: int, seed: int, depth: str) -> None:
    images, labels = fixture_digits()
    scenes = texture_mnist(digits, seed=seed, images=images, labels=labels, depth=depth)
    values = np.round(scenes.x * 255).astype(np.uint8)  # the last bits of a cosine are the machine's own
    content = values.tobytes() + scenes.groups.tobytes() + scenes.classes.tobytes()
    assert hashlib.md5(content).hexdigest() == GOLDEN[digits, seed, depth]


@pytest.mark.parametrize("digits", [1, 2])
def test_twins_have_the_same_digits_in_other_places_and_textures(digits: int) -> None:
    """Whole pairs are the same in any batch; of two digits each is on top once."""
    images, labels = digits_of()
    numbers = torch.arange(len(images))  # in the place of labels: which digit it is
    bank, key = texture_bank(), Key.of([3, 4])
    x, _, shown = fresh_texture_mnist(key, images, numbers, bank, 8, digits, twins=True)
    first, second = shown.reshape(2, 4, 2, digits).unbind(2)
    assert torch.equal(first, second.flip(-1))
    assert len(first.flatten().unique()) > 8 * digits - 3
    one, other = x.reshape(2, 4, 2, -1).unbind(2)
    assert ((one - other).abs().mean(-1) > 0.05).all()
    part, _, classes = fresh_texture_mnist(key, images, labels, bank, 4, digits, 4, twins=True)
    assert torch.equal(part, x[:, 4:])
    assert torch.equal(classes, labels[shown[:, 4:]])
