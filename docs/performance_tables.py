"""Write the tables of docs/performance.md anew from the records under results/performance.

    python docs/performance_tables.py

What stands between <!-- NAME --> and <!-- /NAME --> is replaced, for NAME in speed, images, profile, growth
and QUALITY.
"""

from __future__ import annotations

import json
import runpy
import statistics
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SPEED = {
    "eager": "plain eager float32",
    "captured-one": "one run, captured but not compiled",
    "one": "one run",
    "seeds-20": "20 seeds, BatchNorm",
    "layer-seeds-20": "20 seeds, LayerNorm",
    "texture-5": "TextureMNIST phase 1, 5 seeds",
    "tf32-one": "one run, float32 (TF32)",
    "tf32-texture-5": "TextureMNIST phase 1, 5 seeds, float32 (TF32)",
}
"""Case -> its title."""
IMAGES = {
    "tetrominoes-1": "tetrominoes, 35 x 35 x 3, K = 4, one run",
    "tetrominoes-5": "the same, 5 seeds",
    "sprites-1": "sprites, 64 x 64 x 3, K = 6, one run",
    "sprites-5": "the same, 5 seeds",
}
"""Case of step_time_images.json -> its title."""
PROFILED = ("one", "seeds-20", "layer-seeds-20", "texture-5")
GROWTH = {
    "seeds (K = 4, T = 3, N = 400, batch 100)": ["one", "seeds-2", "seeds-5", "seeds-10", "seeds-20"],
    "groups K (5 seeds)": ["seeds-5,K=2", "seeds-5", "seeds-5,K=8"],
    "iterations T (5 seeds)": ["seeds-5,T=1", "seeds-5", "seeds-5,T=6"],
    "elements N (5 seeds)": ["seeds-5,N=100", "seeds-5", "seeds-5,N=1600"],
    "batch (5 seeds)": ["seeds-5,batch=50", "seeds-5", "seeds-5,batch=200", "seeds-5,batch=400"],
}
QUALITY = ("precision", "precision-small", "precision-texture", "precision-texture-full-size")
USUAL = {"K": 4, "T": 3, "N": 400, "batch": 100}


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def speed(record: dict[str, Any]) -> str:
    cases = record["cases"]
    eager = cases["eager"]["ms_per_seed_update"]
    rows = []
    for name, title in SPEED.items():
        ms, share = cases[name]["ms_per_seed_update"], cases[name]["tflops"] / record["matmul_tflops"]
        factor = "1" if name == "eager" else f"{eager / ms:.0f}" if "texture" not in name else "-"
        rows.append([title, f"{ms:.3f}", factor, f"{cases[name]['tflops']:.0f}", f"{100 * share:.0f} %"])
    head = ["what", "ms per update and seed", "speed-up over eager", "TFLOP/s", "of peak"]
    where = f"{record['environment']['gpu']}, PyTorch {record['environment']['torch']}"
    note = (
        f"{where}; measured in the same run: {record['matmul_tflops']:.0f} TFLOP/s in bf16 products of 8192 x 8192, "
        f"{record['copy_tbs']:.2f} TB/s copying. The eager model is the Shapes model, so TextureMNIST has no speed-up."
    )
    return f"{table(head, rows)}\n\n{note}"


def images(record: dict[str, Any]) -> str:
    rows = []
    for name, title in IMAGES.items():
        found = record["cases"][name]
        floor = found["gflop"] / record["matmul_tflops"]
        time = f"{found['ms_per_seed_update']:.2f} ({found['spread_ms']:.2f})"
        figures = time, f"{floor:.2f}", f"{found['gib']:.1f}", f"{found['ready_s']:.0f}"
        rows.append([title, *figures])
    head = ["what", "ms per update and seed (range)", "floor", "GiB, all seeds", "seconds to begin"]
    note = (
        f"{record['environment']['gpu']}; times are medians of stretches, with their range. The floor is the time of "
        f"the products alone at the {record['matmul_tflops']:.0f} TFLOP/s of large ones, measured in the same run. "
        "Compiled code was found in PyTorch's cache, and other processes were compiling on the same machine."
    )
    return f"{table(head, rows)}\n\n{note}"


def profile(record: dict[str, Any]) -> str:
    names = [name for name in PROFILED if "profile" in record["cases"][name]]
    parts = runpy.run_path(str(ROOT / "benchmarks" / "step_time.py"))["parts"]
    found = {name: parts(record["cases"][name]["profile"]) for name in names}
    rows = []
    for part in next(iter(found.values())):
        cells = []
        for name in names:
            us, total = found[name][part], sum(found[name].values())
            cells.append(f"{us / record['cases'][name]['seeds']:.0f} ({100 * us / total:.0f} %)")
        rows.append([part, *cells])
    return table(["microseconds per update and seed", *(SPEED[name] for name in names)], rows)


def usual(title: str, kind: str) -> str:
    """The size of a case that changes none: the number of seeds, or what the recipe has."""
    if title.startswith("seeds"):
        return "1" if kind == "one" else kind.removeprefix("seeds-")
    return next(str(size) for letter, size in USUAL.items() if letter in title.split())


def growth(record: dict[str, Any]) -> str:
    rows = []
    for title, names in GROWTH.items():
        cells = []
        for name in names:
            kind, _, size = name.partition(",")
            value = size.partition("=")[2] or usual(title, kind)
            cells.append(f"{value}: {record['cases'][name]['ms_per_seed_update']:.3f}")
        rows.append([title, " · ".join(cells)])
    return table(["what grows", "value: ms per update and seed"], rows)


def precision(record: dict[str, Any]) -> str:
    rows = []
    for name in ("bfloat16", "float32"):
        figures = []
        for figure in ("ami", "cost"):
            last = [seed[-1] for seed in record[name][figure]]
            figures.append(f"{statistics.fmean(last):.4f} ± {statistics.stdev(last):.4f}")
        rows.append([name, *figures, str(len(record["seeds"]))])
    return table(["products in", "AMI after 5 iterations", "cost", "n"], rows)


def filled(page: str) -> str:
    """The page with its tables renewed."""
    folder = ROOT / "results" / "performance"
    times = json.loads((folder / "step_time.json").read_text())
    pictures = json.loads((folder / "step_time_images.json").read_text())
    blocks = {"speed": speed(times), "images": images(pictures), "profile": profile(times), "growth": growth(times)}
    for name in QUALITY:
        blocks[name] = precision(json.loads((folder / f"{name}.json").read_text()))
    replaced = runpy.run_path(str(ROOT / "docs" / "results_tables.py"))["replaced"]
    found: str = replaced(page, blocks, "docs/performance.md")
    return found


if __name__ == "__main__":
    path = ROOT / "docs" / "performance.md"
    path.write_text(filled(path.read_text()))
