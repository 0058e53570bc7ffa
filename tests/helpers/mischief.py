"""Files and servers that mean no good: traps, bombs, half files, downloads cut short."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

MARK = "unpickled"
"""The file that a trap leaves where it was sprung."""


class Trap:
    """Unpickling this leaves a mark in the folder one stands in."""

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (Path(MARK),)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


GOOD = npy(np.eye(3, dtype=np.uint8))
TRAP = npy(np.array([[Trap()]], dtype=object))


def header(shape: str, descr: str = "'|u1'") -> bytes:
    """The beginning of a .npy file that declares whatever one likes."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def pack(path: Path, **members: bytes) -> Path:
    """A .npz of these .npy files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def hdf5(path: Path, **arrays: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def declared(path: Path, shape: tuple[int, ...]) -> Path:
    """HDF5 that declares an array of this shape and stores none of it."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape, "f8", chunks=tuple(min(size, 10) for size in shape))
    return path


def bomb(path: Path, bytes_: int = 100 * 10**9) -> Path:
    """A few hundred KB that unpack to 100 GB: thousands of names for one well packed stretch of zeros."""
    side = 32 << 20
    content = header(f"({side - 128},)") + bytes(side)
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packing.compress(content) + packing.flush()
    crc, sizes = zlib.crc32(content), (len(packed), len(content))
    names = ["x.npy", *(f"details_{number}.npy" for number in range(bytes_ // len(content) + 1))]
    first = names[0].encode()
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, *sizes, len(first), 0) + first
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, *sizes, len(name), 0, 0, 0, 0, 0, 0) + name
        for name in (text.encode() for text in names)
    )
    begin = len(local) + len(packed)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(names), len(names), len(directory), begin, 0)
    return write(path, local + packed + directory + end)


def liar(path: Path) -> Path:
    """A .npz whose only member is said to hold 100 GB, and holds nothing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(zipfile.ZipInfo("x.npy"), "w", force_zip64=True) as member:
            member.write(header("(100000, 1000000)"))
        archive.getinfo("x.npy").file_size = 10**11
    return path


def pickled_weights(path: Path) -> Path:
    """What torch.save writes, under a safe name."""
    torch.save({"w": Trap()}, path)
    return path


def pickled(path: Path) -> Path:
    return write(path, pickle.dumps(Trap()))


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server on this machine that answers as told."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/"
    finally:
        running.shutdown()
        running.server_close()


def reply(handler: BaseHTTPRequestHandler, body: bytes, length: int | None = None, code: int = 200) -> None:
    """``length`` is what the server says it will send."""
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def hub(handler: BaseHTTPRequestHandler, files: dict[str, bytes], wrong: str) -> None:
    """As the Hugging Face Hub answers for a repository of these files, but one of them is sent with a byte changed."""
    path, commit = handler.path.partition("?")[0], "a" * 40
    sums = {name: _git_sum(content) for name, content in files.items()}
    if path.endswith("/revision/main"):
        found = {"id": "owner/name", "sha": commit, "siblings": [{"rfilename": name} for name in files]}
        return reply(handler, json.dumps(found).encode())
    if "/tree/" in path:
        tree = [{"type": "file", "path": n, "size": len(c), "oid": sums[n]} for n, c in files.items()]
        return reply(handler, json.dumps(tree).encode())
    name = path.rpartition("/")[2]
    if name not in files:
        return reply(handler, b"no", code=404)
    content = files[name]
    handler.send_response(200)
    handler.send_header("ETag", f'"{hashlib.sha256(content).hexdigest() if name.endswith("s") else sums[name]}"')
    handler.send_header("X-Repo-Commit", commit)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:] if name == wrong else content)
    return None


def _git_sum(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
