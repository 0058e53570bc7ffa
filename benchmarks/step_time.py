"""Time of one update against the GPU's own limit: eager float32, one compiled run, many seeds at once.

    python benchmarks/step_time.py --cases eager one seeds-20 texture-5 --out results/performance/step_time.json

Everything is measured in one process: the bf16 matrix-product ceiling, the copy bandwidth, then each case as
the median of several timed stretches after a warm-up. Rates are counted from the model's own matrix products.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from taggernet.randomness import Key
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training import datasets
from taggernet.training.config import Config, DataConfig, OptimiserConfig
from taggernet.training.objective import Objective
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import FixedSource, Part, Source
from taggernet.training.update import TrainState, Update

SHAPES = Config(model=TaggerConfig(mean=0.2847), data=DataConfig(train=50_000))
TEXTURE = Config(
    model=TaggerConfig(shape=(28, 28), kind="real", widths=(3000, 2000, 1000)),
    data=DataConfig(name="texture-mnist-2"),
    optimiser=OptimiserConfig(lr=1e-3),
)


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


def flop(config: Config) -> float:
    """Floating-point operations of one update's matrix products: forward, and twice that backward."""
    model = Tagger(config.model)
    matrices = sum(p.numel() for name, p in model.named_parameters() if name.endswith(".weight"))
    return 3 * 2 * matrices * config.optimiser.batch * config.groups * config.iterations


def build(config: Config, device: torch.device, half: bool, compiled: bool) -> Update:
    seeds = config.seed_list
    part = Part.of(config.optimiser.batch)
    source: Source
    if config.data.name == "shapes":
        source = datasets.source(config, device, seeds, part, datasets.split(config.data, "train"))
    else:  # timing does not depend on the pictures: stand-ins spare the MNIST files
        x = torch.rand(50_000, config.model.elements, device=device)
        source = FixedSource(x, Key.of(seeds, device), part)
    state = TrainState.fresh(initial_weights(config.model, seeds, device), ema=False)
    objective = Objective(Tagger(config.model).to(device), config.groups, config.iterations)
    keys = Key.of(seeds, device)
    return Update(objective, source, state, config.optimiser, keys, part, half=half, compiled=compiled)


def measure(config: Config, device: torch.device, half: bool, compiled: bool, stretch: int) -> dict[str, Any]:
    begin = time.perf_counter()
    update = build(config, device, half, compiled)
    costs = update.advance(5)
    ready = time.perf_counter() - begin
    times = []
    for _ in range(5):
        sync(device)
        start = time.perf_counter()
        update.advance(stretch)
        sync(device)
        times.append((time.perf_counter() - start) / stretch / config.seeds)
    seconds = statistics.median(times)
    return {
        "ms_per_seed_update": 1e3 * seconds,
        "spread_ms": 1e3 * (max(times) - min(times)),
        "tflops": flop(config) / seconds / 1e12,
        "ready_s": ready,
        "first_costs": costs[:, 0, 0].tolist(),
        "seeds": config.seeds,
        "norm": config.model.norm,
        "updates_timed": 5 * stretch,
        "_update": update,
    }


def case(name: str) -> tuple[Config, bool, bool]:
    """Name -> configuration, bfloat16, compiled. E.g. eager, one, seeds-20, layer-seeds-20, texture-5."""
    config = TEXTURE if "texture" in name else SHAPES
    if name.startswith("layer"):
        config = replace(config, model=replace(config.model, norm="layer"))
    last = name.rsplit("-", 1)[-1]
    seeds = int(last) if last.isdigit() else 1
    return replace(config, seeds=seeds), "eager" not in name, "eager" not in name


def profile(update: Update, rows: int) -> str:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    with torch_profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        update.advance(5)
        torch.cuda.synchronize()
    return prof.key_averages().table(sort_by="cuda_time_total", row_limit=rows, max_name_column_width=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["eager", "one"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--stretch", type=int, default=0, help="updates per timed stretch")
    parser.add_argument("--profile", type=int, default=0, help="print this many kernels of each case")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = torch.device(args.device)
    stretch = args.stretch or (50 if device.type == "cuda" else 1)
    hardware = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    record: dict[str, Any] = {"hardware": hardware, "torch": torch.__version__, **ceilings(device), "cases": {}}
    print(json.dumps({k: v for k, v in record.items() if k != "cases"}), flush=True)
    for name in args.cases:
        found = measure(*case(name)[:1], device, *case(name)[1:], stretch)
        update = found.pop("_update")
        record["cases"][name] = found
        print(name, json.dumps({k: v if isinstance(v, list) else round(v, 4) if isinstance(v, float) else v
                                for k, v in found.items()}), flush=True)  # fmt: skip
        if args.profile and device.type == "cuda":
            print(profile(update, args.profile), flush=True)
        del update
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
