"""scikit-learn's front: a transformer that groups and a classifier that learns from few labels.

# n samples · N features at P positions · K groups · C classes

Departures from ``Tagger``: every sample starts from the same random masks, so that its result depends on nothing but
itself. With ``norm="batch"`` the statistics are frozen after training for the same reason. Samples are rows; a shape
they may have had is not needed, as nothing here knows of neighbours. ``channels`` says how many numbers that stand side
by side in a row share a mask, e.g. 3 for colour images (n, H, W, 3) made rows by ``reshape``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from taggernet.arrays import Array
from taggernet.config.validate import check_count, check_number
from taggernet.data import Scenes
from taggernet.data.lazy import LazyArrays, survey
from taggernet.evaluation import stack_weights
from taggernet.grouping_report import grouping_report
from taggernet.nets.norm import NormKind
from taggernet.rng import Key
from taggernet.tag import Grouping, State
from taggernet.tag.grouping import batches, join_histories
from taggernet.tagger import Tagger
from taggernet.training import Config, DataConfig, OptimiserConfig, RuntimeConfig, train_to_end
from taggernet.training.auto_config import V_RATE, check_spread, model_for
from taggernet.training.datasets import IN_MEMORY

UNLABELLED = -1


class _TaggerEstimator(BaseEstimator):  # type: ignore[misc]
    """What both share: parameters, training, and the loop from common first masks."""

    def __init__(
        self,
        n_groups: int = 4,
        *,
        widths: tuple[int, ...] = (64, 32),
        kind: str = "auto",
        norm: str = "auto",
        noise: float | None = None,
        iterations: int = 3,
        test_iterations: int = 5,
        learning_rate: float = 5e-3,
        batch_size: int = 50,
        updates: int = 200,
        random_state: Any = 0,
        device: str = "cpu",
        channels: int = 1,
    ) -> None:
        self.n_groups = n_groups
        self.widths = widths
        self.kind = kind
        self.norm = norm
        self.noise = noise
        self.iterations = iterations
        self.test_iterations = test_iterations
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.updates = updates
        self.random_state = random_state
        self.device = device
        self.channels = channels

    # --- fit ---------------------------------------------------------------------------------------------

    def _train(self, x: Array, classes: Array | None, n_classes: int, class_cost: float) -> None:
        """Learn from rows; ``classes`` -1 where there is none."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        channels, features = check_count("channels", self.channels, low=1), x.shape[1]
        if features % channels:
            raise ValueError(
                f"X has {features} features, which do not divide into positions of channels={channels}: set channels "
                "to what stands side by side in a row, or to 1"
            )
        images = x.reshape(len(x), -1, channels) if channels > 1 else x
        kind = None if self.kind == "auto" else self.kind
        scenes = Scenes.of(images, classes=classes, kind=kind, channels_axis="last" if channels > 1 else "none")
        whole = replace(LazyArrays.of(scenes, "X"), x=images)  # in float64, which tells more apart
        found = survey(whole, kind)
        check_spread(whole, found)
        widths = tuple(self.widths) if isinstance(self.widths, Iterable) else self.widths  # TaggerConfig checks them
        model = model_for(found, scenes.shape, widths, n_classes, channels=channels)
        norm = model.norm if self.norm == "auto" else cast(NormKind, self.norm)  # TaggerConfig checks it
        model = replace(model, norm=norm, noise=model.noise if self.noise is None else self.noise)
        config = Config(
            recipe=type(self).__name__,
            model=model,
            data=DataConfig(name=IN_MEMORY, train=len(x), valid=0, test=0),
            optimiser=OptimiserConfig(
                lr=self.learning_rate,
                batch=min(self.batch_size, len(x)),
                updates=self.updates,
                schedule="cosine",
                clip=1.0,
                v_rate=V_RATE if model.kind == "real" else 1.0,
            ),
            runtime=RuntimeConfig(self.device, progress=False, evaluate_every=0, checkpoint_every=0),
            groups=self.n_groups,
            iterations=self.iterations,
            test_groups=self.n_groups,
            test_iterations=self.test_iterations,
            class_cost=class_cost,
            first_seed=seed,
        )
        run = train_to_end(config, scenes=scenes)
        self.model_: Tagger = run.model()
        self.n_iter_ = run.step

    # --- use ---------------------------------------------------------------------------------------------

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self)
        _check_rows(X)
        return np.asarray(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    @torch.no_grad()
    def _states(self, X: Any, batch: int = 500) -> tuple[State, ...]:
        """The loop on each batch of rows: all its states joined, the common first masks in front."""
        x, model = self._checked(X), self.model_
        rows, _, _ = model.checked_rows(x)
        one = model.start(1, self.n_groups, Key.of(0).fold("masks"))
        histories: list[list[State]] = []
        for _, part in batches(rows, model.inputs_at_once(batch, self.n_groups)):
            start = State.cat([one] * len(part))
            histories.append([start, *model.iterate(model.inputs(part), start, self.test_iterations)])
        return join_histories(histories)

    def group(self, X: Any) -> Grouping:
        """All there is to know of the groups: masks, reconstructions, labels, history (K, N as the last dimensions)."""
        states, model = self._states(X), self.model_
        config = model.config
        return Grouping(states, config.shape, as_numpy=True, units=model.units, channels=config.channels)


class TaggerGrouper(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _TaggerEstimator):  # type: ignore[misc]
    """Learns without labels to split each sample into groups; ``transform`` gives the masks as (n, K * P).

    Parameters: ``n_groups`` K; ``widths`` of the Ladder; ``kind`` 'binary', 'real', 'categorical' or 'auto'; ``norm``
    'layer', 'batch' or 'auto'; ``noise`` of the corruption, None for the kind's default; ``iterations`` T in training
    and ``test_iterations`` T in use; ``learning_rate``, ``batch_size``, ``updates`` of the training; ``random_state``;
    ``device`` to train on; ``channels``, numbers side by side that share a mask. The defaults suit a first look; real
    use wants thousands of updates.
    """

    def fit(self, X: Any, y: Any = None) -> TaggerGrouper:
        """Learn from the rows of X; y is not looked at."""
        _check_rows(X)
        x = np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2))
        self._train(x, None, 0, 0.0)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_groups * self.n_features_in_ // self.channels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # masks are float32 whatever X is
        return tags

    def transform(self, X: Any) -> Array:
        """The masks, (n, K * P): the first P columns belong to the first group."""
        masks: Tensor = self._states(X)[-1].m
        return masks.flatten(1).numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """How well groups formed in X, from 0 to 1: ``GroupingReport.score``; y is not looked at.

        The likelihood would not do: it is that of each model's own noise, and little noise is easy to remove.
        """
        x, model = self._checked(X), self.model_
        config = model.config
        model.checked_rows(x)
        images = x.reshape(len(x), -1, config.channels) if config.channels > 1 else x
        scenes = Scenes.of(images, kind=config.kind, channels_axis="last" if config.channels > 1 else "none")
        report = grouping_report(
            model, stack_weights([model]), scenes, groups=self.n_groups, iterations=self.test_iterations
        )  # fmt: skip
        return report.score[0]


