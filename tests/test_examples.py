"""The examples run as a reader would run them, only shorter."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from taggernet.tag import Mapping
from taggernet.tagger import Tagger, TaggerConfig

FILE = Path(__file__).parents[1] / "examples" / "convolutional_mapping.py"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FILE.with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return loaded("convolutional_mapping")


def test_convolutional_mapping_runs(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", str(FILE), "--updates", "3", "--batch", "4"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(FILE.parents[1] / "src"), "OMP_NUM_THREADS": "1"},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r"AMI (?:before|after) training: +-?\d\.\d{3}", result.stdout)) == 2, result.stdout


@pytest.mark.parametrize(
    ("name", "options", "pattern"),
    [
        ("own_data", ["--updates", "3", "--scenes", "200"], r"AMI on rows it has not seen: +-?\d\.\d{3}"),
        (
            "few_labels",
            ["--updates", "3", "--rows", "90", "--labels", "21"],
            r"the 21 labelled rows alone: \d\.\d{3} \(AMI of its groups -?\d\.\d\d\)\n"
            r"Tagger, with 69 rows without a label: \d\.\d{3} \(AMI",
        ),
    ],
)
def test_example_runs(name: str, options: list[str], pattern: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", str(FILE.with_name(f"{name}.py")), *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(FILE.parents[1] / "src"), "OMP_NUM_THREADS": "1"},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert re.search(pattern, result.stdout), result.stdout
    assert not list(tmp_path.iterdir())  # what it makes it makes elsewhere


@pytest.fixture(scope="module")
def few_labels() -> ModuleType:
    return loaded("few_labels")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--labels 9", "--labels 9 does not fit: give a multiple of 3, 21 or more"),
        ("--labels 40", "--labels 40 does not fit: give a multiple of 3, 21 or more"),
        ("--labels -3", "--labels -3 does not fit: give a multiple of 3, 21 or more"),
        ("--labels 30 --rows 30", "--rows 30 leaves no row without a label: give more than 30"),
        ("--updates 0", "--updates must be 1 or more, and --seed 0 or more"),
    ],
)
def test_few_labels_says_what_it_takes(
    options: str,
    sentence: str,
    few_labels: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["few_labels.py", *options.split()])
    with pytest.raises(SystemExit) as end:
        few_labels.main()
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {sentence}")


@pytest.mark.usefixtures("without_typecheck")
def test_few_labels_shows_that_rows_without_a_label_help(few_labels: ModuleType) -> None:
    """At the same 30 labels, with fewer updates than by default: by 0.11 where this was written."""
    train, test = few_labels.few(few_labels.rows(4000, 4), 30), few_labels.rows(1000, 5)
    (ami_alone, alone), (ami, error) = (
        few_labels.train_and_test(rows, test, 1000) for rows in (train[train.labelled], train)
    )
    assert ami > 0.5 > 0.3 > ami_alone
    assert error < alone - 0.04


def test_the_rows_of_few_labels_are_what_it_says(few_labels: ModuleType) -> None:
    """Both machines in different rooms, the class is the second one's; the labels kept are shared by the classes."""
    made = few_labels.rows(300, 0)
    rooms = made.groups.reshape(300, 3, 14)
    first, second = ((rooms == machine).any(2) for machine in (1, 2))
    assert (first.sum(1) <= 1).all()
    assert not (first & second).any()
    assert (second[np.arange(300), made.classes]).mean() > 0.99  # misreadings hide all of a machine very rarely
    assert np.array_equal(made.x, few_labels.rows(300, 0).x)
    assert not np.array_equal(made.x, few_labels.rows(300, 1).x)
    kept = few_labels.few(made, 30)
    assert kept.labelled.sum() == 30
    assert np.array_equal(np.bincount(kept.classes[kept.labelled]), [10, 10, 10])
    assert np.array_equal(kept.classes[kept.labelled], made.classes[kept.labelled])


@pytest.mark.parametrize(("groups", "iterations", "batch"), [(1, 1, 1), (3, 2, 2), (5, 4, 3)])
def test_convolutional_mapping_takes_any_k_t_and_batch(
    example: ModuleType, groups: int, iterations: int, batch: int
) -> None:
    torch.manual_seed(0)
    mapping = example.ConvolutionalMapping(9, 10, channels=4)
    assert isinstance(mapping, Mapping)
    model = Tagger(TaggerConfig(shape=(9, 10)), mapping)
    x = (torch.rand(batch, 9, 10) > 0.5).float()
    whole = model.group(x, groups, iterations)
    assert whole.masks.shape == (batch, groups, 9, 10)
    assert whole.top.shape == (batch, groups, 4)
    parts = model.group(x, groups, iterations, batch_size=1)
    torch.testing.assert_close(parts.masks, whole.masks, rtol=1e-3, atol=1e-4)


def test_convolutional_mapping_treats_rows_alike(example: ModuleType) -> None:
    mapping = example.ConvolutionalMapping(8, 8, channels=4)
    rows = torch.randn(6, 4 * 64)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    for straight, permuted in zip(mapping(rows), mapping(rows[order]), strict=True):
        torch.testing.assert_close(straight[order], permuted, rtol=1e-4, atol=1e-5)
