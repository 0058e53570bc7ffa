"""The page's modules that need no page, in node and in Chromium, against vectors that Python writes here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from PIL import Image

from taggernet import data, metrics
from taggernet.data.sprites import sprite_mask
from taggernet.rng import Key
from taggernet.tag import BitFlip, CategoryFlip, GaussianNoise

ROOT = Path(__file__).parents[2]
UNITS = sorted((Path(__file__).parent / "js").glob("*.test.js"))
NODE = dict.fromkeys(("node:test", "node:assert/strict", "node:fs"), "/tests/explorer/js/in_browser.js")
RUNNER = f"""<!doctype html><script>window.process = {{ env: {{ TAGGERNET_VECTORS: 'vectors', TAGGERNET_GIF: 'gif' }} }}
</script><script type="importmap">{json.dumps({"imports": NODE})}</script>"""
"""A page in which the tests find what they use of node."""


def listed(scenes: data.Scenes, numbers: list[int], **more: Any) -> dict[str, Any]:
    """Some of the scenes, and how they were made."""
    assert scenes.groups is not None
    return more | {"scenes": [
        {"number": n, "x": scenes.x[n].ravel().tolist(), "groups": scenes.groups[n].ravel().tolist()} for n in numbers
    ]}  # fmt: skip


def shape_scenes(size: int, objects: int, style: str, numbers: list[int], fewest: int = 0) -> dict[str, Any]:
    scenes = data.shapes(max(numbers) + 1, 0, objects, size, style=style, split="test", min_objects=fewest)
    return listed(scenes, numbers, size=size, objects=objects, fewest=fewest or objects)


def sprite_scenes(size: int, objects: int, fewest: int, variant: Any, numbers: list[int]) -> dict[str, Any]:
    scenes = data.sprites(
        max(numbers) + 1, objects=objects, size=size, min_objects=fewest, variant=variant, split="test"
    )
    return listed(scenes, numbers, size=size, objects=objects, fewest=fewest, one=variant == "one-colour")


def state_noise(key: Key) -> dict[str, Any]:
    x = torch.eye(4)[torch.arange(60) % 4].reshape(1, -1)
    return {"x": x[0].tolist(), "found": CategoryFlip(4, 0.3).apply(x, key)[0].tolist()}


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
            "one to five shapes": shape_scenes(20, 5, "paper", [0, 1, 2, 3, 40], fewest=1),
        },
        "sprites": {
            "sprites": sprite_scenes(64, 5, 2, "colour", [0, 1, 2, 100]),
            "small sprites": sprite_scenes(32, 4, 1, "colour", [0, 1, 2, 3, 4, 50]),
            "sprites of one colour": sprite_scenes(35, 3, 3, "one-colour", [0, 9]),
        },
        "masks": [int(sprite_mask(kind, scale, 2 * np.pi * turn / 40, size).sum()) for size in (16, 64)
                  for kind in ("square", "ellipse", "heart") for scale in np.linspace(0.5, 1, 6) for turn in range(40)],
        "tetrominoes": [
            listed(data.tetrominoes(61, size=35, split="test"), [0, 1, 60], size=35, objects=3),
            listed(data.tetrominoes(30, size=14, objects=2, split="test"), [0, 5, 29], size=14, objects=2),
        ],
        "digits": {"images": images.ravel().tolist(), "labels": labels.tolist()},
        "textures": [
            {"number": n, "x": textures.x[n].ravel().tolist(), "groups": textures.groups[n].ravel().tolist(),
             "classes": textures.classes[n].tolist()} for n in (0, 99, 202)
        ],
        "single": data.texture_mnist(1, "test", images=images, labels=labels, n=4).x[3].ravel().tolist(),
        "noise": {
            "x": x.tolist(), "binary": BitFlip(0.2).apply(torch.from_numpy(x)[None], noise)[0].tolist(),
            "real": GaussianNoise(0.3).apply(torch.from_numpy(x)[None], noise)[0].tolist(),
            "categorical": state_noise(noise),
        },
        "ami": [
            {"truth": t.tolist(), "found": f.tolist(),
             "ami": float(metrics.adjusted_mutual_information(t[None], f[None])[0]),
             "ari": [float(metrics.foreground_adjusted_rand_index(t[None], f[None], b)[0]) for b in (0, 1)],
             "objects": [int(((t != 0) & (t != b)).sum()) for b in (0, 1)]}
            for t, f in pairs if t.any()
        ],
        "halves": [[int(b), float(v)] for b, v in zip(halves, halves.view(np.float16), strict=True)],
        "top2": [
            {"probabilities": s.tolist(), "truth": t.tolist(), "error": float(metrics.top2_error(s[None], t[None])[0])}
            for s, t in zip(scores, truths, strict=True)
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def written() -> str:
    return json.dumps(vectors())


def test_the_modules_pass_their_unit_tests_in_node(written: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node was not found: install Debian's nodejs package, for example; Chromium runs the same tests")
    (tmp_path / "vectors.json").write_text(written)
    paths = {"TAGGERNET_VECTORS": str(tmp_path / "vectors.json"), "TAGGERNET_GIF": str(tmp_path / "frames.gif")}
    done = subprocess.run(
        [node, "--test", *map(str, UNITS)], env=os.environ | paths, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    check_gif(tmp_path / "frames.gif")


def test_the_modules_pass_their_unit_tests_in_chromium(written: str, browser: Any, tmp_path: Path) -> None:
    def answer(route: Any) -> None:
        path = ROOT / urlsplit(route.request.url).path.lstrip("/")
        if path.is_file():
            route.fulfill(path=path, content_type="text/javascript")
        else:
            route.fulfill(body=RUNNER, content_type="text/html")

    page = browser.new_page()
    page.route("http://units.test/**", answer)
    page.goto("http://units.test/")
    ran = page.evaluate(
        """async ([vectors, units]) => {
            const runner = await import('node:test')
            runner.files.vectors = vectors
            for (const unit of units) await import(unit)
            await runner.finished()
            return { results: runner.results, gif: Array.from(runner.files.gif ?? []) }
        }""",
        [written, [f"/{unit.relative_to(ROOT).as_posix()}" for unit in UNITS]],
    )
    page.close()
    declared = sum(len(re.findall(r"^test\(", unit.read_text(), re.MULTILINE)) for unit in UNITS)
    assert len(ran["results"]) >= declared > 10
    assert not [each for each in ran["results"] if each["problem"]]
    (tmp_path / "frames.gif").write_bytes(bytes(ran["gif"]))
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
