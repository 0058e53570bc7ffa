"""How fast the explorer's page is in Chromium: loading, grouping and dragging, beside other ways to do the same.

    python benchmarks/explorer.py [--models shapes] [--onnxruntime-web node_modules/onnxruntime-web/dist] [--json FILE]

All ways run on one thread of the same page, taken in turn, so that other load on the machine hits them alike; figures
are medians. `npm install onnxruntime-web` gives the folder to compare with. It runs the exported step, T times.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from taggernet import Tagger
from taggernet.explorer.bundle import Bundle, bundle
from taggernet.explorer.serve import serve
from taggernet.export import export
from taggernet.fileio import write_json
from taggernet.training.log import environment

PREPARE = """async ([name, plain, ort]) => {
  const { Tagger } = await import(new URL('model/tagger.js', location.href))
  const { models } = await (await fetch('models.json')).json()
  const entry = models.find(model => model.name === name)
  const card = await (await fetch(entry.card)).json()
  const weights = await (await fetch(entry.weights)).arrayBuffer()
  const fast = await Tagger.from(weights, card), slow = await Tagger.from(weights, card, { plain: true })
  const x = window.explorer.session.painted.x
  const ways = {
    wasm: (k, t) => fast.group(x, k, t),
    javascript: (k, t) => slow.group(x, k, t),
    drag: k => { const seen = fast.inputs(x); let state = window.dragged ?? fast.group(x, k, 5).at(-1)
      for (let i = 0; i < 2; i++) state = fast.step(seen, state, 5); window.dragged = state },
  }
  if (ort) {
    const runtime = await import(new URL('ort/ort.wasm.min.mjs', location.href))
    runtime.env.wasm.numThreads = 1
    runtime.env.wasm.wasmPaths = new URL('ort/', location.href).href
    const session = await runtime.InferenceSession.create('ort/step.onnx')
    const tensor = (data, dims) => new runtime.Tensor('float32', data, dims)
    ways.onnxruntime = async (k, t) => {
      const start = fast.start(k, 0), seen = tensor(fast.inputs(x), [1, fast.elements])
      let [z, fed, m] = [start.z, start.fed, start.m].map(part => tensor(part, [1, k, part.length / k]))
      for (let i = 1; i <= t; i++) {
        const more = card.model.frozen_iterations ? { iteration: new runtime.Tensor('int64', BigInt64Array.of(BigInt(i)), []) } : {}
        const out = await session.run({ x: seen, z, fed, m, ...more })
        ;[z, fed, m] = session.outputNames.slice(0, 3).map(name => out[name])
      }
      return m.data
    }
    const far = (await ways.onnxruntime(4, 5)).reduce((most, value, e) => Math.max(most, Math.abs(value - fast.group(x, 4, 5).at(-1).m[e])), 0)
    window.far = far
  }
  window.ways = ways
  return fast.how
}"""
MEASURE = """async ([way, k, t, times]) => {
  const found = []
  for (let i = 0; i < times; i++) {
    const begin = performance.now()
    await window.ways[way](k, t)
    found.push(performance.now() - begin)
  }
  return found
}"""


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def loading(browser: Any, url: str, times: int) -> list[float]:
    """Seconds from asking for the page to the first grouping shown, each with an empty cache."""
    found = []
    for _ in range(times):
        context = browser.new_context(reduced_motion="reduce")
        page = context.new_page()
        begin = time.perf_counter()
        page.goto(url)
        page.locator("#rest").wait_for()
        found.append(time.perf_counter() - begin)
        context.close()
    return found


def measure(browser: Any, url: str, name: str, repeats: int, ort: bool) -> dict[str, Any]:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{url}#model={name}")
    page.locator("#rest").wait_for()
    assert page.evaluate(PREPARE, [name, False, ort]) == "wasm"
    cases = [("wasm", 4, 5), ("wasm", 8, 5), ("javascript", 4, 5), ("drag", 4, 2)]
    cases += [("onnxruntime", 4, 5)] if ort else []
    times: dict[tuple[str, int, int], list[float]] = {case: [] for case in cases}
    for turn in range(repeats + 3):
        for case, found in times.items():
            taken = page.evaluate(MEASURE, [*case, 1])
            found += taken if turn >= 3 else []  # the first turns warm up
    rows = {f"{way}, K={k}, T={t}": {"median_ms": round(median(f), 2), "least_ms": round(min(f), 2)}
            for (way, k, t), f in times.items()}  # fmt: skip
    if ort:
        rows["onnxruntime, K=4, T=5"]["largest_difference_of_m"] = page.evaluate("window.far")
    context.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["shapes", "texture-mnist-2"])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--onnxruntime-web", type=Path, help="the dist folder of the npm package")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    record: dict[str, Any] = {"repeats": options.repeats, "environment": environment(), "models": {}}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        record["chromium"] = browser.version
        for name in options.models:
            files = dict(bundle(name).files)
            ort = options.onnxruntime_web
            if ort is not None:
                files |= {
                    f"ort/{path.name}": path for path in ort.glob("ort*wasm*") if path.suffix in (".mjs", ".wasm")
                }
                files["ort/step.onnx"] = export(Tagger.from_pretrained(name), Path(folder) / f"{name}.onnx")[1]
            page = serve(Bundle(files), host="127.0.0.1", port=None, open_browser=False, block=False)
            seconds = loading(browser, page.url, max(3, options.repeats // 6))
            rows = measure(browser, page.url, name, options.repeats, ort is not None)
            record["models"][name] = {
                "load_median_s": round(median(seconds), 2),
                "load_least_s": round(min(seconds), 2),
                **rows,
            }
            page.close()
            print(f"{name}: loaded in {median(seconds):.2f} s (least {min(seconds):.2f})")
            ours = rows["wasm, K=4, T=5"]["median_ms"]
            for way, row in rows.items():
                print(
                    f"  {way:24} {row['median_ms']:8.2f} ms (least {row['least_ms']:.2f}), {row['median_ms'] / ours:.2f} x"
                )
        browser.close()
    if options.json is not None:
        write_json(options.json, record)


if __name__ == "__main__":
    main()
