"""Saving and loading, and every kind of file that must be refused."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggernet.data import Scenes, files, fixture_digits, load, shapes, texture_mnist


def some(kind: str) -> Scenes:
    if kind == "binary":
        return shapes(10, seed=1)
    images, labels = fixture_digits("test")
    return texture_mnist(2, images=images, labels=labels, n=10)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("ending", [".npz", ".h5"])
def test_what_is_saved_is_loaded(tmp_path: Path, kind: str, ending: str) -> None:
    scenes = some(kind)
    path = tmp_path / f"scenes{ending}"
    scenes.save(path)
    again = load(path)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert again.kind == kind
    for name in ("x", "groups", "classes"):
        one, other = getattr(scenes, name), getattr(again, name)
        assert (one is None and other is None) or (np.array_equal(one, other) and one.dtype == other.dtype)
    assert set(again.details) == set(scenes.details)
    assert all(np.array_equal(again.details[name], scenes.details[name]) for name in scenes.details)


def test_kind_is_kept_though_the_values_look_binary(tmp_path: Path) -> None:
    for ending in (".npz", ".h5"):
        Scenes.of(np.eye(3), kind="real").save(tmp_path / f"a{ending}")
        assert load(tmp_path / f"a{ending}").kind == "real"


def test_an_existing_file_is_kept_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "scenes.npz"
    some("binary").save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already: choose another name, or pass overwrite=True"):
        shapes(3).save(path)
    assert path.read_bytes() == before
    shapes(3).save(path, overwrite=True)
    assert len(load(path)) == 3


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, arrays: object, kind: str) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(files, "_write_npz", fail)
    with pytest.raises(OSError, match="disk full"):
        some("binary").save(tmp_path / "scenes.npz")
    assert list(tmp_path.iterdir()) == []


def test_save_refuses_other_endings_and_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ending '.pkl', expected .npz or .h5"):
        some("binary").save(tmp_path / "a.pkl")
    with pytest.raises(FileNotFoundError, match="create it first"):
        some("binary").save(tmp_path / "nowhere" / "a.npz")


def test_npy_holds_x_alone_and_is_mapped_when_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npy"
    x = np.random.default_rng(0).random((50, 8), dtype=np.float32)
    np.save(path, x)
    assert not isinstance(load(path).x, np.memmap)
    monkeypatch.setattr(files, "MAPPED", 100)
    mapped = load(path)
    assert isinstance(mapped.x, np.memmap)
    assert np.array_equal(mapped.x, x)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="cut short"):
        load(path)


class Trap:
    """Unpickling this would leave a mark."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("unpickled"),)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header(shape: str, descr: str = "'|u1'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


GOOD = npy(np.eye(3, dtype=np.uint8))
TRAP = npy(np.array([[Trap()]], dtype=object))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", ValueError, "is empty"),
        (b"hello", ValueError, "not a whole .npy array"),
        (pickle.dumps(np.eye(3)), ValueError, "not a whole .npy array"),
        (TRAP, TypeError, "nothing is ever unpickled"),
        (GOOD[:-1], ValueError, "declares 9 bytes but 8 are there"),
        (GOOD + b"\0", ValueError, "declares 9 bytes but 10 are there"),
        (GOOD[:20], ValueError, "not a whole .npy array"),
        (header("(1000000, 1000000000)"), ValueError, "declares 1,000,000,000,000,000 bytes"),
        (header("(-1, 3)"), ValueError, "declares the shape"),
        (header("(3,)", "'|V8'"), TypeError, "dtype"),
        (header("(3, 3)", "[('a', '|u1')]") + bytes(9), TypeError, "dtype"),
        (header("__import__('os')"), ValueError, "not a whole .npy array"),
        (npy(np.zeros(3)), ValueError, "expected \\(n"),
        (npy(np.array([[np.nan]])), ValueError, "NaN"),
        (npy(np.array([["a"]])), TypeError, "dtype"),
        (npy(np.array([[1j]])), TypeError, "dtype"),
    ],
)
def test_bad_npy_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        load(tmp_path / "x.npy")
    assert "x.npy" in str(caught.value)
    assert not (tmp_path / "unpickled").exists()


