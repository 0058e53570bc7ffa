"""Classical methods on own data: k-means, NMF, ICA and spectral clustering, each tuned with the true groups.

# n scenes · N elements · K groups · R components; the channels of a position have one owner

Each learns from the training scenes and gives every element of a scene a label. They are told K, and their settings are
those with the highest AMI on validation: Tagger's are chosen without the truth.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF, FastICA

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.metrics import adjusted_mutual_information

Label = Callable[[Array], Array]
"""x (n, *shape) -> labels of the elements."""
POSITIONS = (0.0, 0.5, 1.0, 2.0)
"""Weights of an element's position beside its value, in standard deviations."""
COMPONENTS = (4, 8, 12, 16, 20, 32)


def candidates(name: str, train: Scenes, groups: int, seed: int) -> Iterator[tuple[str, Label]]:
    """A method with each of its settings, fitted."""
    if name == "k-means":
        for k in (groups - 1, groups):
            for weight in POSITIONS if train.kind == "real" else (1.0,):
                if k > 1:
                    yield f"K={k}, position x {weight:g}", _kmeans(train, k, weight, seed)
    elif name == "spectral":
        flat = train.x.reshape(len(train), -1, train.channels).astype(float).mean(-1)
        likeness = np.abs(np.nan_to_num(np.corrcoef(flat.T)))
        for k in (groups - 1, groups, 2 * groups):
            if k > 1:
                clusters = SpectralClustering(k, affinity="precomputed", random_state=seed).fit_predict(likeness + 1e-6)
                yield f"K={k}", lambda x, c=clusters: np.broadcast_to(c.reshape(train.shape), (len(x), *train.shape))
    else:
        for components in COMPONENTS:
            yield f"R={components}", _parts(name, train, groups, components, seed)


def best(name: str, train: Scenes, valid: Scenes, groups: int, seed: int) -> tuple[float, str, Label]:
    """AMI on validation, setting and labelling of the best setting of a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        found = [(ami(valid, label), setting, label) for setting, label in candidates(name, train, groups, seed)]
    return max(found, key=lambda one: one[0])


def ami(scenes: Scenes, label: Label) -> float:
    """Mean AMI over scenes."""
    return float(adjusted_mutual_information(scenes.groups, label(scenes.x).astype(np.int64)).mean())


def _kmeans(train: Scenes, k: int, weight: float, seed: int) -> Label:
    """Scene by scene: positions with like values at near places."""
    channels, shape = train.channels, train.shape
    axes = np.meshgrid(*map(np.arange, shape), indexing="ij")
    place = np.stack([a.ravel() / (0.29 * max(a.max(), 1)) for a in axes], 1)
    rows = train.x.reshape(len(train), -1, channels).astype(float)
    # Units of their own are taken out of elements of a table; a picture has one unit.
    over = (0,) if len(shape) == 1 else (0, 1, 2)
    mean, deviation = rows.mean(over, keepdims=True), rows.std(over, keepdims=True) + 1e-9

    def label(x: Array) -> Array:
        labels = np.zeros((len(x), len(place)), np.int64)
        for i, scene in enumerate(x.reshape(len(x), -1, channels)):
            here = scene[:, 0] > 0 if train.kind == "binary" else np.ones(len(scene), bool)
            value = ((scene - mean[0]) / deviation[0])[here]
            features = place[here] if train.kind == "binary" else np.concatenate([value, weight * place[here]], 1)
            if here.sum() >= k:
                labels[i, here] = KMeans(k, n_init=3, random_state=seed).fit_predict(features)
        return labels.reshape(len(x), *shape)

    return label


def _parts(name: str, train: Scenes, groups: int, components: int, seed: int) -> Label:
    """x as a sum of R components; of the K that contribute most to a scene, an element belongs to the largest."""
    flat = train.x.reshape(len(train), -1).astype(float)
    low, deviation = flat.min(0), flat.std(0) + 1e-9
    least = np.zeros_like(low) if train.kind == "binary" else low
    components = min(components, flat.shape[1])
    if name == "NMF":
        model = NMF(components, init="nndsvda", max_iter=300, random_state=seed).fit((flat - least) / deviation)
    else:
        model = FastICA(components, max_iter=300, random_state=seed, whiten="unit-variance").fit(flat / deviation)

    def label(x: Array) -> Array:
        rows = x.reshape(len(x), -1).astype(float)
        if name == "NMF":
            weights, parts = model.transform(np.maximum((rows - least) / deviation, 0)), model.components_
        else:
            weights, parts = model.transform(rows / deviation), model.mixing_.T
        each = np.abs(weights[:, :, None] * parts)  # (n, R, N)
        each = each.reshape(*each.shape[:2], -1, train.channels).sum(-1)
        energy = (each**2).sum(2)
        kept = energy >= np.sort(energy, 1)[:, -min(groups, energy.shape[1]), None]
        return np.where(kept[:, :, None], each, -1).argmax(1).reshape(len(x), *train.shape)

    return label


METHODS = ("k-means", "NMF", "ICA", "spectral")
