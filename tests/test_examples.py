"""The examples run as a reader would run them, only shorter."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from taggernet.tag import Mapping
from taggernet.tagger import Tagger, TaggerConfig

FILE = Path(__file__).parents[1] / "examples" / "convolutional_mapping.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("convolutional_mapping", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        ("few_labels", ["--updates", "3", "--scenes", "90", "--labels", "30"], r"error .*: \d\.\d{3}"),
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
