"""The page's modules that need no page, under node's test runner, against vectors that Python writes here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from taggernet import data, metrics
from taggernet.rng import Key
from taggernet.tag import BitFlip, GaussianNoise

JS = Path(__file__).parent / "js"


def shape_scenes(size: int, objects: int, style: str, numbers: list[int]) -> dict[str, Any]:
    scenes = data.shapes(max(numbers) + 1, 0, objects, size, style=style, split="test")
    assert scenes.groups is not None
    return {"size": size, "objects": objects, "scenes": [
        {"number": n, "x": scenes.x[n].ravel().tolist(), "groups": scenes.groups[n].ravel().tolist()} for n in numbers
    ]}  # fmt: skip


def vectors() -> dict[str, Any]:
    key = Key.of(12345).fold("a name", 5, "ä")
    images, labels = data.fixture_digits("test")
    textures = data.texture_mnist(2, "test", images=images, labels=labels, n=203)
    assert textures.groups is not None
    assert textures.classes is not None
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 50).astype(np.float32)
    pairs = [(rng.integers(0, r, 60), rng.integers(0, c, 60)) for r in (1, 2, 4) for c in (1, 2, 5)]
    pairs += [(np.arange(6), np.arange(6)), (np.repeat([1, 2, 3], 9), np.repeat([4, 0, 2], 9))]
    scores, truths = rng.random((40, 10)), rng.integers(0, 10, (40, 2))
    truths[:9, 1] = truths[:9, 0]
    halves = rng.integers(0, 65536, 500).astype(np.uint16)
    halves = halves[np.isfinite(halves.view(np.float16))]
    noise = Key.of(3).fold("noise")
    return {
        "rng": {
            "seed": 12345, "integers": key.integers(1000, 8, start=3).tolist(), "uniform": key.uniform(8).tolist(),
            "normal": key.normal(8).tolist(), "permutation": key.permutation(20).tolist(),
        },
        "shapes": {
            "the paper's shapes": shape_scenes(20, 3, "paper", [0, 1, 250]),
            "small shapes": shape_scenes(10, 2, "small", [0, 7]),
        },
        "digits": {"images": images.ravel().tolist(), "labels": labels.tolist()},
        "textures": [
            {"number": n, "x": textures.x[n].ravel().tolist(), "groups": textures.groups[n].ravel().tolist(),
             "classes": textures.classes[n].tolist()} for n in (0, 99, 202)
        ],
        "single": data.texture_mnist(1, "test", images=images, labels=labels, n=4).x[3].ravel().tolist(),
        "noise": {
            "x": x.tolist(), "binary": BitFlip(0.2).apply(torch.from_numpy(x)[None], noise)[0].tolist(),
            "real": GaussianNoise(0.3).apply(torch.from_numpy(x)[None], noise)[0].tolist(),
        },
        "ami": [
            {"truth": t.tolist(), "found": f.tolist(),
             "ami": float(metrics.adjusted_mutual_information(t[None], f[None])[0])}
            for t, f in pairs if t.any()
        ],
        "halves": [[int(b), float(v)] for b, v in zip(halves, halves.view(np.float16), strict=True)],
        "top2": [
            {"probabilities": s.tolist(), "truth": t.tolist(), "error": float(metrics.top2_error(s[None], t[None])[0])}
            for s, t in zip(scores, truths, strict=True)
        ],
    }  # fmt: skip


def test_the_modules_pass_their_unit_tests(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node was not found: install Debian's nodejs package, for example")
    (tmp_path / "vectors.json").write_text(json.dumps(vectors()))
    paths = {"TAGGERNET_VECTORS": str(tmp_path / "vectors.json"), "TAGGERNET_GIF": str(tmp_path / "frames.gif")}
    done = subprocess.run(
        [node, "--test", *map(str, sorted(JS.glob("*.test.js")))],
        env=os.environ | paths, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    check_gif(tmp_path / "frames.gif")


def check_gif(path: Path) -> None:
    """What session.test.js encoded, read back by another program."""
    with Image.open(path) as gif:
        assert (gif.size, getattr(gif, "n_frames", 1), gif.info["loop"]) == ((70, 60), 3, 0)
        for shift in range(3):
            gif.seek(shift)
            assert gif.info["duration"] == 300 + 100 * shift
            at = np.arange(4 * 70 * 60)
            wanted = ((at >> 2) * (1 + shift) * 37 + (at & 3) * 80) % 256 & 0xE0
            found = np.asarray(gif.convert("RGB")).reshape(-1, 3).astype(int)
            assert np.abs(found - wanted.reshape(-1, 4)[:, :3]).max() <= 4  # colours may be rounded
