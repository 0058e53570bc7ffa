"""Models on a (simulated) Hugging Face Hub: what is downloaded, what is uploaded, what goes wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch

from taggernet.hub import is_hub_id
from taggernet.model_io import CARD, WEIGHTS, read_card
from taggernet.nets import MLPMapping
from taggernet.tagger import Tagger, TaggerConfig


def tiny(seed: int = 0) -> Tagger:
    torch.manual_seed(seed)
    return Tagger(TaggerConfig(shape=(3, 4), widths=(8, 4), norm="layer"))


def same(a: Tagger, b: Tagger, atol: float = 0.0) -> bool:
    theirs = b.state_dict()
    return all(torch.allclose(w, theirs[name], rtol=0, atol=atol) for name, w in a.state_dict().items())


@pytest.mark.parametrize(
    ("name", "possible"), [("me/mine", True), ("me/mine/more", False), ("../x", False), (3, False)]
)
def test_hub_ids(name: object, possible: bool) -> None:
    assert is_hub_id(name) == possible


def test_a_hub_id_downloads_the_two_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def download(repo: str, **options: Any) -> str:
        asked.update(repo=repo, **options)
        return str(tiny(3).save(tmp_path / "cache"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert same(Tagger.from_pretrained("someone/some-model", revision="v1"), tiny(3))
    assert asked == {"repo": "someone/some-model", "revision": "v1", "allow_patterns": [WEIGHTS, CARD]}


def test_a_repository_without_a_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    with pytest.raises(ValueError, match="not a taggernet model"):
        Tagger.from_pretrained("someone/something-else")


def test_offline_a_hub_id_gets_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*args: Any, **options: Any) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(OSError, match=r"could not be downloaded from the Hub .* connect to the network") as caught:
        Tagger.from_pretrained("someone/some-model")
    assert "\n" not in str(caught.value)


class Api:
    """A Hub of one repository, in a folder."""

    folder: Path
    calls: list[Any]

    def __init__(self, **options: Any) -> None:
        pass

    def file_exists(self, repo: str, name: str) -> bool:
        return (self.folder / name).exists()

    def create_repo(self, repo_id: str, **options: Any) -> Any:
        assert options == {"private": True, "exist_ok": True}
        self.calls.append(repo_id)
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, *, repo_id: str, folder_path: Path, **options: Any) -> str:
        self.calls.append((repo_id, options["commit_message"]))
        for name in options["allow_patterns"]:
            shutil.copy(folder_path / name, self.folder)
        return "a commit"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Api]:
    folder = tmp_path / "uploaded"
    folder.mkdir()
    monkeypatch.setattr(Api, "folder", folder, raising=False)
    monkeypatch.setattr(Api, "calls", [], raising=False)
    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    return Api


def test_push_uploads_what_from_pretrained_reads(hub: type[Api]) -> None:
    address = tiny(4).push_to_hub("me/mine", {"note": "a test"}, private=True, message="First")
    assert address.endswith("/me/mine")
    assert hub.calls == ["me/mine", ("me/mine", "First")]
    assert sorted(p.name for p in hub.folder.iterdir()) == ["README.md", CARD, WEIGHTS]
    assert same(Tagger.from_pretrained(hub.folder), tiny(4))
    assert read_card(hub.folder) == {"note": "a test"}
    page = (hub.folder / "README.md").read_text()
    for words in ("library_name: taggernet", 'from_pretrained("me/mine")', "3 x 4 (binary)", '"note": "a test"'):
        assert words in page


def test_a_page_that_was_edited_is_kept(hub: type[Api]) -> None:
    (hub.folder / "README.md").write_text("my own words")
    tiny(5).push_to_hub("me/mine", private=True)
    assert (hub.folder / "README.md").read_text() == "my own words"
    assert same(Tagger.from_pretrained(hub.folder), tiny(5))


def test_push_says_what_went_wrong(hub: type[Api], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise PermissionError("401\nlong page")

    monkeypatch.setattr(Api, "create_repo", refuse)
    with pytest.raises(OSError, match=r"could not be uploaded .*401.* log in") as caught:
        tiny().push_to_hub("me/mine")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="not a Hub id"):
        tiny().push_to_hub("just-a-name")


def test_push_says_what_went_wrong_without_a_message(hub: type[Api], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(Api, "create_repo", refuse)
    with pytest.raises(OSError, match=r"could not be uploaded to the Hub \(TimeoutError"):
        tiny().push_to_hub("me/mine")


@pytest.mark.usefixtures("hub")
def test_a_model_that_no_card_describes_is_not_pushed() -> None:
    other = Tagger(TaggerConfig(shape=(3, 4), widths=(8, 4)), MLPMapping(12, (8,)))
    with pytest.raises(TypeError, match="a model card only describes the package's own"):
        other.push_to_hub("me/mine", private=True)
