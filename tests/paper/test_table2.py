"""Table 2 at toy size: what is trained and what is kept, what groups say, and the page made of records."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import taggernet
from paper import table1, table2, table2_cells
from paper.baselines.recipes import LABELS
from paper.class_analysis import ANSWERS, answer_counts, holders
from paper.reproduce import reproduce
from paper.table1 import quick, spread
from paper.table2 import ROWS, reproduce_table2
from paper.table2_cells import (
    baseline_cells,
    baseline_name,
    chosen_families,
    tagger_cells,
    tagger_name,
    wanted,
)
from paper.table2_page import GOALS, PAPER_TAGGER, label_curve, main_table, permuted_table
from taggernet.cli import main
from taggernet.recipes import RECIPES
from taggernet.training import Config, Run, train
from taggernet.viz import layout

FIRST, FEW, ALL = "texture-mnist-2", "texture-mnist-2-labels-1k", "texture-mnist-2-labels-50k"


class Trained:
    """Stands in for ``train``: a few updates of tiny models, and a list of what was asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.starts: list[Any] = []
        self.weights: dict[str, Any] = {}

    def __call__(self, config: Config, out: Path | None, *, start: Any = None) -> Run:
        self.names.append(config.recipe)
        self.starts.append(start)
        run = train(config, out, start=start)
        self.weights[config.recipe] = run.weights
        return run


def tiny(config: Config) -> Config:
    small = quick(config)
    return replace(
        small,
        data=replace(small.data, valid=20, test=30),
        optimiser=replace(small.optimiser, updates=2),
        runtime=replace(small.runtime, progress=False, tensorboard=False, evaluate_scenes=20),
        test_iterations=2,
    )


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    found = Trained()
    monkeypatch.setattr(table2, "train", found)
    monkeypatch.setattr(table1, "quick", tiny)
    monkeypatch.setattr(table2, "label_curve_figure", lambda curves, out: None)
    return found


def make(results: Path, runs: Path | None, *rows: str) -> str:
    return reproduce_table2(results, runs, seeds=2, toy=True, device="cpu", rows=rows)


# --- training and records -----------------------------------------------------------------------------------------


def test_both_label_counts_share_their_first_phase_in_memory(trained: Trained, tmp_path: Path) -> None:
    text = make(tmp_path, None, FEW, ALL)
    assert trained.names == [FIRST, ALL, FEW]
    assert trained.starts == [None, trained.weights[FIRST], trained.weights[FIRST]]
    record = json.loads((tmp_path / f"{FEW}.json").read_text())
    assert record["config"]["start_from"] == FIRST
    assert record["first_phase"]["recipe"] == FIRST
    assert record["first_phase"]["seeds"] == 2
    assert np.shape(record["test"]["error"]) == (2, 2)
    parts = np.mean([record["test"][name] for name in ("error_first", "error_second")], axis=0)
    np.testing.assert_allclose(parts, record["test"]["error"])
    assert np.shape(record["groups"]["counts"]) == (2, 4, 4)
    assert np.sum(record["groups"]["counts"]) == 2 * 30 * 4, "every group of every scene, for both seeds"
    assert np.shape(record["training_scenes"]["error"]) == (2, 2)
    assert record["training_scenes"]["scenes"] == 400
    assert text == (tmp_path / "table2.md").read_text()
    assert spread([100 * row[-1] for row in record["test"]["error"]], 2) in text

    make(tmp_path, None, FEW, ALL)
    assert len(trained.names) == 3, "records are kept"
    (tmp_path / f"{FEW}.json").unlink()
    make(tmp_path, None, FEW, ALL)
    assert trained.names[3:] == [FIRST, FEW], "what is missing is made again, from a first phase made again"
    stale = json.loads((tmp_path / f"{FEW}.json").read_text())
    del stale["first_phase"]["optimiser"]["lower_rate"]
    (tmp_path / f"{FEW}.json").write_text(json.dumps(stale))
    make(tmp_path, None, FEW)
    assert len(trained.names) == 5, "a record older than a field is one with its default"
    stale["first_phase"]["optimiser"]["lr"] = 1.0
    (tmp_path / f"{FEW}.json").write_text(json.dumps(stale))
    make(tmp_path, None, FEW)
    assert trained.names[5:] == [FIRST, FEW], "a record that started from another first phase does not count"


