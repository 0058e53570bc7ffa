"""The documentation builds without a warning, and what it says of the repository is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
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
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def links() -> ModuleType:
    return script("docs/hooks/links.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built without a warning."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_the_site_is_complete_and_works_offline(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    first = pages["index.html"]
    assert "https://arxiv.org/abs/1606.06724" in first
    assert (site / "images" / "groups.gif").exists()
    assert "Widths of the Ladder" in pages["api/model.html"], "the API comes from docstrings, those of fields included"
    assert not list(site.rglob("*.py"))
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or f'href="{page.stem}.html"' in first, "every page is in the navigation"
    for name, html in pages.items():
        foreign = re.findall(r'(?:<script|<link|<img)[^>]+(?:src|href)="(https?:[^"]+)"', html)
        assert not foreign, f"{name} does not work offline"
        assert "arithmatex" not in html, f"{name} has a formula that was not rendered"
    assert pages["equations.html"].count("<math") > 20


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen(site: Path, browser: Any, width: int) -> None:
    """No page scrolls sideways, on a laptop or on a phone: wide tables and code scroll inside their own box."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        if page.locator("article table:not([class])").count():
            page.locator(".md-typeset__scrollwrap").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
    page.close()


def test_links_lead_to_files_of_the_site(site: Path) -> None:
    """Not to folders, of which a browser without a server shows a listing."""
    for path in site.rglob("*.html"):
        if path.name == "404.html":  # for servers: its links begin at their root
            continue
        for target in re.findall(r'(?:href|src)="([^"#?]+)', path.read_text()):
            if not re.match("[a-z]+:", target):
                assert (path.parent / target).is_file(), f"{path.name}: {target}"


@pytest.fixture(scope="module", params=["file", "http"])
def address(site: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The site as it is opened from the disk, and as a server shows it."""
    if request.param == "file":
        yield site.as_uri()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_site_can_be_read_with_and_without_a_server(address: str, browser: Any) -> None:
    """Navigation, search, pictures and the way to the explorer."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # A page that is left drops what it still asks for, such as its icon.
    page.on("requestfailed", lambda failed: failed.failure == "net::ERR_ABORTED" or errors.append(failed.url))
    page.goto(f"{address}/api/model.html")
    page.locator(".md-nav--primary").get_by_role("link", name="Export to ONNX").first.click()
    page.wait_for_url(f"{address}/export.html")
    page.locator(".md-header__button.md-logo").click()
    page.wait_for_url(f"{address}/index.html")
    pictures = page.locator("article img")
    assert pictures.count()
    for picture in pictures.all():
        assert picture.evaluate("async (image) => (await image.decode(), image.naturalWidth)")
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("onnxruntime")
    page.locator(".md-search-result__link[href*='/export.html']").first.click()
    page.wait_for_url(f"{address}/export.html*")
    assert page.get_by_role("heading", name="Export to ONNX").is_visible()
    assert not errors
    for start in ("index.html", "explorer.html"):
        page.goto(f"{address}/{start}")
        page.locator("article a[href*='explore/']").first.click()
        page.wait_for_url(f"{address}/explore/index.html*")
    page.close()


def test_formulas_become_mathml() -> None:
    """Inline and displayed ones, with what Markdown has escaped; the rest of the page stays."""
    rendered = script("docs/hooks/formulas.py").on_page_content(
        '<p>a <span class="arithmatex">\\(x &lt; y\\)</span></p><div class="arithmatex">\\[\nz^2\n\\]</div><p>b</p>'
    )
    inline, block = re.findall(r"<math.*?</math>", rendered)
    assert 'display="inline"' in inline
    assert "<mi>x</mi><mo>&lt;</mo><mi>y</mi>" in inline.replace("&#x0003C;", "&lt;")
    assert 'display="block"' in block
    assert "<msup><mi>z</mi><mn>2</mn></msup>" in block
    assert re.sub(r"<math.*?</math>", "", rendered) == "<p>a </p><p>b</p>"


def test_a_number_and_its_spread_stay_on_one_line() -> None:
    rendered = script("docs/hooks/formulas.py").on_page_content("<td>0.79 ± 0.034</td><td>5 %</td><td>a ± b</td>")
    assert rendered == "<td>0.79\u00a0±\u00a00.034</td><td>5\u00a0%</td><td>a ± b</td>"


REPOSITORY = "https://example.org/us/taggernet"


@pytest.mark.parametrize(
    ("source", "given", "as_path", "as_link"),
    [
        (
            "LOG.md",
            "[rows](../results/table1)",
            "rows [`results/table1`]",
            f"[rows]({REPOSITORY}/tree/main/results/table1)",
        ),
        ("LOG.md", "[LICENSE](../LICENSE)", "`LICENSE`", f"[LICENSE]({REPOSITORY}/blob/main/LICENSE)"),
        (
            "LOG.md",
            "| [rows](../results) |",
            '| <abbr title="results">rows</abbr> |',
            f"| [rows]({REPOSITORY}/tree/main/results) |",
        ),
        (
            "api/model.md",
            "[step](../../benchmarks/step_time.py)",
            "step [`benchmarks/step_time.py`]",
            f"[step]({REPOSITORY}/blob/main/benchmarks/step_time.py)",
        ),
    ],
)
def test_links_out_of_the_site_lead_to_the_repository(
    links: ModuleType, source: str, given: str, as_path: str, as_link: str
) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    assert links.on_page_markdown(given, page, {"repo_url": ""}) == as_path
    assert links.on_page_markdown(given, page, {"repo_url": REPOSITORY}) == as_link
    assert links.on_page_markdown(given, page, {"repo_url": REPOSITORY + "/"}) == as_link


@pytest.mark.parametrize(
    "given", ["[a](own-data.md#file)", "[b](#top)", "[c](https://example.org/c)", "[d](../nowhere)"]
)
def test_other_links_stay(links: ModuleType, given: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="LOG.md"))
    assert links.on_page_markdown(given, page, {"repo_url": REPOSITORY}) == given


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if not re.match(r"[a-z]+:|#|(\.\./)?explore/", target):  # explore/ is there once the site is built
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
    assert names["out"].masks.shape == (16, 6, 20, 20)
    assert len(names["out"].history) == 9
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


