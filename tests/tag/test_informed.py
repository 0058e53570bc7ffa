"""Masks that start from the scene: clusters and parts against scikit-learn, scipy and plain loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from square_scenes import RANDOM, normal, squares

from taggernet import Tagger, TaggerConfig
from taggernet.metrics import adjusted_mutual_information, foreground_adjusted_rand_index
from taggernet.rng import Key
from taggernet.tag.informed import (
    EDGE,
    PARTS,
    Parts,
    _apart,
    _most_common,
    _weights,
    averaged,
    between_clusters,
    by_parts,
    by_places,
    by_value,
    find_parts,
    slopes,
    textures,
)
from taggernet.training.seeds import initial_weights


def test_values_start_as_k_means_finds_them() -> None:
    """Colours of four kinds: all starts give the groups of scikit-learn, in an order of chance."""
    colours = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1.0]])
    x = colours[RANDOM.integers(0, 4, (20, 25))] + 0.02 * RANDOM.standard_normal((20, 25, 3))
    masks = by_value(torch.from_numpy(x.reshape(20, 75)).float(), normal(20, 4, 25), 3).softmax(-2)
    torch.testing.assert_close(masks.sum(-2), torch.ones(20, 25))
    wanted = np.stack([KMeans(4, n_init=5, random_state=0).fit_predict(scene) for scene in x]) + 1
    assert adjusted_mutual_information(wanted, masks.argmax(-2).numpy()).mean() > 0.95
    assert len({tuple(order) for order in masks.argmax(-2)[:, :5].tolist()}) > 10


def test_values_between_clusters_are_counted() -> None:
    two, one = RANDOM.choice([-1.0, 1.0], (50, 40)), RANDOM.normal(size=(50, 40))
    noise = 0.1 * RANDOM.standard_normal((50, 40))
    found = [between_clusters(torch.from_numpy(x).float(), 2, 1) for x in (two + noise, one)]
    assert found[0] < 0.01
    assert found[1] > 0.1


def test_silence_is_the_middle_of_the_shortest_interval() -> None:
    x = np.concatenate([RANDOM.normal(3, 0.01, (40, 2)), RANDOM.uniform(-5, 5, (160, 2))])
    ordered = np.sort(x, 0)
    for column in range(2):
        pairs = [(ordered[i + 20, column] - ordered[i, column], i) for i in range(180)]
        first = min(pairs)[1]
        wanted = (ordered[first, column] + ordered[first + 20, column]) / 2
        assert _most_common(torch.from_numpy(x))[column].item() == pytest.approx(wanted)
        assert abs(wanted - 3) < 0.05


def test_the_weights_of_parts_explain_a_scene_as_well_as_least_squares() -> None:
    shapes = RANDOM.uniform(0, 1, (PARTS, 60)) * (RANDOM.random((PARTS, 60)) < 0.2)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    scenes = RANDOM.uniform(0, 1, (10, PARTS)) * (RANDOM.random((10, PARTS)) < 0.2) @ shapes
    found = _weights(torch.from_numpy(scenes), torch.from_numpy(shapes)).numpy()
    assert found.min() >= 0
    for scene, weights in zip(scenes, found, strict=True):
        best = nnls(shapes.T, scene)[0]
        assert np.linalg.norm(scene - weights @ shapes) < np.linalg.norm(scene - best @ shapes) + 0.1 * np.linalg.norm(
            scene
        )


def events(n: int, signs: bool, quiet: float = 0.0) -> tuple[Any, Any]:
    """Two of four events of five elements each, which do not overlap, and what is silent (group 0)."""
    chosen = np.argsort(RANDOM.random((n, 4)), 1)[:, :2]
    owner = np.zeros((n, 4, 5), np.int64)
    owner[np.arange(n)[:, None], chosen] = np.array([1, 2])[:, None]
    shape = np.array([1, -1, 1, -1, 1]) if signs else np.ones(5)
    size = RANDOM.uniform(0.8, 1.2, (n, 4, 1)) * (RANDOM.choice([-1, 1], (n, 4, 1)) if signs else 1)
    x = quiet + np.where(owner > 0, size * shape, 0) + 0.02 * RANDOM.standard_normal(owner.shape)
    return x.reshape(n, 20), owner.reshape(n, 20)


@pytest.mark.parametrize(("signs", "quiet"), [(False, 0.0), (True, 0.0), (False, -3.0)])
def test_parts_start_as_the_objects_that_they_make_up(signs: bool, quiet: float) -> None:
    """Each event in a group of its own, whatever its sign and wherever silence lies; silence in the last group."""
    x, owner = (torch.from_numpy(part) for part in events(600, signs, quiet))
    x = x.float()
    parts = find_parts(x.reshape(600, 20, 1), "mean" if signs else "common")
    torch.testing.assert_close(parts.quiet[0], torch.full((20,), quiet), atol=0.1, rtol=0)
    labels = by_parts(x[:200], normal(200, 3, 20), 1, parts).argmax(-2)
    assert adjusted_mutual_information(owner[:200].numpy(), labels.numpy()).mean() > 0.9
    assert ((labels == 2) == (owner[:200] == 0)).float().mean() > 0.98
    two = by_parts(x[:200], normal(200, 2, 20), 1, parts).argmax(-2)
    assert adjusted_mutual_information(owner[:200].numpy(), two.numpy()).mean() > 0.9


@pytest.mark.parametrize("channels", [1, 3])
def test_places_tell_like_objects_apart(channels: int) -> None:
    """Two squares of one colour, far from each other, on a background that is not zero; the background is the last."""
    x, owner = np.full((60, 12, 12, channels), 2.0), np.zeros((60, 12, 12), np.int64)
    for i in range(60):
        left, right = RANDOM.integers(0, 3, 2), RANDOM.integers(0, 3, 2) + np.array([0, 6])
        for k, (row, column) in enumerate((left, right)):
            x[i, row : row + 4, column : column + 4] = 5 + np.arange(channels)
            owner[i, row : row + 4, column : column + 4] = k + 1
    rows = torch.from_numpy(x + 0.1 * RANDOM.standard_normal(x.shape)).float().reshape(60, 144, channels)
    labels = by_places(rows.flatten(1), normal(60, 3, 144), channels, (12, 12)).argmax(-2).numpy()
    assert adjusted_mutual_information(owner.reshape(60, 144), labels).mean() > 0.95
    assert ((labels == 2) == (owner.reshape(60, 144) == 0)).mean() > 0.99
    by_colour = by_value(rows.flatten(1), normal(60, 3, 144), channels).argmax(-2).numpy()
    assert adjusted_mutual_information(owner.reshape(60, 144), by_colour).mean() < 0.5


def test_a_scene_of_few_objects_leaves_groups_empty() -> None:
    """With places apart every square is one group; without, the centres that are left over cut squares in pieces."""
    x, owner = squares(60, 3)
    rows, random = torch.from_numpy(x).float(), normal(60, 5, 576)
    apart = by_places(rows, random, 1, (24, 24), 2.0, 0.25).argmax(-2).numpy()
    assert adjusted_mutual_information(owner, apart).mean() > 0.999
    counts = [len(np.unique(labels)) for labels in apart]
    assert counts == [len(np.unique(labels)) for labels in owner]
    near = by_places(rows, random, 1, (24, 24)).argmax(-2).numpy()
    assert adjusted_mutual_information(owner, near).mean() < 0.9


def test_heavy_places_group_by_place_whatever_the_values() -> None:
    """Squares of noise: values tell nothing, places all."""
    x, owner = squares(40, 3)
    x = np.where(owner > 0, RANDOM.choice([-4.0, 7.0], x.shape), x)
    rows, random = torch.from_numpy(x).float(), normal(40, 4, 576)
    heavy = by_places(rows, random, 1, (24, 24), 100.0, 0.25).argmax(-2).numpy()
    assert adjusted_mutual_information(owner, heavy).mean() > 0.95
    light = by_places(rows, random, 1, (24, 24), 0.1, 0.25).argmax(-2).numpy()
    assert adjusted_mutual_information(owner, light).mean() < 0.8


def test_textures_with_silent_spots_are_loud_on_average() -> None:
    """Half of each square is as bright as the background: smoothed, all of it belongs to the square."""
    x, owner = squares(40, 3, side=6)
    spots = RANDOM.random(x.shape) < 0.5
    x = np.where((owner > 0) & spots, x, x - 2 * (owner > 0))
    rows, random = torch.from_numpy(x).float(), normal(40, 4, 576)
    inside = owner > 0
    sharp, smooth = (by_places(rows, random, 1, (24, 24), 100.0, 0.25, side).argmax(-2).numpy() for side in (1, 3))
    assert (sharp[inside] == 3).mean() > 0.4
    assert (smooth[inside] == 3).mean() < 0.05
    scores = [adjusted_mutual_information(owner[:, :], labels).mean() for labels in (sharp, smooth)]
    assert scores[1] > scores[0]


@pytest.mark.parametrize("shape", [(7, 9), (20,), (4, 5, 6), (1, 6), (2, 3)])
def test_slopes_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    x = RANDOM.standard_normal((3, *shape, 2))
    for axis, length in enumerate(shape):
        wanted = np.gradient(x, axis=axis + 1) if length > 1 else np.zeros_like(x)
        found = slopes(torch.from_numpy(x).reshape(3, -1, 2), shape, axis)
        np.testing.assert_allclose(found.numpy(), wanted.reshape(3, -1, 2), atol=1e-12)


def test_the_texture_of_a_wave_is_its_direction_and_its_wave_number() -> None:
    """Of a long wave, away from the edges; twice the angle turns once around the circle of directions."""
    down, right = np.meshgrid(np.arange(48), np.arange(48), indexing="ij")
    inside = (abs(down - 24) < 12) & (abs(right - 24) < 12)
    for angle, number in ((0.0, 0.1), (0.7, 0.1), (2.0, 0.2)):
        wave = np.sqrt(2) * np.sin(number * (np.cos(angle) * down + np.sin(angle) * right))
        found = textures(torch.from_numpy(wave).reshape(1, -1, 1), torch.ones(1, 48 * 48), (48, 48), 63)
        rows, mixed, columns, fineness = found.reshape(48, 48, 4)[torch.from_numpy(inside)].mean(0).numpy()
        turned = np.array([rows - columns, np.sqrt(2) * mixed]) / np.sqrt(2)
        np.testing.assert_allclose(turned, [np.cos(2 * angle), np.sin(2 * angle)], atol=0.03)
        np.testing.assert_allclose(fineness, 2 * np.log(number), atol=0.2)


def test_an_edge_is_not_part_of_the_texture_that_it_ends() -> None:
    """Stripes on a bright square: where all that is loud counts, positions near its edge look like something else."""
    down, right = np.meshgrid(np.arange(24), np.arange(24), indexing="ij")
    from_middle = np.maximum(abs(down - 12), abs(right - 12))
    square, loud, inside = (torch.from_numpy(1.0 * (from_middle < size)).reshape(1, -1) for size in (8, 10, 6))
    x = square * torch.from_numpy(2 + np.sin(0.9 * down + 0.5 * right)).reshape(1, -1)
    off = []
    for weight in (loud, inside + EDGE * loud):
        found = textures(x.unsqueeze(-1), weight, (24, 24), 7)
        off.append((found - found[:, 12 * 24 + 12]).norm(dim=-1)[square > 0].max().item())
    assert off[0] > 1.0
    assert off[1] < 0.5


def test_touching_objects_of_different_stripes_start_apart() -> None:
    """Both have the same values, and no gap lies between them: only the direction of the stripes differs."""
    down, right = np.meshgrid(np.arange(24), np.arange(24), indexing="ij")
    x, owner = np.zeros((30, 24, 24)), np.zeros((30, 24, 24), np.int64)
    for scene in range(30):
        top, left, cut = RANDOM.integers(2, 8), RANDOM.integers(1, 4), RANDOM.integers(8, 12)
        inside = (down >= top) & (down < top + 12) & (right >= left) & (right < left + 20)
        owner[scene] = inside * np.where(right < left + cut, 1, 2)
        stripes = np.where(owner[scene] == 1, down + right, down - right) // 2 % 2
        x[scene] = inside * np.where(stripes, 1.0, -1.0)
    rows, random = torch.from_numpy(x.reshape(30, -1)).float(), normal(30, 3, 576)
    of_texture, of_values = (
        foreground_adjusted_rand_index(
            owner.reshape(30, -1), by_places(rows, random, 1, (24, 24), 1.5, 0.3, side).argmax(-2).numpy()
        ).mean()
        for side in (3, 1)
    )
    assert of_texture > 0.8
    assert of_values < 0.5


@pytest.mark.parametrize(("shape", "side"), [((7, 9), 3), ((7, 9), 5), ((20,), 3), ((4, 5, 6), 3), ((3, 3), 99)])
def test_an_average_is_the_one_over_a_square(shape: tuple[int, ...], side: int) -> None:
    x = RANDOM.standard_normal((3, *shape))
    wanted = np.empty_like(x)
    for at in np.ndindex(*shape):
        window = tuple(slice(max(0, i - side // 2), i + side // 2 + 1) for i in at)
        wanted[(slice(None), *at)] = x[(slice(None), *window)].reshape(3, -1).mean(1)
    found = averaged(torch.from_numpy(x).reshape(3, -1), shape, side)
    np.testing.assert_allclose(found.numpy(), wanted.reshape(3, -1), rtol=1e-9, atol=1e-12)


def test_parts_of_binary_scenes_are_above_zero() -> None:
    x, _ = events(300, signs=False)
    parts = find_parts(torch.from_numpy((x > 0.5).astype(np.float32)).reshape(300, 20, 1), "zero")
    assert not parts.quiet[0].any()
    assert not parts.shapes[:, 20:].any()
    lengths = parts.shapes.norm(dim=1)
    assert ((lengths - 1).abs() < 1e-3).logical_or(lengths < 1e-3).all()


@pytest.mark.parametrize(("shape", "inked"), [((3, 2, 1), [2]), ((8, 16, 1), [19, 59, 63, 110]), ((5, 4, 1), [])])
def test_scenes_of_few_parts_give_numbers(shape: tuple[int, ...], inked: list[int]) -> None:
    """NMF from its usual start gives NaN, or numbers that float32 does not hold."""
    x = torch.zeros(shape)
    x.view(-1)[inked] = 1
    for silence in ("zero", "mean", "common"):
        for name, part in find_parts(x, silence)._asdict().items():
            assert part.isfinite().all(), (silence, name)


def test_which_parts_appear_together_is_the_correlation_of_their_weights() -> None:
    x, _ = events(500, signs=True)
    rows = torch.from_numpy(x).float()
    parts = find_parts(rows.reshape(500, 20, 1), "mean")
    weights = _weights(_apart(rows, parts.quiet[0]), parts.shapes)
    used = weights.std(0) > 1e-3
    wanted = np.corrcoef(weights[:, used].numpy().T)
    np.testing.assert_allclose((parts.together @ parts.together.T)[used][:, used].numpy(), wanted, atol=1e-3)


def test_a_scene_of_silence_and_equal_values_give_numbers() -> None:
    x = torch.zeros(3, 20)
    parts = Parts(torch.stack([torch.zeros(20), torch.full((20,), 0.1)]), torch.zeros(PARTS, 40), torch.eye(PARTS))
    for m_pre in (
        by_value(x, normal(3, 4, 20), 1), by_parts(x, normal(3, 4, 20), 1, parts),
        by_places(x, normal(3, 4, 20), 1, (4, 5)), by_places(x, normal(3, 4, 20), 1, (20,), 5.0, 0.3, 3),
        by_places(x, normal(3, 4, 20), 1, (20,), 5.0, 0.3, sizes=True),
    ):  # fmt: skip
        assert torch.isfinite(m_pre).all()


def of_parts(start: str = "parts", channels: int = 1, kind: str = "real") -> Tagger:
    """With the parts of some scenes."""
    config = TaggerConfig((10,), kind, (8, 4), channels=channels, start=start, norm="layer")  # type: ignore[arg-type]
    x, _ = events(300, signs=kind == "real")
    weights = initial_weights(config, [0], "cpu", x[:, : 10 * channels].astype(np.float32))
    model = Tagger(config)
    model.load_state_dict({name: w[0] for name, w in weights.items()})
    return model


@pytest.mark.parametrize("start", ["values", "parts", "places"])
@pytest.mark.parametrize("channels", [1, 2])
def test_masks_start_from_what_the_model_sees(start: str, channels: int) -> None:
    """From the corrupted scene, not the clean one; in any batch; and they stay a prior."""
    model = of_parts(start, channels)
    x, _ = events(8, signs=True)
    rows = torch.from_numpy(x[:, : 10 * channels]).float()
    noise, masks = Key.of(1), Key.of(2)
    first, after, *_ = model.states(rows, 3, 2, masks, noise=noise)
    seen = model.corrupt(rows, noise)
    assert torch.equal(first.m_pre, model.start(8, 3, masks, seen=seen).m_pre)
    assert not torch.equal(first.m_pre, model.start(8, 3, masks, seen=rows).m_pre)
    part = model.start(3, 3, masks, 5, seen[5:])
    torch.testing.assert_close(part.m_pre, first.m_pre[5:], atol=1e-3, rtol=1e-3)
    (without,) = _loose(model).iterate(seen, first, 1)
    torch.testing.assert_close(after.m, (without.m * first.m / (without.m * first.m).sum(-2, keepdim=True)))


def test_the_tie_fades_from_iteration_to_iteration() -> None:
    """Each iteration's log masks are those without a tie, plus the start's, half as much every time."""
    model, tied = of_parts(), of_parts()
    tied.config = replace(model.config, tie=0.5)
    seen = model.inputs(torch.from_numpy(events(4, signs=True)[0][:, :10]).float())
    state = model.start(4, 3, Key.of(0), seen=seen)
    found = list(tied.iterate(seen, state, 3))
    for i, before in enumerate([state, *found[:-1]]):
        (loose,) = _loose(model).iterate(seen, before, 1)
        torch.testing.assert_close(found[i].m_pre, loose.m_pre + 0.5**i * state.m_pre)
    tied.config = replace(model.config, tie=0.0)
    (free,), (loose,) = tied.iterate(seen, state, 1), _loose(model).iterate(seen, state, 1)
    assert torch.equal(free.m, loose.m)


def _loose(model: Tagger) -> Tagger:
    """The same model, whose masks are not tied to their start."""
    plain = Tagger(TaggerConfig((10,), "real", (8, 4), channels=model.config.channels, norm="layer"))
    plain.load_state_dict({name: w for name, w in model.state_dict().items() if not name.startswith("start_")})
    return plain


def test_seeds_start_as_each_alone() -> None:
    model = of_parts()
    x = torch.from_numpy(np.stack([events(4, True)[0][:, :10] for _ in range(2)])).float()
    parts = Parts(model.start_quiet.detach(), model.start_shapes.detach(), model.start_together.detach())
    stacked = Parts(*(torch.stack([part, 0.9 * part]) for part in parts))
    random = Key.of([0, 1]).normal(4, 3, 10)
    both = by_parts(x, random, 1, stacked)
    for seed in range(2):
        alone = by_parts(x[seed], random[seed], 1, Parts(*(part[seed] for part in stacked)))
        torch.testing.assert_close(both[seed], alone, atol=1e-3, rtol=1e-3)


def test_what_does_not_go_together_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="give what the model sees of it, seen="):
        of_parts().start(2, 3, Key.of(0))
    with pytest.raises(ValueError, match="start='values' is for real values, but kind='binary'"):
        TaggerConfig((10,), "binary", start="values")
    with pytest.raises(ValueError, match=r"start_smooth=4 has no middle: give an odd number"):
        TaggerConfig((10,), "real", start="places", start_smooth=4)
    with pytest.raises(ValueError, match=r"start_apart=0.3 is for masks that start from places, but start='values'"):
        TaggerConfig((10,), "real", start="values", start_apart=0.3)
    with pytest.raises(ValueError, match="start_patch=2 is for masks that start at random, but start='parts'"):
        TaggerConfig((4, 4), start="parts", start_patch=2)
