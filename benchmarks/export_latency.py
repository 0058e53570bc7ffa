"""CPU latency per scene, torch against onnxruntime, on the same machine in the same run.

    python benchmarks/export_latency.py [--model NAME_OR_FOLDER] [--threads 1] [--json results/export_latency.json]

Each measurement is the median of several calls after a warm-up, the two taken in turn so that other load on the machine
hits both; the last column is torch / onnxruntime, above 1 where onnxruntime is faster. Without a model, a small
LayerNorm Ladder with random weights stands in: time does not depend on their values.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import taggernet as tn
from taggernet.export import export, session
from taggernet.fileio import write_json
from taggernet.training.log import environment


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="", help="a shipped model's name, a folder or a Hub id")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.model:
        model = tn.Tagger.from_pretrained(options.model)
    else:
        torch.manual_seed(0)
        model = tn.Tagger(tn.TaggerConfig((20, 20), widths=(400, 200, 100), norm="layer"))
    n, key = model.config.elements, tn.Key.of(0).fold("masks")
    print(f"{model.config.widths} {model.config.norm}, N={n}, K={options.groups}, T={options.iterations}, "
          f"{options.threads} thread(s), torch {torch.__version__}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        whole, _ = export(model, Path(folder) / "model.onnx", options.iterations)
        onnx = session(whole, options.threads)
        rows = []
        print(f"{'batch':>6} {'torch ms':>10} {'onnx ms':>10} {'ratio':>7}   (per scene)")
        for batch in (1, 10, 100):
            x = (np.random.default_rng(0).random((batch, n)) < 0.3).astype(np.float32)
            start = model.start(batch, options.groups, key).m_pre.numpy()
            times: tuple[list[float], list[float]] = ([], [])
            for repeat in range(options.repeats + 3):
                torch_s = seconds(lambda x=x: model.group(x, options.groups, options.iterations))
                onnx_s = seconds(lambda x=x, start=start: onnx.run(None, {"x": x, "start": start}))
                if repeat >= 3:
                    times[0].append(torch_s)
                    times[1].append(onnx_s)
            ours, theirs = (1e3 * statistics.median(t) / batch for t in times)
            print(f"{batch:>6} {ours:>10.3f} {theirs:>10.3f} {ours / theirs:>7.2f}")
            rows.append({"batch": batch, "torch_ms": round(ours, 4), "onnxruntime_ms": round(theirs, 4)})
    if options.json is not None:
        setting = {name: getattr(options, name) for name in ("model", "threads", "groups", "iterations", "repeats")}
        shape = {"widths": model.config.widths, "norm": model.config.norm, "elements": n}
        write_json(options.json, {**setting, **shape, "per_scene": rows, "environment": environment()})


if __name__ == "__main__":
    main()