def test_the_equations_are_where_their_page_says() -> None:
    """Each row names files and functions of the package, and tests: all of them exist."""
    rows = [line for line in (ROOT / "docs" / "equations.md").read_text().splitlines() if re.match(r"\| .*`", line)]
    assert len(rows) > 25
    paper = (ROOT / "tests" / "test_paper.py").read_text()
    for row in rows:
        *_, code, tests = row.strip("| ").split(" | ")
        files = re.findall(r"`(\S+\.py)`", code)
        source = "".join((ROOT / "src" / "taggernet" / name).read_text() for name in files)
        assert source, row
        for name in re.findall(r"(?<!option )`(?:[A-Z]\w+\.)?(\w+)`", code):
            assert re.search(rf"\b(?:def|class) {name}\b|^    {name}:", source, re.MULTILINE), name
        for name in re.findall(r"`(\S+)`", tests):
            assert (ROOT / name).exists() if name.endswith(".py") else f"def {name}(" in paper, name


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
    for name in set(taggernet.__all__) - {"data", "metrics", "__version__"}:
        assert re.search(rf"::: taggernet\.\S*\b{name}\b", pages), name


def test_the_figure_of_how_it_works_can_be_drawn(tmp_path: Path) -> None:
    """From any model of square binary scenes; here an untrained one."""
    figure = script("docs/images/how_it_works.py")
    found = figure.Inference(taggernet.Tagger(taggernet.TaggerConfig(shape=(12, 12), widths=(8, 4))), candidates=20)
    figure.draw(found).sheet.figure.savefig(tmp_path / "figure.png", dpi=50)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert found.delta_z.shape == found.ratio.shape == (3, 12, 12)


def test_the_figure_of_the_data_sets_shows_every_one() -> None:
    figure = script("docs/images/data_sets.py")
    drawn = figure.draw()
    assert len(drawn.axes) == 2 * figure.SHOWN * len(figure.rows()) == 40
    for axes, scene in zip(drawn.axes[::2], [x for scenes in figure.rows().values() for x in scenes.x], strict=True):
        assert (axes.images[0].get_array() == scene).all()


def test_the_tables_of_the_performance_page_are_those_of_the_records() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert script("docs/performance_tables.py").filled(page) == page, "run python docs/performance_tables.py"


def test_the_table_of_own_data_is_that_of_the_records() -> None:
    made = script("docs/own_data_table.py")
    page = (ROOT / made.PAGE).read_text()
    assert made.filled(page) == page, "run python docs/own_data_table.py"


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 160, "move details to docs/"


def test_the_version_is_the_same_everywhere() -> None:
    """The changelog's newest entry, the citation and the package; the Pythons of pyproject.toml are those tested."""
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == taggernet.__version__
    assert f"\nversion: {taggernet.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    stated = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert f"python: {stated}".replace("'", '"') in workflow


def test_the_result_tables_are_those_of_the_records() -> None:
    made = script("docs/results_tables.py")
    for page, blocks in made.pages().items():
        text = (ROOT / page).read_text()
        assert made.replaced(text, blocks, page) == text, f"{page}: run python docs/results_tables.py"
    for record, picture in made.PICTURES.items():
        assert (ROOT / "results" / record).read_bytes() == (ROOT / "docs" / "images" / picture).read_bytes(), picture
