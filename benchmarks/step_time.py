"""Time of one update against the GPU's own limit: eager float32, one compiled run, many seeds at once.

    python benchmarks/step_time.py --out results/performance/step_time.json

A case is a name such as eager, one, seeds-20, layer-seeds-20 or texture-5. tf32-one has products of float32 in TF32,
captured-one is captured as a graph but not compiled; tetrominoes-1 and sprites-5 are the recipes of images with so many
seeds. A case may change the sizes: seeds-5,K=8 or seeds-5,T=6,batch=400 or seeds-5,N=1600. Everything is measured in
one run: the bf16 matrix-product ceiling and the copy bandwidth, then each case as the median of several timed stretches
after a warm-up. Cases compile side by side, each in a process of its own, and are timed one after the other once all of
them are ready.
Rates are counted from the model's own matrix products.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import multiprocessing as mp
import os
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from taggernet.config.run import Config, DataConfig, OptimiserConfig
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import datasets
from taggernet.training.adam import TrainState
from taggernet.training.assembly import update_flop
from taggernet.training.log import environment
from taggernet.training.objective import Objective
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import FixedSource, Part, Source
from taggernet.training.step import Update

SHAPES = Config(model=TaggerConfig(mean=0.2847), data=DataConfig(train=50_000))
TEXTURE = Config(
    model=TaggerConfig(shape=(28, 28), kind="real", widths=(3000, 2000, 1000)),
    data=DataConfig(name="texture-mnist-2"),
    optimiser=OptimiserConfig(lr=1e-3),
)
SPEED = ["eager", "captured-one", "one", "seeds-20", "layer-seeds-20", "texture-5", "tf32-one", "tf32-texture-5"]
SCALING = [f"seeds-{s}" for s in (2, 5, 10)] + [
    f"seeds-5,{size}" for size in ("K=2", "K=8", "T=1", "T=6", "N=100", "N=1600", "batch=50", "batch=200", "batch=400")
]


IMAGES = ("tetrominoes", "sprites")
How = Literal["eager", "captured", "tf32", "fast"]
"""Plain float32, bfloat16 as a graph, TF32 compiled, bfloat16 compiled."""


def sync(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def ceilings(device: torch.device) -> dict[str, float]:
    """bf16 product rate (TFLOP/s) and copy bandwidth (TB/s) of this device, on random data."""
    n = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(n, n, device=device).to(torch.bfloat16) for _ in range(2))
    source = torch.randn(2**28 if device.type == "cuda" else 2**22, device=device)
    target = torch.empty_like(source)
    product = timed(lambda: a @ b, device, 20)
    copy = timed(lambda: target.copy_(source), device, 20)
    return {"matmul_tflops": 2 * n**3 / product / 1e12, "copy_tbs": 2 * source.numel() * 4 / copy / 1e12}


def timed(work: Any, device: torch.device, repeats: int) -> float:
    """Seconds per call."""
    for _ in range(3):
        work()
    sync(device)
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    sync(device)
    return (time.perf_counter() - begin) / repeats


def build(config: Config, device: torch.device, how: How) -> Update:
    if how == "tf32":
        torch.set_float32_matmul_precision("high")
    seeds = config.seed_list
    part = Part.of(config.optimiser.batch)
    source: Source
    if config.data.name in IMAGES or config.model.shape == (20, 20):
        source = datasets.source(config, device, seeds, part, datasets.training_set(config))
    else:  # timing does not depend on the pictures: stand-ins spare the MNIST files
        x = torch.rand(50_000, config.model.elements, device=device)
        source = FixedSource(x, Key.of(seeds, device), part)
    state = TrainState.fresh(initial_weights(config.model, seeds, device), ema=False)
    objective = Objective(Tagger(config.model).to(device), config.groups, config.iterations)
    keys = Key.of(seeds, device)
    return Update(
        objective, source, state, config.optimiser, keys, part, half=how in ("fast", "captured"),
        compiled=how in ("fast", "tf32"), captured=how == "captured",
    )  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """How the processes of the cases wait for each other."""

    barrier: Any
    lock: Any
    gpu: Path | None
    """A file whose lock is held while timing, so that other work on the GPU can take turns with it."""
    rows: int
    """Kernels to list of each case."""


@contextmanager
def alone(path: Path | None) -> Iterator[None]:
    """Hold the lock of a file, if one is named."""
    if path is None:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def work(name: str, device: torch.device, stretch: int, turn: Turn, found: Any) -> None:
    """The process of one case: ready it, wait for the others, time it."""
    config, how = case(name)
    figures: dict[str, Any] = {"seeds": config.seeds, "norm": config.model.norm}
    update = None
    begin = time.perf_counter()
    try:
        update = build(config, device, how)
        figures["first_costs"] = update.advance(5)[:, 0, 0].tolist()
        figures["ready_s"] = time.perf_counter() - begin
    except Exception as error:
        figures["error"] = f"{type(error).__name__}: {str(error)[:500]}"
    turn.barrier.wait()
    with turn.lock, alone(turn.gpu):
        if "error" not in figures and update is not None:
            figures |= measure(update, config, device, stretch)
            if turn.rows and device.type == "cuda":
                figures["profile"] = profile(update, turn.rows)
    found.put((name, figures))


def measure(update: Update, config: Config, device: torch.device, stretch: int) -> dict[str, Any]:
    times = []
    for _ in range(5):
        sync(device)
        start = time.perf_counter()
        update.advance(stretch)
        sync(device)
        times.append((time.perf_counter() - start) / stretch / config.seeds)
    seconds, work = statistics.median(times), update_flop(config) / config.seeds
    return {
        "ms_per_seed_update": 1e3 * seconds,
        "spread_ms": 1e3 * (max(times) - min(times)),
        "gflop": work / 1e9,
        "tflops": work / seconds / 1e12,
        "gib": torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None,
        "updates_timed": 5 * stretch,
    }


def case(name: str) -> tuple[Config, How]:
    """Name -> configuration, and how it is run."""
    kind, *sizes = name.split(",")
    image = next((image for image in IMAGES if image in kind), None)
    config = recipe(image) if image else TEXTURE if "texture" in kind else SHAPES
    if kind.startswith("layer"):
        config = replace(config, model=replace(config.model, norm="layer"))
    last = kind.rsplit("-", 1)[-1]
    config = replace(config, seeds=int(last) if last.isdigit() else 1)
    for size in sizes:
        config = resized(config, *size.split("="))
    how: tuple[How, ...] = ("eager", "captured", "tf32")
    return config, next((one for one in how if one in kind), "fast")


def resized(config: Config, letter: str, value: str) -> Config:
    n = int(value)
    if letter == "K":
        return replace(config, groups=n)
    if letter == "T":
        return replace(config, iterations=n)
    if letter == "batch":
        return replace(config, optimiser=replace(config.optimiser, batch=n))
    return replace(config, model=replace(config.model, shape=(math.isqrt(n), math.isqrt(n))))


PROFILED = 5
"""Updates."""
PARTS = {
    "matrix products": r"nvjet|gemm|cutlass",
    "normalise + combine": r"^(batch_|layer_)?combine_(forward|backward|parameter)",
    "normalise + activate": r"^(batch_|layer_)?norm_(forward|backward)|layer_parameter",
    "Adam": r"triton_for_fused",
    "copies of the factors of merged gradients": r"triton_poi_fused_(cat_)?\d+$",
}
"""Parts of an update by the names of their kernels; the rest is what the compiler made of everything else."""


def profile(update: Update, rows: int) -> list[dict[str, Any]]:
    """The kernels that take longest and, as one row, the others: microseconds and calls per update."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    with torch_profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        update.advance(PROFILED)
        torch.cuda.synchronize()
    kernels = [
        {"kernel": e.key, "us": e.self_device_time_total / PROFILED, "calls": e.count / PROFILED}
        for e in prof.key_averages()
        if e.self_device_time_total > 0 and not e.key.startswith(("aten::", "cuda"))
    ]
    kernels.sort(key=lambda kernel: -kernel["us"])
    others = {"kernel": "others", "us": sum(k["us"] for k in kernels[rows:]), "calls": len(kernels[rows:])}
    return [*kernels[:rows], others]


