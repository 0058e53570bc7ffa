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

import taggernet
from taggernet import pretrained
from taggernet.cli import main
from taggernet.export import export

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


def test_the_result_tables_are_those_of_the_records() -> None:
    made = script("docs/results_tables.py")
    for page, blocks in made.pages().items():
        text = (ROOT / page).read_text()
        assert made.replaced(text, blocks, page) == text, f"{page}: run python docs/results_tables.py"
    for record, picture in made.PICTURES.items():
        assert (ROOT / "results" / record).read_bytes() == (ROOT / "docs" / "images" / picture).read_bytes(), picture