class TaggerClassifier(ClassifierMixin, _TaggerEstimator):  # type: ignore[misc]
    """Learns from all samples and from the labels of some: y = -1 marks a sample without one.

    Only where y holds -1 and 1 and nothing else are both classes, as is usual for two of them.

    Parameters as for TaggerGrouper, and ``class_cost``, the weight of the classification beside the denoising.
    """

    def __init__(
        self,
        n_groups: int = 2,
        *,
        widths: tuple[int, ...] = (64, 32),
        kind: str = "auto",
        norm: str = "auto",
        noise: float | None = None,
        iterations: int = 2,
        test_iterations: int = 2,
        learning_rate: float = 5e-3,
        batch_size: int = 50,
        updates: int = 200,
        class_cost: float = 1.0,
        random_state: Any = 0,
        device: str = "cpu",
        channels: int = 1,
    ) -> None:
        super().__init__(
            n_groups, widths=widths, kind=kind, norm=norm, noise=noise, iterations=iterations,
            test_iterations=test_iterations, learning_rate=learning_rate, batch_size=batch_size, updates=updates,
            random_state=random_state, device=device, channels=channels,
        )  # fmt: skip
        self.class_cost = class_cost

    def fit(self, X: Any, y: Any) -> TaggerClassifier:
        """Learn from the rows of X and the labels in y that are not -1."""
        _check_rows(X)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        known = _has_label(y)
        if not known.any():
            raise ValueError("y holds no label, only -1: give the class of some samples, or use TaggerGrouper")
        if not known.all() and len(np.unique(y[known])) < 2:
            raise ValueError("y holds one class and -1 for no label: give samples of two classes or more")
        self.classes_, numbers = np.unique(y[known], return_inverse=True)
        classes = np.full(len(y), UNLABELLED)
        classes[known] = numbers
        cost = check_number("class_cost", self.class_cost)
        if not cost > 0:
            raise ValueError(f"class_cost={self.class_cost} must be positive: without it no class is learned")
        self._train(np.asarray(X), classes, len(self.classes_), cost)
        return self

    def predict_proba(self, X: Any) -> Array:
        """(n, C): the probability of each of ``classes_``, in float32, as the network computes."""
        states = self._states(X)
        p = self.model_.class_probabilities(states[-1]).double().numpy()
        return np.asarray(p / p.sum(1, keepdims=True), np.float32)

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the samples that have a label."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        without = y.dtype.kind in "if" and UNLABELLED not in self.classes_
        known = y != UNLABELLED if without else np.ones(len(y), bool)
        if not known.any():
            raise ValueError("y holds no label, only -1: a score needs the true class of some samples")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(self.predict(X)[known] == y[known], weights=weight))


def _check_rows(X: Any) -> None:
    """Raise ValueError, saying what to do, if samples have a shape of their own: scikit-learn wants rows."""
    shape = getattr(X, "shape", ())
    if len(shape) > 2:
        raise ValueError(
            f"X has shape {tuple(shape)}, but scikit-learn's estimators take rows (n_samples, n_features): give "
            "X.reshape(len(X), -1), as neighbours do not matter here"
        )


def _has_label(y: Array) -> Array:
    """Which samples have a label; only numbers can say that they have none."""
    if y.dtype.kind not in "if" or set(np.unique(y)) == {UNLABELLED, 1}:
        return np.ones(len(y), bool)
    return np.asarray(y != UNLABELLED)
