"""Files that are whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from taggernet.fileio import (
    LARGEST_JSON,
    make_folder,
    read_json,
    read_tensors,
    sync_folder,
    write_durably,
    write_json,
    write_tensors,
)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    content = {"name": "Grüße", "values": [1, 0.5, None]}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json") == content
    (tmp_path / "b.json").write_bytes(json.dumps(content, ensure_ascii=False).encode())
    assert read_json(tmp_path / "b.json") == content
    tensors = {"w": torch.arange(6.0).reshape(2, 3).T, "h": torch.ones(2, dtype=torch.float16)}
    write_tensors(tmp_path / "w.safetensors", tensors)
    found = read_tensors(tmp_path / "w.safetensors")
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in tensors.items()
    )


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"old": 1})

    def breaks(temporary: Path) -> None:
        temporary.write_text('{"ne')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_durably(path, breaks)
    assert read_json(path) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_synced_before_it_gets_its_name_and_its_folder_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(file: int) -> None:
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{file}") else "file")
        fsync(file)

    def seen_replace(*paths: Path) -> None:
        done.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write_json(tmp_path / "a.json", {})
    assert done == ["file", "rename", "folder"]


def test_a_folder_is_not_opened_where_the_system_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, whose os has no O_DIRECTORY."""
    monkeypatch.delattr(os, "O_DIRECTORY")
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a folder was opened"))
    sync_folder(tmp_path)


def test_unwritable_paths_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"x\.json cannot be written \(Not a directory\): choose"):
        write_json(tmp_path / "file" / "x.json", {})
    with pytest.raises(FileExistsError, match=r"file cannot be written \(File exists\)"):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "holds a list, but an object with fields is expected"),
        (b" " * (LARGEST_JSON + 1), "at most 67,108,864 are expected"),
    ],
)
def test_json_that_is_none_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_json(tmp_path / "a.json")


def test_read_tensors_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_tensors(tmp_path / "absent.safetensors")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_tensors_get_the_mode_of_any_other_file(tmp_path: Path) -> None:
    """safetensors alone makes them 0600, which nobody else could read beside a config.json that they can."""
    write_tensors(tmp_path / "tensors", {"w": torch.zeros(1)})
    write_json(tmp_path / "json", {})
    assert (tmp_path / "tensors").stat().st_mode == (tmp_path / "json").stat().st_mode
