"""The page under load: clients that ask for groupings over loopback, their latency, and the server's memory.

    python benchmarks/page_load.py [--clients 16] [--requests 1000] [--model NAME_OR_FOLDER]
                                   [--out results/performance/load.json]

Every request is another scene and another random start, so none is answered from the page's cache. A latency is what a
visitor waits: from asking to the last byte of the answer, the time in the queue included. Without a model, a LayerNorm
Ladder of the paper's size (2000-1000-500) with random weights stands in: time does not depend on their values.
Memory is read from /proc, so on Linux only.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVER = """
import sys
from taggernet.explorer import launch
page = launch(sys.argv[1], open_browser=False, block=False)
print(page.url, flush=True)
sys.stdin.read()
"""
SAMPLES = 64
"""How often the server's memory is read."""


@dataclass(frozen=True)
class Served:
    """A page in a process of its own."""

    port: int
    pid: int


@contextmanager
def served(model: str, folder: Path, **environment: str) -> Iterator[Served]:
    """Serve the page for a model until the block ends; its complaints go to folder/server.log."""
    settings = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "ignore",
        "GRADIO_TEMP_DIR": str(folder / "gradio"), "no_proxy": "127.0.0.1,localhost",
    } | environment  # fmt: skip
    log = folder / "server.log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, model],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=settings,
        )  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the server did not start:\n{log.read_text()}")
            yield Served(int(url.rstrip("/").rpartition(":")[2]), server.pid)
        finally:
            server.stdin.close()
            server.stdout.close()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def ask(port: int, *question: Any) -> str:
    """What the page's endpoint for programs answers to (scene, noise, groups, iterations, seed)."""
    path = "/gradio_api/call/group"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", path, json.dumps({"data": question}), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            return f"status {answer.status}: {content[:200]!r}"
        connection.request("GET", f"{path}/{json.loads(content)['event_id']}")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} is gone")


@dataclass
class Load:
    """What happened under load."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    """Bytes that the server held, after equally many requests each."""
    errors: list[str] = field(default_factory=list)

    def quarter(self, number: int) -> float:
        """Median memory in a quarter of the run, 0 to 3."""
        size = len(self.memory) // 4
        return statistics.median(self.memory[number * size : (number + 1) * size])

    @property
    def growth(self) -> float:
        """Bytes by which the memory grew from the third quarter to the last: what it gained over the last half."""
        return self.quarter(3) - self.quarter(2)

    def summary(self) -> dict[str, Any]:
        in_order = sorted(self.latencies)
        return {
            "answered": len(self.latencies),
            "errors": len(self.errors),
            "seconds": round(self.seconds, 1),
            "per_second": round(len(self.latencies) / self.seconds, 1),
            "median_ms": round(1000 * statistics.median(in_order), 1),
            "p95_ms": round(1000 * in_order[int(0.95 * (len(in_order) - 1))], 1),
            "worst_ms": round(1000 * in_order[-1], 1),
            "memory_mib": [round(self.quarter(number) / 2**20, 1) for number in range(4)],
            "growth_last_half_mib": round(self.growth / 2**20, 2),
        }


def load(page: Served, clients: int, requests: int, groups: int = 4, iterations: int = 5) -> Load:
    """``requests`` different questions, asked by ``clients`` that each wait for an answer before the next."""
    found, numbers, lock = Load(), itertools.count(), threading.Lock()
    every = max(1, requests // SAMPLES)

    def client() -> None:
        while (number := next(numbers)) < requests:
            began = time.perf_counter()
            try:
                answer = ask(page.port, number % 1000, 0.1, groups, iterations, number)
            except (OSError, http.client.HTTPException) as problem:
                answer = f"{type(problem).__name__}: {problem}"
            took = time.perf_counter() - began
            with lock:
                if "event: complete" in answer and "tn-stage" in answer:
                    found.latencies.append(took)
                else:
                    found.errors.append(answer[:300])
                if (len(found.latencies) + len(found.errors)) % every == 0:
                    found.memory.append(resident(page.pid))

    for warm in range(4):
        ask(page.port, warm, 0.0, groups, iterations, 10**6 + warm)
    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.seconds = time.perf_counter() - began
    return found


def main() -> None:
    import torch

    import taggernet as tn
    from taggernet.fileio import write_json
    from taggernet.training.log import environment

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--model", default="", help="a shipped model's name, or the folder of a model or a run")
    parser.add_argument("--out", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model = options.model
        if not model:
            torch.manual_seed(0)
            paper = tn.TaggerConfig((20, 20), widths=(2000, 1000, 500), norm="layer", mean=0.28)
            model = str(tn.Tagger(paper).save(Path(name) / "model"))
        with served(model, Path(name)) as page:
            found = load(page, options.clients, options.requests)
        complaints = (Path(name) / "server.log").read_text()
    record = {
        "clients": options.clients, "requests": options.requests, "groups": 4, "iterations": 5,
        "model": options.model or "2000-1000-500, LayerNorm, 20 x 20, random weights",
        **found.summary(), "environment": environment(), "threads": torch.get_num_threads(),
    }  # fmt: skip
    print(json.dumps(record, indent=2))
    if found.errors or "Traceback" in complaints:
        sys.exit(f"{len(found.errors)} errors; the first: {(found.errors or [complaints])[0]}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, record)


if __name__ == "__main__":
    main()
