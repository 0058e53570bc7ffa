"""The cells of Table 2 and of what stands around it: which runs there are, and which first phase they share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from paper.baselines import BASELINES, BaselineConfig
from paper.baselines.recipes import LABELS
from taggernet.recipes import RECIPES, recipe
from taggernet.recipes.texture_mnist import shorthand
from taggernet.training import Config

DIGITS = (1, 2)
TABLE_LABELS = (50_000, 1_000)
VARIANTS = ("reader", "best", "small")
"""Tagger by other recipes: with a mask reader, our best, the shipped model's."""
CURVE = "best"
"""The variant that is also trained with other numbers of labels."""
ROWS = ("tagger", "baselines", *VARIANTS, "fresh", "permuted", "curve")
"""The parts: Tagger by the paper's method, its baselines, the variants, the baselines on fresh compositions, shuffled
elements, errors over the number of labels."""


@dataclass(frozen=True)
class TaggerCell:
    """A second phase; ``first`` is the phase without labels that it starts from."""

    config: Config
    first: Config
    rows: tuple[str, ...]


@dataclass(frozen=True)
class BaselineCell:
    config: BaselineConfig
    rows: tuple[str, ...]


def tagger_name(digits: int, labels: int, variant: str = "") -> str:
    """texture-mnist-2-best-labels-1k: two digits, our recipe, 1,000 labels."""
    return f"{first_name(digits, variant)}-labels-{shorthand(labels)}"


def first_name(digits: int, variant: str = "") -> str:
    return f"texture-mnist-{digits}" + (f"-{variant}" if variant else "")


def baseline_name(method: str, digits: int, labels: int, variant: str = "") -> str:
    name = f"{method}-texture-mnist-{digits}-{shorthand(labels)}"
    return f"{name}-{variant}" if variant else name


def tagger_cells() -> list[TaggerCell]:
    """The paper's method, the variants where they have recipes, our best one's curve over labels, shuffled elements."""
    found = []
    for variant, digits, labels in itertools.product(("", *VARIANTS), DIGITS, LABELS):
        name, own = tagger_name(digits, labels, variant), first_name(digits, variant)
        if name in RECIPES:
            first = recipe(own if own in RECIPES else first_name(digits))
            rows = (variant or "tagger",) if labels in TABLE_LABELS else ()
            found.append(_second(recipe(name), first, (*rows, "curve") if variant == CURVE else rows))
    first = _permuted(recipe(first_name(2)), first_name(2, "permuted"))
    for labels in TABLE_LABELS:
        config = _permuted(recipe(tagger_name(2, labels, "reader")), tagger_name(2, labels, "permuted"))
        found.append(_second(config, first, ("permuted",)))
    return found


def _second(config: Config, first: Config, rows: tuple[str, ...]) -> TaggerCell:
    return TaggerCell(replace(config, start_from=first.recipe), first, rows)


def _permuted(config: Config, name: str) -> Config:
    """The same on scenes whose elements are shuffled."""
    return replace(config, recipe=name, data=replace(config.data, permuted=True))


def baseline_cells() -> list[BaselineCell]:
    """Every cell of the paper, the same on fresh compositions, the Ladder's own anchor, the shuffled ConvNet and the
    curve of Ladder and ConvNet."""
    found: dict[str, BaselineCell] = {}

    def add(name: str, *rows: str) -> None:
        before = found[name].rows if name in found else ()
        found[name] = BaselineCell(BASELINES[name], before + rows)

    for digits in DIGITS:
        for method in ("mlp", "ladder", "convnet"):
            for labels in TABLE_LABELS:
                add(baseline_name(method, digits, labels), "baselines")
                add(baseline_name(method, digits, labels, "fresh"), "fresh")
        for labels in TABLE_LABELS:
            add(baseline_name("ladder", digits, labels, "unwhitened"), "baselines")
    add("ladder-mnist-1k", "baselines")
    for labels in TABLE_LABELS:
        add(baseline_name("convnet", 2, labels, "permuted"), "permuted")
        add(baseline_name("convnet", 2, labels), "permuted")
    for digits in DIGITS:
        for method in ("ladder", "convnet"):
            for labels in LABELS:
                add(baseline_name(method, digits, labels), "curve")
    return list(found.values())


def wanted(cell: TaggerCell | BaselineCell, rows: Sequence[str]) -> bool:
    """Whether one of these names a row of the cell or the cell itself; * stands for anything."""
    names = (*cell.rows, cell.config.recipe)
    return any(fnmatchcase(name, pattern) for pattern in rows for name in names)


def chosen_families(rows: Sequence[str]) -> list[tuple[Config, list[Config]]]:
    """Every first phase that is named, or from which a wanted second phase starts, with those second phases."""
    families: dict[str, list[TaggerCell]] = {}
    for cell in tagger_cells():
        families.setdefault(cell.first.recipe, []).append(cell)
    found = []
    for name, family in families.items():
        seconds = [cell.config for cell in family if wanted(cell, rows)]
        if seconds or any(fnmatchcase(name, pattern) for pattern in rows):
            found.append((family[0].first, seconds))
    return found
