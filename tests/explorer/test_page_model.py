"""The network in the browser against PyTorch: the same input, the same start, the same groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from page_toys import TOYS, Site, Visit, toy_inputs

from taggernet import Tagger, data

TOLERANCE = 2e-4
"""Largest difference of m and z, after the last iteration, in the user's units."""
START_TOLERANCE = 1e-3
"""Of m at a start from the scene: PyTorch's own float32 is up to 3e-4 from its float64."""
GROUP = """async ([name, x, k, t, seed, plain]) => {
  const { Tagger } = await import(new URL('model/tagger.js', location.href))
  const weights = await (await fetch(`${name}/model.safetensors`)).arrayBuffer()
  const tagger = await Tagger.from(weights, await (await fetch(`${name}/config.json`)).json(), { plain })
  const last = tagger.group(x, k, t, seed).at(-1)
  const classes = tagger.classShares(last)
  return { how: tagger.how, m: [...last.m], z: [...last.z], classes: classes && [...classes] }
}"""


def check(page: Any, name: str, model: Tagger, x: Any, k: int, t: int, seed: int = 0, plain: bool = False) -> None:
    found = page.evaluate(GROUP, [name, x.ravel().tolist(), k, t, seed, plain])
    assert found["how"] == ("javascript" if plain else "wasm")
    last = model.group(x[None], k, t, seed=seed).history[-1]
    for part in ("m", "z"):
        ours = getattr(last, part)[0].numpy().ravel()
        assert np.abs(np.array(found[part]) - ours).max() < TOLERANCE, part
    if model.config.classes:
        shares = model.class_shares(last)[0].numpy().ravel()
        assert np.abs(np.array(found["classes"]) - shares).max() < TOLERANCE


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("plain", [False, True], ids=["wasm", "javascript"])
def test_a_toy_of_each_kind_groups_as_in_pytorch(name: str, plain: bool, visit: Visit, site: Site) -> None:
    """Also beyond the frozen iterations, and with another K than it was frozen with."""
    page, model = visit(), site.toys[name]
    x = toy_inputs(model.config, 1)[0]
    check(page, name, model, x, 3, 5, plain=plain)
    check(page, name, model, x, 5, 2, seed=11, plain=plain)


def test_weights_of_eight_bits_group_as_in_pytorch(visit: Visit, site: Site) -> None:
    model, toy = site.toys["eight-bits"], site.toys["binary-layer"]
    assert not all(torch.equal(w, toy.state_dict()[name]) for name, w in model.state_dict().items())
    check(visit(), "eight-bits", model, toy_inputs(model.config, 1)[0], 3, 5)


STARTS = """async ([name, scenes]) => {
  const { Tagger } = await import(new URL('model/tagger.js', location.href))
  const weights = await (await fetch(`${name}/model.safetensors`)).arrayBuffer()
  const tagger = await Tagger.from(weights, await (await fetch(`${name}/config.json`)).json())
  return scenes.map(({ x, k, seed }) => [...tagger.group(x, k, 0, seed)[0].m])
}"""


@pytest.mark.parametrize("name", [name for name, config in TOYS.items() if config.start != "random"])
def test_masks_start_from_the_scene_as_in_pytorch(name: str, visit: Visit, site: Site) -> None:
    """Also with more groups than the scene has values."""
    page, model = visit(), site.toys[name]
    pictures = toy_inputs(model.config, 4)
    flat = np.round(pictures[3] * 2) / 2
    scenes = [(x, k, seed) for seed, x in enumerate([*pictures[:3], flat]) for k in (1, 2, 3, 6)]
    found = page.evaluate(STARTS, [name, [{"x": x.ravel().tolist(), "k": k, "seed": seed} for x, k, seed in scenes]])
    for masks, (x, k, seed) in zip(found, scenes, strict=True):
        ours = model.group(x[None], k, 1, seed=seed).at(0).masks
        assert np.abs(np.array(masks) - ours.ravel()).max() < START_TOLERANCE, (k, seed)


