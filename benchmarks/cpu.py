"""Time on a CPU, of this version beside another: grouping, and updates of the small preset and of own data.

    python benchmarks/cpu.py --before ../taggernet-0.1 --out results/performance/cpu.json

``--before`` is a clone at another commit. The two versions take turns, a process each, so that other work on the
machine affects both. A figure is CPU time, which leaves out waiting for a busy core; the median over the rounds and the
smallest are recorded. Beside them is the floor: the time of the matrix products alone, at the best rate that a product
of 2048 x 2048 reached in the same run.

Updates of this version are also measured compiled, as a long run is (``--precision auto``): the seconds of the first
round are those of compiling, later rounds find the code in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROUNDS, MODEL = 5, "shapes"


def smallest(work: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of CPU time of the fastest of several calls, after one that is not counted."""
    work()
    found = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return 1e3 * min(found)


def cases() -> dict[str, Any]:
    """What is trained: configuration and, of own data, the scenes."""
    import numpy as np

    from taggernet import config_for, data, recipe

    values = np.random.default_rng(0).random((1000, 20, 20), np.float32)
    own = {"own binary": data.Scenes.of((values < 0.3).astype(np.uint8)), "own real": data.Scenes.of(values)}
    return {"small": (recipe("small"), None)} | {name: (config_for(x), x) for name, x in own.items()}


def measure(compiled: bool) -> dict[str, float]:
    """All figures of the version that is on the path, in milliseconds."""
    import torch

    from taggernet import Tagger, data
    from taggernet.training.distributed import World
    from taggernet.training.loop import _Training

    torch.set_num_threads(1)
    found = {}
    model, x = Tagger.from_pretrained(MODEL), data.shapes(200, seed=1, split="test").x
    if not compiled:
        found["group 1 scene"] = smallest(lambda: model.group(x[:1]), 30)
        found["group 200 scenes"] = smallest(lambda: model.group(x), 3)
    for name, (config, scenes) in cases().items():
        runtime = replace(config.runtime, progress=False, device="cpu", compile="yes" if compiled else "no")
        config = replace(config, runtime=runtime, precision=as_in_a_long_run() if compiled else "float32")
        update = _Training(config, None, torch.device("cpu"), World(), scenes, None, None).update
        begin = time.perf_counter()
        update.advance(1)
        found[f"first update, {name}"] = 1e3 * (time.perf_counter() - begin)
        found[f"update, {name}"] = smallest(lambda: update.advance(1), 30)  # noqa: B023  called at once
    a = torch.randn(2048, 2048)  # last: a block of this size, freed, changes how memory is kept
    return found | {"product 2048": smallest(lambda: a @ a, 5)}


def as_in_a_long_run() -> str:
    from taggernet.training.precision import cpu_has_bfloat16

    return "bfloat16" if cpu_has_bfloat16() else "float32"


def floors(product: float) -> dict[str, float]:
    """Milliseconds that the matrix products alone take, at the rate of the large one."""
    from taggernet import Tagger
    from taggernet.training.assembly import update_flop

    per_flop = product / (2 * 2048**3)
    model = Tagger.from_pretrained(MODEL)
    matrices = sum(p.numel() for p, role in model.parameter_roles().items() if role.fan_in)
    scene = 2 * matrices * model.groups * model.iterations * per_flop
    found = {"group 1 scene": scene, "group 200 scenes": 200 * scene}
    return found | {f"update, {name}": update_flop(config) * per_flop for name, (config, _) in cases().items()}


def in_version(folder: Path, compiled_code: str = "") -> dict[str, float]:
    """The figures of a version; compiled, where there is a folder for it."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": compiled_code} if compiled_code else {}
    command = [sys.executable, "-W", "ignore", __file__, "--measure", *(["--compiled"] if compiled_code else [])]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="a clone of another version")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path)
    for name in ("--measure", "--compiled"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return print(json.dumps(measure(args.compiled)))
    versions = ({"before": args.before} if args.before else {}) | {"now": HERE}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    compiled: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(args.rounds):
            for name, folder in versions.items():
                rounds[name].append(in_version(folder))
            compiled.append(in_version(HERE, kept))
    from taggernet.training.log import environment

    best = min(one["product 2048"] for of_version in rounds.values() for one in of_version)
    record: dict[str, Any] = {
        "environment": environment(),
        "rounds": args.rounds,
        "threads": 1,
        "compiled in": as_in_a_long_run(),
        "milliseconds": {},
    }
    for what, floor in floors(best).items():
        row: dict[str, Any] = {"floor": floor}
        for name, of_version in rounds.items():
            values = [one[what] for one in of_version]
            row[name] = {"median": statistics.median(values), "smallest": min(values)}
        if what in compiled[0]:
            values = [one[what] for one in compiled]
            row["compiled"] = {"median": statistics.median(values), "smallest": min(values)}
            row["compiled"] |= {"seconds of the first update": [one[f"first {what}"] / 1e3 for one in compiled]}
        if args.before:
            row["ratio"] = row["before"]["median"] / row["now"]["median"]
            row["ratio of smallest"] = row["before"]["smallest"] / row["now"]["smallest"]
            if "compiled" in row:
                row["ratio of compiled"] = row["before"]["median"] / row["compiled"]["median"]
        record["milliseconds"][what] = row
        print(what, json.dumps({k: v if isinstance(v, dict) else round(v, 2) for k, v in row.items()}), flush=True)
    if args.out:
        args.out.write_text(json.dumps(record, indent=2) + "\n")
    return None


if __name__ == "__main__":
    main()