def test_folders_keep_the_first_phase(trained: Trained, tmp_path: Path) -> None:
    make(tmp_path / "results", tmp_path / "runs", FIRST)
    assert trained.names == [FIRST]
    assert [path.name for path in (tmp_path / "results").glob("*.json")] == [f"{FIRST}.json"]
    once = {name: w.detach().clone() for name, w in trained.weights[FIRST].items()}
    make(tmp_path / "results", tmp_path / "runs", FEW)
    assert trained.names == [FIRST, FIRST, FEW], "asked for again, to read its weights"
    assert all(torch.equal(w, once[name]) for name, w in trained.weights[FIRST].items()), "and not trained again"
    assert (tmp_path / "runs" / FEW / "seed-1" / "model.safetensors").exists()


def test_an_unfinished_run_ends_it(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "train", lambda *_, **__: replace(trained(tiny(RECIPES[FIRST]()), None), step=1))
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, None, FEW)
    assert not list(tmp_path.glob("*.json"))


def test_a_baseline_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(tmp_path, None, "mlp-texture-mnist-1-1k")
    assert "FC MLP" in text
    assert "89.0 ± 0.2" in text
    monkeypatch.setattr(table2, "run_baseline", lambda config: pytest.fail("its record is there"))
    assert make(tmp_path, None, "mlp-texture-mnist-1-1k") == text
    path = tmp_path / "mlp-texture-mnist-1-1k.json"
    older = json.loads(path.read_text())
    del older["config"]["optimiser"]["lower_rate"], older["config"]["permuted"]
    path.write_text(json.dumps(older))
    assert make(tmp_path, None, "mlp-texture-mnist-1-1k") == text, "a record older than a field is one with its default"


def test_rows_must_name_something(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows=\['tager'\] name nothing of Table 2: choose from tagger, baselines"):
        make(tmp_path, None, "tager")
    with pytest.raises(ValueError, match=r"rows=\['permutd'\] name nothing"):
        make(tmp_path, None, "mlp-texture-mnist-1-1k", "permutd")
    assert not list(tmp_path.iterdir()), "it says so before it trains"


def test_training_needs_no_command_line_library() -> None:
    code = (
        "import sys\n"
        "for name in ('tyro', 'beartype', 'gradio'): sys.modules[name] = None\n"
        "import paper.table2, paper.baselines, paper.rc"
    )
    source = str(Path(taggernet.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": source, "OMP_NUM_THREADS": "1"})


# --- cells --------------------------------------------------------------------------------------------------------


def test_every_cell_of_the_paper_is_there_and_named_once() -> None:
    names = [cell.config.recipe for cell in [*tagger_cells(), *baseline_cells()]]
    assert len(names) == len(set(names))
    for digits in (1, 2):
        for labels in LABELS:
            assert tagger_name(digits, labels) in names
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
    assert [config.recipe for config in found[0][1]] == [tagger_name(1, n, "best") for n in (50_000, 1_000)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["tagger"], {"texture-mnist-1": 2, "texture-mnist-2": 2}),
        (["curve"], {"texture-mnist-1": 6, "texture-mnist-2": 6}),
        (["permuted"], {"texture-mnist-2-permuted": 2}),
        (["texture-mnist-2"], {"texture-mnist-2": 0}),
        (["texture-mnist-1-labels-*k"], {"texture-mnist-1": 4}),
    ],
)
def test_rows_choose_families(rows: list[str], expected: dict[str, int]) -> None:
    assert {first.recipe: len(seconds) for first, seconds in chosen_families(rows)} == expected


# --- what groups say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 2])
def test_answers_are_counted_as_by_hand(digits: int) -> None:
    rng = np.random.default_rng(digits)
    n, groups, elements, no_class = 60, 3, 7, 4
    true = rng.integers(0, digits + 2, (n, elements)).astype(np.uint8)
    labels = rng.integers(0, groups, (n, elements)).astype(np.uint8)
    answers = rng.integers(0, no_class + 1, (n, groups))
    classes = rng.integers(0, no_class, (n, digits))
    expected = np.zeros((digits + 2, len(ANSWERS)), int)
    for scene in range(n):
        for k in range(groups):
            held = [int(((true[scene] == j) & (labels[scene] == k)).sum()) for j in range(1, digits + 2)]
            holder = held.index(max(held)) if max(held) else digits + 1
            said = answers[scene, k]
            if said == no_class:
                answer = "no class"
            elif 1 <= holder <= digits and said == classes[scene, holder - 1]:
                answer = "the digit it holds"
            else:
                answer = "another digit of the scene" if said in classes[scene] else "a digit that is not there"
            expected[holder, ANSWERS.index(answer)] += 1
    arrays = (torch.from_numpy(a) for a in (true, labels, answers, classes))
    np.testing.assert_array_equal(answer_counts(*arrays, no_class), expected)
    assert len(holders(digits)) == len(expected)


# --- the page -----------------------------------------------------------------------------------------------------


def record(errors: list[float], **more: Any) -> dict[str, Any]:
    """A record with these errors in percent, one seed each, half as good after its first iteration."""
    return {
        "seeds": list(range(len(errors))),
        "test_scenes": more.pop("test_scenes", 10_000),
        "test": {"error": [[min(1, e / 50), e / 100] for e in errors], **more.pop("test", {})},
        **more,
    }


def write(folder: Path, **records: dict[str, Any]) -> None:
    for name, content in records.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(content))


