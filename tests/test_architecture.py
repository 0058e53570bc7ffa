"""Imports go one way, as docs/architecture.md draws it, and every module has a test file that carries its name."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"^\| (?P<layer>[a-z ]+) \| (?P<modules>`[^|]+`) \|(?P<below>[^|]*)\|$", re.MULTILINE)
ROWS = list(TABLE.finditer((ROOT / "docs" / "architecture.md").read_text()))
LAYER_OF = {module: row["layer"] for row in ROWS for module in re.findall(r"`(\w+)`", row["modules"])}
BELOW = {row["layer"]: {name.strip() for name in row["below"].split(",")} - {""} for row in ROWS}


def modules() -> dict[str, Path]:
    """Dotted name -> file, of the package and of the paper's experiments."""
    found = {}
    for base, folder in ((ROOT / "src", ROOT / "src" / "taggernet"), (ROOT, ROOT / "paper")):
        for file in folder.rglob("*.py"):
            found[".".join(file.relative_to(base).with_suffix("").parts).removesuffix(".__init__")] = file
    return found


FILES = modules()


def imported(name: str, source: str) -> set[str]:
    """The modules of ours that a source imports anywhere in it, functions included."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} has a relative import: write the whole name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in FILES else str(node.module))
    return {module for module in found if module.split(".")[0] in ("taggernet", "paper")} - {name}


def layer(module: str) -> str:
    parts = module.split(".")
    unit = parts[1] if parts[0] == "taggernet" and len(parts) > 1 else parts[0]
    assert unit in LAYER_OF, f"{module} has no layer: add `{unit}` to the table in docs/architecture.md"
    return LAYER_OF[unit]


def violations(sources: dict[str, str]) -> list[str]:
    return [
        f"{name} ({layer(name)}) imports {other} ({layer(other)})"
        for name, source in sources.items()
        for other in sorted(imported(name, source))
        if layer(other) not in BELOW[layer(name)] | {layer(name)}
    ]


def test_the_table_is_whole() -> None:
    assert len(ROWS) >= 10
    assert set(LAYER_OF) == {name.split(".")[1] for name in FILES if name.startswith("taggernet.")} | {
        "taggernet",
        "paper",
    }
    assert set().union(*BELOW.values()) <= set(BELOW)
    TopologicalSorter(BELOW).prepare()  # raises CycleError where two layers may import each other


def test_imports_keep_to_the_layers() -> None:
    assert violations({name: file.read_text() for name, file in FILES.items()}) == []


def test_no_two_modules_import_each_other() -> None:
    """A package stands for its __init__; that one imports its own modules is no cycle."""
    graph = {
        name: {m for m in imported(name, file.read_text()) if m in FILES and not name.startswith(f"{m}.")}
        for name, file in FILES.items()
        if name != "taggernet"  # what it imports is for type checkers; at run time it waits for the first use
    }
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("taggernet.data.shapes", "import taggernet.tagger"),
        ("taggernet.errors", "def f():\n    from taggernet.training.failures import in_short"),
        ("taggernet.model_io", "from taggernet.tagger import Tagger"),
        ("taggernet.training.log", "from taggernet import __version__"),
        ("taggernet.demo", "from paper import table1"),
    ],
)
def test_an_import_upwards_is_seen(name: str, source: str) -> None:
    assert len(violations({name: source})) == 1


UNTESTED_BY_NAME = ("_version", "__main__", "kernel_parts", "kernels_batch", "kernels_layer", "kernels_small")
"""Nothing to test, or tested with their callers: fast/test_ops.py runs the kernels, test_cli.py python -m taggernet."""


def test_every_module_has_its_test_file() -> None:
    missing = []
    for name, file in FILES.items():
        folder = ROOT / "tests" / Path(*name.removeprefix("taggernet.").split(".")).parent
        if file.stem not in ("__init__", *UNTESTED_BY_NAME) and not (folder / f"test_{file.stem}.py").is_file():
            missing.append(f"{name}: write {folder.relative_to(ROOT)}/test_{file.stem}.py")
    assert missing == []
