"""The cells of Table 2: every one of the paper is there, and each is its recipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paper import table2_cells
from paper.baselines.recipes import LABELS
from paper.table2_cells import baseline_cells, baseline_name, chosen_families, tagger_cells, tagger_name, wanted
from taggernet.recipes import RECIPES


def test_every_cell_of_the_paper_is_there_and_named_once() -> None:
    names = [cell.config.recipe for cell in [*tagger_cells(), *baseline_cells()]]
    assert len(names) == len(set(names))
    for digits in (1, 2):
        for variant in ("", "reader"):
            assert {tagger_name(digits, labels, variant) for labels in (1_000, 50_000)} <= set(names)
        for labels in LABELS:
            assert tagger_name(digits, labels, "best") in names
            assert {baseline_name(method, digits, labels) for method in ("ladder", "convnet")} <= set(names)
        assert {baseline_name("mlp", digits, labels) for labels in (1_000, 50_000)} <= set(names)
    assert {tagger_name(2, 1_000, "permuted"), baseline_name("convnet", 2, 50_000, "permuted")} <= set(names)


def test_cells_are_their_recipes_but_for_labels_and_order() -> None:
    for cell in tagger_cells():
        config, first = cell.config, cell.first
        assert config.start_from == first.recipe
        assert config.data.permuted == first.data.permuted == ("permuted" in config.recipe)
        assert config.data.labels in LABELS
        if config.recipe in RECIPES:
            assert replace(config, start_from="") == RECIPES[config.recipe]()


def test_our_recipe_has_rows_as_soon_as_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {name: make for name, make in RECIPES.items() if "best" not in name}
    added = {
        name.replace("mnist-1", "mnist-1-best"): (lambda make=make, name=name: replace(
            make(), recipe=name.replace("mnist-1", "mnist-1-best")
        ))
        for name, make in without.items()
        if name.startswith("texture-mnist-1")
    }  # fmt: skip
    for recipes, expected in ((without, []), (without | added, ["texture-mnist-1-best"])):
        monkeypatch.setattr(table2_cells, "RECIPES", recipes)
        monkeypatch.setattr(table2_cells, "recipe", lambda name, recipes=recipes: recipes[name]())
        found = chosen_families(["best"])
        assert [first.recipe for first, _ in found] == expected
    assert [config.recipe for config in found[0][1]] == [tagger_name(1, n, "best") for n in (1_000, 50_000)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["tagger"], {"texture-mnist-1": 2, "texture-mnist-2": 2}),
        (["curve"], {"texture-mnist-1": 4, "texture-mnist-2": 4}),
        (["permuted"], {"texture-mnist-2-permuted": 2}),
        (["texture-mnist-2"], {"texture-mnist-2": 0}),
        (["texture-mnist-1-best-labels-*k"], {"texture-mnist-1": 3}),
    ],
)
def test_rows_choose_families(rows: list[str], expected: dict[str, int]) -> None:
    assert {first.recipe: len(seconds) for first, seconds in chosen_families(rows)} == expected


def test_fresh_names_every_baseline_of_the_table() -> None:
    names = [cell.config.recipe for cell in baseline_cells() if wanted(cell, ["fresh"])]
    methods = ("mlp", "ladder", "convnet")
    assert sorted(names) == sorted(
        baseline_name(m, d, n, "fresh") for m in methods for d in (1, 2) for n in (1_000, 50_000)
    )