def parts(kernels: list[dict[str, Any]]) -> dict[str, float]:
    """Microseconds per update of each part."""
    found = dict.fromkeys([*PARTS, "everything else"], 0.0)
    for kernel in kernels:
        names = [name for name, pattern in PARTS.items() if re.search(pattern, kernel["kernel"])]
        found[names[0] if names else "everything else"] += kernel["us"]
    return found


def measure_all(
    names: list[str], device: torch.device, stretch: int, rows: int, gpu: Path | None
) -> dict[str, dict[str, Any]]:
    """Every case in its own process: compiled side by side, timed one after the other."""
    context = mp.get_context("spawn")
    found = context.Queue()
    turn = Turn(context.Barrier(len(names)), context.Lock(), gpu, rows)
    workers = [context.Process(target=work, args=(name, device, stretch, turn, found)) for name in names]
    for worker in workers:
        worker.start()
    cases = dict(found.get() for _ in workers)
    for worker in workers:
        worker.join()
    return {name: cases[name] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cuda = torch.cuda.is_available()
    parser.add_argument("--cases", nargs="+", default=SPEED + SCALING if cuda else ["eager"])
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--stretch", type=int, default=0, help="updates per timed stretch")
    parser.add_argument("--profile", type=int, default=0, help="list this many kernels of each case")
    parser.add_argument("--lock", type=Path, help="a file whose lock to hold while timing")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = torch.device(args.device)
    stretch = args.stretch or (50 if device.type == "cuda" else 1)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    with alone(args.lock):
        record: dict[str, Any] = {"environment": environment(), **ceilings(device)}
    print(json.dumps({k: v for k, v in record.items() if k != "environment"}), flush=True)
    record["cases"] = measure_all(args.cases, device, stretch, args.profile, args.lock)
    for name, figures in record["cases"].items():
        shown = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
        kernels = shown.pop("profile", [])
        shown.pop("first_costs", None)
        print(name, json.dumps(shown), flush=True)
        for kernel in kernels:
            print(f"  {kernel['us']:10.1f} us {kernel['calls']:6.1f} x  {kernel['kernel'][:100]}", flush=True)
        if kernels:
            print("  " + json.dumps({part: round(us, 1) for part, us in parts(kernels).items()}), flush=True)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