def line(text: str, *words: str) -> str:
    (found,) = [one for one in text.splitlines() if all(word in one for word in words)]
    return found


def test_the_table_sets_our_errors_beside_the_papers(tmp_path: Path) -> None:
    write(
        tmp_path,
        texture_mnist_1_labels_50k=record([3.0, 4.0, 5.1]),
        texture_mnist_1_labels_1k=record([10.0, 12.0]),
        texture_mnist_2_best_labels_50k=record([3.0, 3.5]),
        texture_mnist_2_best_labels_1k=record([13.0, 13.0]),
        convnet_texture_mnist_2_50k=record([12.0]),
        ladder_mnist_1k=record([0.8, 0.9]),
    )
    text = table2.table2(tmp_path)
    assert line(text, "TextureMNIST1 | FC Tagger | 4.0") == (
        "| TextureMNIST1 | FC Tagger | 4.0 ± 0.3 | 4.03 ± 1.05 | 3 | ≤ paper | "
        "10.5 ± 0.9 | 11.00 ± 1.41 | 2 | above paper |"
    )
    assert line(text, "our recipe | (goal") == (
        "| TextureMNIST2 | FC Tagger, our recipe | (goal ≤ 4) | 3.25 ± 0.35 | 2 | goal met | "
        "(goal ≤ 12) | 13.00 ± 0.00 | 2 | above goal |"
    )
    assert "12.6 ± 0.4 | 12.00 ± 0.00 | 1 | ≤ paper | 79.1 ± 0.8 | - | - | - |" in line(text, "ConvNet")
    assert "0.85 ± 0.07 % (Rasmus et al.: 0.84 ± 0.08 %)" in text
    assert "10,000 test scenes" in text
    assert "| 8.07 ± 2.10 | 4.03 ± 1.05 |" in line(text, "TextureMNIST1", "50,000")
    assert set(GOALS) | set(PAPER_TAGGER) == {
        tagger_name(d, n, v) for d in (1, 2) for n in (1_000, 50_000) for v in ("", "best")
    }


def test_baselines_on_fresh_compositions_have_rows_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, ladder_texture_mnist_1_50k=record([5.0]), ladder_texture_mnist_1_1k_fresh=record([7.0, 9.0]))
    text = table2.table2(tmp_path)
    assert line(text, "FC Ladder, fresh compositions") == (
        "| TextureMNIST1 | FC Ladder, fresh compositions | - | - | - | - | - | 8.00 ± 1.41 | 2 | - |"
    )
    linked = line(main_table(tmp_path), "FC Ladder, fresh compositions")
    assert "[recipe](paper/baselines/recipes.py), [1k](" in linked
    assert "ladder-texture-mnist-1-1k-fresh.json)" in linked
    names = [cell.config.recipe for cell in baseline_cells() if wanted(cell, ["fresh"])]
    methods = ("mlp", "ladder", "convnet")
    assert sorted(names) == sorted(
        baseline_name(m, d, n, "fresh") for m in methods for d in (1, 2) for n in (1_000, 50_000)
    )


