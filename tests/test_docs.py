"""The documentation builds without a warning, and what it says of the repository is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import taggernet
from taggernet import pretrained
from taggernet.cli import main
from taggernet.export import export
from taggernet.nets.ladder import Combinator

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return script("docs/hooks/repository.py")


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    first = (tmp_path / "site" / "index.html").read_text()
    assert "split any input into groups" in first, "the README is the first page"
    assert "images/groups.gif" in first
    assert "docs/images" not in first
    assert (tmp_path / "site" / "images" / "groups.gif").exists()
    model = (tmp_path / "site" / "api" / "model" / "index.html").read_text()
    assert "Widths of the Ladder" in model, "the API comes from docstrings, those of fields included"
    assert not list((tmp_path / "site").rglob("*.py"))
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or f'href="{page.stem}/"' in first, "every page is in the navigation"
    foreign = re.findall(r'(?:<script|<link|<img)[^>]+(?:src|href)="(https?:[^"]+)"', first)
    assert not foreign, "the site works without a network"


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("index.md", "[guide](docs/own-data.md#the-file)", "[guide](own-data.md#the-file)"),
        ("index.md", "[rows](results/table1)", "rows (`results/table1`)"),
        ("index.md", "[LICENSE](LICENSE)", "`LICENSE`"),
        ("index.md", "[lost](results/nowhere)", "[lost](results/nowhere)"),
        (
            "index.md",
            "[below](#citing) [site](https://example.org/a)",
            "[below](#citing) [site](https://example.org/a)",
        ),
        ("LOG.md", "[step](../benchmarks/step_time.py)", "step (`benchmarks/step_time.py`)"),
        ("LOG.md", "[data](own-data.md)", "[data](own-data.md)"),
        ("api/model.md", "[data](../own-data.md)", "[data](../own-data.md)"),
    ],
)
def test_links_stay_on_the_site(
    hook: ModuleType, source: str, given: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    if source == "index.md":
        monkeypatch.setattr(Path, "read_text", lambda self: given)
    assert hook.on_page_markdown(given, page) == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_shown_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every 'taggernet COMMAND ... --option' in a code block has that command and that option."""
    blocks = re.findall(r"^```\S*\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines = [line for line in lines if re.match(r"\S*taggernet [a-z]", line)]
    assert lines or page.name not in ("README.md", "own-data.md")
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        subject = ["small"] if words[0] == "train" else []
        with pytest.raises(SystemExit) as end:
            main([words[0], *subject, "--help"])
        assert not end.value.code
        listed = capsys.readouterr().out
        for option in (word for word in words if word.startswith("--")):
            assert option in listed, line


def test_the_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the shipped model; where there is none, with an untrained one of its shape."""
    if "shapes" not in pretrained.shipped():
        taggernet.Tagger(taggernet.TaggerConfig(widths=(8, 4))).save(tmp_path / "shapes")
        monkeypatch.setattr(pretrained, "SHIPPED", tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["out"].masks.shape == (16, 4, 20, 20)
    assert len(names["out"].history) == 6
    lines = [line for line in code.splitlines() if line and not line.startswith("import")]
    assert len(lines) == 8


@pytest.mark.usefixtures("without_typecheck")
def test_the_example_of_the_export_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    export(taggernet.Tagger(taggernet.TaggerConfig(widths=(8, 4), norm="layer")), "shapes.onnx")
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs/export.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["masks"].shape == names["reconstructions"].shape == names["ten"][0].shape == (8, 4, 400)


@pytest.mark.usefixtures("without_typecheck")
def test_a_changed_model_is_trained_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit of the page, in the place of the combinator's own equation, and its commands, on few scenes."""
    page = (ROOT / "docs" / "changing-the-model.md").read_text()
    edit, subclass = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"torch": torch}
    exec(edit, names)
    calls: list[int] = []
    monkeypatch.setattr(Combinator, "forward", lambda *args: calls.append(1) or names["forward"](*args))  # type: ignore[func-returns-value]
    monkeypatch.chdir(tmp_path)
    train, evaluate = re.findall(r"^taggernet (train .*|evaluate .*)$", page, flags=re.MULTILINE)
    few = "--updates 2 --batch 10 --train 40 --valid 20 --test 20 --device cpu --no-progress --no-tensorboard"
    assert main([*shlex.split(train), *few.split()]) == 0
    trained = len(calls)
    assert trained
    assert main(shlex.split(evaluate)) == 0
    assert len(calls) > trained
    monkeypatch.undo()
    exec(subclass, names)
    assert names["out"].masks.shape == (4, 4, 20, 20)
    assert not any(combinator.fusable for combinator in names["model"].mapping.ladder.combine)


def test_the_public_names_are_documented() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    for name in set(taggernet.__all__) - {"data", "metrics"}:
        assert re.search(rf"::: taggernet\.\S*\b{name}\b", pages), name


def test_the_figure_of_how_it_works_can_be_drawn(tmp_path: Path) -> None:
    """From any model of square binary scenes; here an untrained one."""
    figure = script("docs/images/how_it_works.py")
    found = figure.Inference(taggernet.Tagger(taggernet.TaggerConfig(shape=(12, 12), widths=(8, 4))), candidates=20)
    figure.draw(found).sheet.figure.savefig(tmp_path / "figure.png", dpi=50)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert found.delta_z.shape == found.ratio.shape == (3, 12, 12)


def test_the_tables_of_the_performance_page_are_those_of_the_records() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert script("docs/performance_tables.py").filled(page) == page, "run python docs/performance_tables.py"


def test_the_tables_of_the_readme_are_those_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "README.md").read_text()
    assert script("docs/readme_tables.py").filled(page) == page, "run python docs/readme_tables.py"
    for folder, name in (("table1", "table1.md"), ("table2", "table2.md")):
        if (ROOT / "results" / folder).exists():
            made = script("docs/readme_tables.py")
            text = made.table1(Path("results/table1")) if folder == "table1" else made.table2(Path("results/table2"))
            assert (ROOT / "results" / folder / name).read_text() == text
