"""The MNIST files: found, verified, downloaded, and refused when they are not what they should be."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from taggernet.data.mnist import _File, cache_folder, fixture_digits, mnist, parse_idx

module = importlib.import_module("taggernet.data.mnist")  # taggernet.data.mnist is the function
FULL = os.environ.get("TAGGERNET_DATA")
COUNT = {"train": 60, "test": 20}


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bytes]:
    """Four little files in the place of the real ones, packed, by name; nothing on disk yet."""
    packed, table = {}, {}
    for half, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = (part[: COUNT[half]] for part in fixture_digits(half))
        for what, array in (("images", images), ("labels", labels.astype(np.uint8))):
            name = f"{prefix}-{what}-idx{array.ndim}-ubyte"
            content = idx(array)
            zipped = gzip.compress(content, mtime=0)
            packed[f"{name}.gz"] = zipped
            md5 = [hashlib.md5(part).hexdigest() for part in (zipped, content)]
            table[f"{half} {what}"] = _File(name, md5[0], len(zipped), md5[1], len(content))
    monkeypatch.setattr(module, "_FILES", table)
    monkeypatch.setattr(module, "_VALID_BEGINS", 50)
    monkeypatch.setattr(module, "MIRRORS", ())
    monkeypatch.delenv("TAGGERNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return packed


class Mirror:
    """A server on this machine that answers each file as it is told to."""

    def __init__(self, answer: object) -> None:
        mirror = self
        self.asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.asked.append(self.path)
                answer(self)  # type: ignore[operator]

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


def reply(handler: BaseHTTPRequestHandler, body: bytes, declared: int | None = None, code: int = 200) -> None:
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body) if declared is None else declared))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def mirror(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """mirror(how) starts a server that sends what how(content) returns, and makes it a mirror."""
    started: list[Mirror] = []

    def start(how: object) -> Mirror:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            how(handler, files[handler.path.strip("/")])  # type: ignore[operator]

        started.append(Mirror(answer))
        monkeypatch.setattr(module, "MIRRORS", tuple(one.url for one in started))
        return started[-1]

    yield start
    for one in started:
        one.server.shutdown()
        one.server.server_close()


def cached() -> list[str]:
    return sorted(path.name for path in cache_folder().rglob("*") if path.is_file())


@pytest.mark.parametrize("inside", ["", "mnist"])
@pytest.mark.parametrize("form", ["packed", "unpacked", "dotted"])
def test_finds_files_in_the_named_folder(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, form: str
) -> None:
    folder = tmp_path / "own" / inside
    folder.mkdir(parents=True)
    for name, content in files.items():
        if form == "packed":
            (folder / name).write_bytes(content)
        else:
            plain = name.removesuffix(".gz")
            (folder / (plain if form == "unpacked" else plain.replace("-idx", ".idx"))).write_bytes(
                gzip.decompress(content)
            )
    monkeypatch.setenv("TAGGERNET_DATA", str(tmp_path / "own"))
    images, labels = fixture_digits("train")
    found = {split: mnist(split, download=False) for split in ("train", "valid", "test", "train+valid")}
    assert [len(part[0]) for part in found.values()] == [50, 10, 20, 60]
    assert np.array_equal(found["train"][0], images[:50])
    assert np.array_equal(found["valid"][0], images[50:60])
    assert np.array_equal(found["valid"][1], labels[50:60])
    assert np.array_equal(found["test"][0], fixture_digits("test")[0][:20])
    assert cached() == []


def test_downloads_once_then_reads_the_cache(files: dict[str, bytes], mirror: object) -> None:
    server = mirror(reply)  # type: ignore[operator]
    first = mnist("test")
    assert len(server.asked) == 2
    again = mnist("test", download=False)
    assert len(server.asked) == 2
    assert np.array_equal(first[0], again[0])
    assert cached() == ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]


def wrong(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    reply(handler, content[:-1] + bytes([content[-1] ^ 1]))


def short(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    reply(handler, content[: len(content) // 2], declared=len(content))


def short_and_quiet(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    reply(handler, content[: len(content) // 2])


def missing(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    reply(handler, b"not here", code=404)


def endless(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    reply(handler, content + bytes(1 << 20))


def garbled(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    handler.wfile.write(b"hello?\r\n\r\n")


MISCHIEF = [
    (wrong, "does not match the known hash"),
    (short, "IncompleteRead"),
    (short_and_quiet, "does not match the known hash"),
    (missing, "404"),
    (endless, "more than"),
    (garbled, "could not be downloaded"),
]


@pytest.mark.parametrize(("how", "message"), MISCHIEF)
def test_a_bad_download_is_refused_and_not_kept(
    files: dict[str, bytes], mirror: object, how: object, message: str
) -> None:
    mirror(how)  # type: ignore[operator]
    with pytest.raises(ConnectionError, match=message) as caught:
        mnist("test")
    assert "TAGGERNET_DATA" in str(caught.value)
    assert all(name in str(caught.value) for name in files)
    assert cached() == []


def test_a_second_mirror_helps_out(files: dict[str, bytes], mirror: object) -> None:
    mirror(wrong)  # type: ignore[operator]
    mirror(reply)  # type: ignore[operator]
    assert mnist("test")[0].shape == (20, 28, 28)


def test_offline_says_which_files_go_where(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIRRORS", ("http://mirror.invalid/",))
    for download, error in ((True, ConnectionError), (False, FileNotFoundError)):
        with pytest.raises(error) as caught:
            mnist("train", download=download)
        text = str(caught.value)
        assert "TAGGERNET_DATA" in text
        assert str(cache_folder()) in text
        assert all(name in text for name in files)


def test_a_damaged_cache_is_replaced_but_a_user_file_is_left_alone(
    files: dict[str, bytes], mirror: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(reply)  # type: ignore[operator]
    name = "t10k-images-idx3-ubyte.gz"
    target = cache_folder() / "mnist" / name
    target.parent.mkdir(parents=True)
    for damage in (files[name][:100], b"", b"not gzip", gzip.compress(b"other")):
        target.write_bytes(damage)
        with pytest.raises(ValueError, match="delete it and fetch it again"):
            mnist("test", download=False)
        assert len(mnist("test")[0]) == 20
        assert target.read_bytes() == files[name]
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_bytes(files[name][:100])
    monkeypatch.setenv("TAGGERNET_DATA", str(own))
    with pytest.raises(ValueError, match="cut short or is damaged"):
        mnist("test")
    assert (own / name).exists()


def test_a_named_folder_that_is_none_is_an_error(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAGGERNET_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="not a folder"):
        mnist("test")


def test_unknown_split() -> None:
    with pytest.raises(ValueError, match="split='dev' is not known: choose one of 'train', 'valid', 'test'"):
        mnist("dev")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        b"\0\0\x08\x03\0\0",
        b"\0\0\x0d\x01" + bytes(4),
        b"\0\0\x08\0",
        b"\x1f\x8b\x08\x00" + bytes(40),
    ],
)
def test_parse_idx_refuses_what_is_no_idx_file(content: bytes) -> None:
    with pytest.raises(ValueError, match="not an idx file"):
        parse_idx(content, "it")


def test_parse_idx_refuses_a_header_that_does_not_fit() -> None:
    whole = idx(np.arange(12, dtype=np.uint8).reshape(3, 4))
    assert np.array_equal(parse_idx(whole, "it"), np.arange(12).reshape(3, 4))
    for damaged in (whole[:-1], whole + b"\0", whole[:4] + b"\xff" * 8 + whole[12:]):
        with pytest.raises(ValueError, match="it should hold"):
            parse_idx(damaged, "it")


def test_fixture_is_balanced() -> None:
    for split, count in (("train", 40), ("valid", 10), ("test", 10)):
        images, labels = fixture_digits(split)
        assert images.shape == (10 * count, 28, 28)
        assert images.dtype == np.uint8
        assert np.array_equal(np.bincount(labels), np.full(10, count))


@pytest.mark.skipif(FULL is None, reason="TAGGERNET_DATA names no MNIST")
def test_split_boundaries_of_the_real_files() -> None:
    (train, train_labels), (valid, valid_labels) = mnist("train"), mnist("valid")
    both, _ = mnist("train+valid")
    assert (len(train), len(valid), len(mnist("test")[0])) == (50_000, 10_000, 10_000)
    assert np.array_equal(both[:50_000], train)
    assert np.array_equal(both[50_000:], valid)
    assert train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    for split, images in (("train", train), ("valid", valid), ("test", mnist("test")[0])):
        rows = {image.tobytes() for image in images}
        assert all(digit.tobytes() in rows for digit in fixture_digits(split)[0])
    assert np.bincount(valid_labels).sum() == 10_000