def write_zip(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ({"x.npy": GOOD, "y.npy": GOOD}, ValueError, "holds 'y', but only arrays x, groups and classes"),
        ({"X.npy": GOOD, "y.npy": GOOD}, ValueError, "holds 'X', 'y', but no array 'x': save the scenes as x"),
        ({"groups.npy": GOOD}, ValueError, "no array 'x'"),
        ({}, ValueError, "holds nothing, but no array 'x'"),
        ({"x.npy": GOOD, "../x.npy": GOOD}, ValueError, "expected arrays only"),
        ({"x.npy": GOOD, "run.py": b""}, ValueError, "expected arrays only"),
        ({"x.npy": TRAP}, TypeError, "nothing is ever unpickled"),
        ({"x.npy": GOOD[:-1]}, ValueError, "declares 9 bytes but 8"),
        ({"x.npy": b""}, ValueError, "not a whole .npy array"),
        ({"x.npy": GOOD, "groups.npy": npy(np.zeros((2, 2), int))}, ValueError, "groups has shape"),
        ({"x.npy": GOOD, "classes.npy": npy(np.zeros(2, int))}, ValueError, "classes has 2 rows"),
        ({"x.npy": GOOD, "classes.npy": npy(np.array(["a", "b", "a"]))}, TypeError, r"numpy\.unique\(classes"),
        ({"x.npy": GOOD, "kind.npy": npy(np.array("odd"))}, ValueError, "kind='odd' is not known"),
        ({"x.npy": GOOD, "kind.npy": npy(np.array("a" * 99))}, TypeError, "dtype <U99"),
    ],
)
def test_bad_npz_files_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: dict[str, bytes],
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_zip(tmp_path / "a.npz", members)
    with pytest.raises(error, match=message):
        load(tmp_path / "a.npz")
    assert not (tmp_path / "unpickled").exists()


def test_zip_bombs_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    write_zip(path, {"x.npy": header("(1000, 10000)") + bytes(10_000_000)})
    monkeypatch.setattr(files, "_read_stream", lambda *_: pytest.fail("was unpacked"))
    with pytest.raises(ValueError, match="the limit is 1,000,000: split it, or pass a larger limit"):
        load(path, limit=1_000_000)
    monkeypatch.setattr(files, "_MODEST", 1_000_000)
    with pytest.raises(ValueError, match="as no real scenes do"):
        load(path)
    write_zip(path, {"x.npy": GOOD}, how=zipfile.ZIP_LZMA)
    with pytest.raises(ValueError, match="packed in an unusual way"):
        load(path)


@given(position=st.integers(0, 10_000), value=st.integers(0, 255), cut=st.booleans())
@settings(max_examples=60)
def test_a_damaged_npz_is_refused_or_still_right(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int, cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    scenes = shapes(4, objects=2, size=10, style="small")
    scenes.save(folder / "a.npz")
    content = bytearray((folder / "a.npz").read_bytes())
    position %= len(content)
    content[position] = value
    (folder / "b.npz").write_bytes(content[:position] if cut else content)
    try:
        again = load(folder / "b.npz")
    except (ValueError, TypeError):
        return
    assert np.array_equal(again.x, scenes.x)


def test_bad_h5_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"

    def refused(error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            load(path)
        path.unlink()

    path.write_bytes(b"hello")
    refused(ValueError, "not an HDF5 file")
    some("binary").save(path)
    path.write_bytes(path.read_bytes()[:-500])
    refused(ValueError, "not a whole HDF5 file")
    with h5py.File(path, "w") as file:
        file["x"] = np.eye(3)
        file["y"] = np.eye(3)
    refused(ValueError, "holds 'y', but only arrays x, groups and classes")
    with h5py.File(path, "w") as file:
        file.create_group("x")
    refused(ValueError, "not an array stored in the file itself")
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["x"] = np.eye(3)
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink(str(other), "x")
    refused(ValueError, "not an array stored in the file itself")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (3, 3), "u1", external=[(str(other), 0, 9)])
    refused(ValueError, "not an array stored in the file itself")
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout((3, 3), "f8")
        layout[:] = h5py.VirtualSource(str(other), "x", (3, 3))
        file.create_virtual_dataset("x", layout)
    refused(ValueError, "not an array stored in the file itself")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (10**6, 10**6), "f8", chunks=(10, 10))  # declared, never written
    refused(ValueError, "the limit is")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (10**4, 10**5), "u1", chunks=(100, 100))
    refused(ValueError, "as no real scenes do")
    with h5py.File(path, "w") as file:
        file["x"] = ["a", "b"]
    refused(TypeError, "dtype object")
    with h5py.File(path, "w") as file:
        file["x"] = np.eye(3)
        file.attrs["kind"] = "real"  # of variable length
    refused(TypeError, "the attribute 'kind' is not a short string")
    with h5py.File(path, "w") as file:
        file["x"] = h5py.Empty("f4")
    refused(ValueError, "is empty")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist: check the path"):
        load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="is not a file"):
        load(tmp_path)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(np.eye(3)))
    with pytest.raises(ValueError, match=r"ending '.pkl', expected .npz, .npy or .h5"):
        load(tmp_path / "a.pkl")
