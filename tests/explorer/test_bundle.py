"""The files of the page: complete, small, and the same for this machine and for a static host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from taggernet import Tagger, TaggerConfig
from taggernet.explorer.bundle import PAGE, Bundle, bundle
from taggernet.pretrained import SHIPPED, shipped


@pytest.fixture(scope="module")
def made() -> Bundle:
    return bundle("texture-mnist-2")


def others(name: str) -> list[str]:
    return [other for other in shipped() if other != name]


def test_the_named_model_comes_first_and_the_shipped_ones_follow(made: Bundle) -> None:
    listed = json.loads(made.read("models.json") or b"")["models"]
    assert [entry["name"] for entry in listed] == ["texture-mnist-2", *others("texture-mnist-2")]
    for entry in listed:
        assert made.read(entry["weights"]) == (SHIPPED / entry["name"] / "model.safetensors").read_bytes()
        assert made.read(entry["card"]) == (SHIPPED / entry["name"] / "config.json").read_bytes()


def test_a_model_of_ones_own_is_added() -> None:
    model = Tagger(TaggerConfig(shape=(10, 10), widths=(20, 10), norm="layer"))
    names = [entry["name"] for entry in json.loads(bundle(model).read("models.json") or b"")["models"]]
    assert names == ["model", *shipped()]


def test_it_is_written_for_a_static_host(made: Bundle, tmp_path: Path) -> None:
    made.write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(made.files)
    assert (tmp_path / "index.html").read_bytes() == (PAGE / "index.html").read_bytes()
    assert made.read("no/such/file") is None


def test_every_import_of_the_page_leads_to_one_of_its_files() -> None:
    scripts = list(PAGE.rglob("*.js"))
    assert len(scripts) > 20
    for script in scripts:
        for target in re.findall(r"(?:from|import) '([^']+)'", script.read_text()):
            assert (script.parent / target).is_file(), (script.name, target)
        assert len(script.read_text().splitlines()) <= 320, script.name


def test_the_page_asks_nothing_of_other_hosts() -> None:
    """Links to read are fine; nothing is loaded from elsewhere."""
    for path in PAGE.rglob("*"):
        if path.suffix in (".js", ".css", ".html"):
            found = re.findall(r"(?:src|import|url|fetch)\W{1,3}(?:https?:)?//", path.read_text())
            assert found == [], path.name
    html = (PAGE / "index.html").read_text()
    assert "Content-Security-Policy" in html
    assert " style=" not in html
    assert " onclick=" not in html