def test_the_parts_of_the_page(tmp_path: Path) -> None:
    counts = [[[0, 5, 5, 90], [60, 10, 20, 10], [80, 5, 5, 10], [0, 0, 0, 0]]]
    groups = {"holders": holders(2), "answers": list(ANSWERS), "counts": counts}
    first = {"ami": [[0.5, 0.7], [0.5, 0.8]], "cost": [[1, -1], [1, -2]]}
    parts = {"error_first": [[0.1, 0.08]], "error_second": [[0.1, 0.02]]}
    write(
        tmp_path,
        texture_mnist_2={"seeds": [0, 1], "test_scenes": 10_000, "test": first},
        texture_mnist_2_labels_50k=record([5.0], groups=groups, test=parts, test_scenes=100),
        texture_mnist_2_permuted_labels_50k=record([5.5]),
        convnet_texture_mnist_2_50k=record([12.0]),
        convnet_texture_mnist_2_50k_permuted=record([60.0]),
    )
    text = table2.table2(tmp_path)
    assert "| AMI (n=2) | 0.500 ± 0.000 | 0.750 ± 0.071 |" in text
    assert "| denoising cost (n=2) | 1.000 ± 0.000 | -1.500 ± 0.707 |" in text
    assert "| 2.00 ± 0.00 | 8.00 ± 0.00 | 5.00 ± 0.00 |" in text, "the upper digit, the lower, both"
    assert "| background | 1.00 | - | 5.0 % | 5.0 % | 90.0 % |" in text
    assert "| lower digit | 1.00 | 60.0 % | 10.0 % | 20.0 % | 10.0 % |" in text
    assert "| nothing | 0.00 | - | - | - | - |" in text
    assert "| FC Tagger | 50,000 | 5.00 ± 0.00 (n=1) | 5.50 ± 0.00 (n=1) |" in text
    assert "| ConvNet | 50,000 | 12.00 ± 0.00 (n=1) | 60.00 ± 0.00 (n=1) |" in text
    assert "Error over the number of labels" not in text, "one point is no curve"
    assert "What it took" not in text, "records without times"
    assert permuted_table(tmp_path) in text


def test_rows_of_fewer_iterations_end_in_empty_cells(tmp_path: Path) -> None:
    longer = record([4.0])
    longer["test"]["error"] = [[0.8, 0.2, 0.04]]
    write(tmp_path, texture_mnist_2_labels_50k=record([6.0]), texture_mnist_2_best_labels_50k=longer)
    lines = table2.table2(tmp_path).splitlines()
    assert "| TextureMNIST2 | FC Tagger | 50,000 | 12.00 ± 0.00 | 6.00 ± 0.00 |  |" in lines
    begins = lines.index("### Tagger's error over iterations (%)") + 2
    assert len({lines[begins + i].count("|") for i in range(4)}) == 1


def test_the_time_that_the_records_took(tmp_path: Path) -> None:
    def made(seconds: float, **machine: str) -> dict[str, Any]:
        return record([5.0], seconds=seconds, environment={"cpu": "a processor", **machine})

    write(
        tmp_path,
        texture_mnist_2_labels_50k=made(90, gpu="a GPU"),
        ladder_texture_mnist_2_1k=made(120, gpu="a GPU"),
        mlp_texture_mnist_1_1k=made(60),
        texture_mnist_2_permuted_labels_50k=made(240, gpu="a GPU"),
    )
    text = table2.table2(tmp_path)
    assert "| the paper's cells | a GPU | 2 | 4 |" in text
    assert "| the paper's cells | a processor | 1 | 1 |" in text
    assert "| around the table | a GPU | 1 | 4 |" in text


def test_the_curve_over_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for labels, error in ((100, 60.0), (1_000, 25.0), (50_000, 8.0)):
        write(tmp_path, **{tagger_name(2, labels): record([error, error + 2])})
    write(tmp_path, **{baseline_name("ladder", 2, labels): record([70.0]) for labels in (300, 1_000)})
    tagger, ladder = label_curve(tmp_path)
    assert (tagger.method, tagger.digits, tagger.labels) == ("FC Tagger", 2, [100, 1_000, 50_000])
    np.testing.assert_allclose(tagger.errors, [[60, 62], [25, 27], [8, 10]])
    text = table2.table2(tmp_path)
    assert "| FC Tagger | 61.00 ± 1.41 (n=2) | - | 26.00 ± 1.41 (n=2) | - | - | 9.00 ± 1.41 (n=2) |" in text
    monkeypatch.setattr(layout, "DPI", 50)
    table2.label_curve_figure([tagger, ladder], tmp_path / "labels")
    assert (tmp_path / "labels.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "labels.png").exists()


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command_writes_toy_results_apart(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("table2", quick=True, results=tmp_path, runs=tmp_path / "runs", device="cpu", rows=(FIRST,))
    said = capsys.readouterr().out
    assert "Phase 1, without labels" in said
    assert "records, table2.md are in" in said  # one row makes no curve
    found = json.loads((tmp_path / "quick" / "table2" / f"{FIRST}.json").read_text())
    assert found["seeds"] == [0, 1]
    assert (tmp_path / "runs" / "quick" / "table2" / FIRST / "config.json").exists()
    with pytest.raises(ValueError, match="figure5 has no such choice"):
        reproduce("figure5", rows=ROWS)


def test_the_command_line_takes_rows_and_says_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--quick", "--results", str(tmp_path), "--rows", "tager", "mpl-*"]
    assert main(["reproduce", "table2", *options]) == 2
    assert "rows=['tager', 'mpl-*'] name nothing of Table 2" in capsys.readouterr().err