def test_shapes_groups_as_in_pytorch(visit: Visit) -> None:
    page, model = visit(), Tagger.from_pretrained("shapes")
    scenes = data.shapes(3, split="test")
    for number, (k, t) in enumerate([(4, 5), (1, 2), (8, 3)]):
        check(page, "shapes", model, scenes.x[number], k, t, seed=number)


def test_texture_mnist_2_groups_as_in_pytorch(visit: Visit) -> None:
    page, model = visit(), Tagger.from_pretrained("texture-mnist-2")
    images, labels = data.fixture_digits("test")
    scenes = data.texture_mnist(2, "test", images=images, labels=labels, n=2)
    check(page, "texture-mnist-2", model, scenes.x[1], 4, 5)


def test_what_is_removed_is_filled_in_as_in_pytorch(visit: Visit, site: Site) -> None:
    page, model = visit(), site.toys["binary-layer"]
    x = toy_inputs(model.config, 1)[0]
    found = page.evaluate("""async ([x]) => {
      const { Tagger, without } = await import(new URL('model/tagger.js', location.href))
      const weights = await (await fetch('binary-layer/model.safetensors')).arrayBuffer()
      const tagger = await Tagger.from(weights, await (await fetch('binary-layer/config.json')).json())
      return [...without(tagger.group(x, 4, 3).at(-1), new Set([1, 3])).m]
    }""", [x.ravel().tolist()])  # fmt: skip
    ours = model.group(x[None], 4, 3).without(1, 3).masks.ravel()
    assert np.abs(np.array(found) - ours).max() < TOLERANCE


BROKEN = """async ([change]) => {
  const { Tagger } = await import(new URL('model/tagger.js', location.href))
  let weights = await (await fetch('binary-layer/model.safetensors')).arrayBuffer()
  let card = await (await fetch('binary-layer/config.json')).json()
  if (change === 'cut') weights = weights.slice(0, 5000)
  if (change === 'empty') weights = new ArrayBuffer(3)
  if (change === 'text') weights = new TextEncoder().encode('<html>not a model</html>').buffer
  if (change === 'nan') { weights = weights.slice(0); new Uint8Array(weights).fill(255, weights.byteLength - 4) }
  if (change === 'foreign card') card = { architectures: ['Bert'] }
  if (change === 'other widths') card.model.widths = [41, 20, 10]
  if (change === 'unfrozen') card.model.norm = 'batch'
  if (change === 'colours') card.model.channels = 3
  if (change === 'another mapping') card.model.mapping = 'transformer'
  if (change === 'another decoder') card.model.decoder = 'wavelets'
  if (change === 'another start') card.model.start = 'stars'
  if (change === 'no parts') card.model.start = 'parts'
  if (change === 'retired') card.model.residual = 0.3
  if (change === 'groups that talk') card.model.group_attention = 8
  if (change === 'too large') card.model.shape = [200, 200]
  try { await Tagger.from(weights, card); return 'loaded' } catch (problem) { return problem.message }
}"""
SENTENCES = {
    "cut": "it ends before",
    "empty": "shorter than its header",
    "text": "its header has no end",
    "nan": "NaN or infinite",
    "foreign card": "not the card of a taggernet model",
    "other widths": "has shape",
    "unfrozen": "no frozen statistics",
    "colours": "its card says",
    "groups that talk": "has no mapping.ladder.attention",
    "another mapping": "knows ladder and conv",
    "another decoder": "knows mirror and broadcast",
    "another start": "knows random, values, parts and places",
    "no parts": "has no start_quiet",
    "retired": "residual is an option of an earlier version",
    "too large": "at most 128 a side",
}


@pytest.mark.parametrize("change", SENTENCES)
def test_a_damaged_or_foreign_model_is_one_sentence(change: str, visit: Visit) -> None:
    said = visit().evaluate(BROKEN, [change])
    assert SENTENCES[change] in said
    assert "\n" not in said
    assert len(said) < 160
