"""Several processes, started by torchrun: each computes its part of the batch, gradients are averaged.

BatchNorm's statistics are those of the global batch (nets/norm.py), and random numbers depend on a scene's place in
the global batch, so n processes compute what one would.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

LONGEST_WAIT = 1800
"""Seconds that a process waits for the others."""


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def main(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0


def world_size() -> int:
    """How many processes torchrun started, also before they have joined."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def world(device_type: str) -> Iterator[World]:
    """The processes that torchrun started, joined for the duration; alone otherwise."""
    if world_size() == 1:
        yield World()
        return
    joined_here = not dist.is_initialized()
    if joined_here:
        from torch.distributed.rendezvous import rendezvous

        store, rank, size = next(iter(rendezvous("env://")))
        ours = dist.PrefixStore(meeting(store, rank, size), store)  # type: ignore[attr-defined]
        backend, patience = "nccl" if device_type == "cuda" else "gloo", timedelta(seconds=LONGEST_WAIT)
        dist.init_process_group(backend, store=ours, rank=rank, world_size=size, timeout=patience)
    try:
        yield World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        if joined_here:
            dist.destroy_process_group()


def meeting(store: dist.Store, rank: int, size: int, patience: float = 1.0) -> str:  # type: ignore[name-defined]
    """A name that only the processes of this start know.

    torchrun keeps its store when it starts workers again after a failure, with the addresses of the dead ones in it.
    Every process greets with a word nobody used before; the first invites those it heard of, and when all of them
    have come the meeting begins. A greeting of the dead is never answered, and is overwritten by the living.
    """
    greeting, others = uuid.uuid4().hex, range(1, size)
    end = time.monotonic() + LONGEST_WAIT
    if rank:
        store.set(f"greeting {rank}", greeting)
    while time.monotonic() < end:
        if rank:
            name, invited = json.loads(store.get("invitation"))
            if greeting in invited:
                store.set(f"{name} {rank}", "here")
                if store.check([f"{name} begins"]):
                    return str(name)
            time.sleep(0.01)
            continue
        name = uuid.uuid4().hex
        store.set("invitation", json.dumps([name, [store.get(f"greeting {other}").decode() for other in others]]))
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if store.check([f"{name} {other}" for other in others]):
                store.set(f"{name} begins", "")
                return name
            time.sleep(0.01)
    raise TimeoutError(f"the {size} processes of this run did not find each other within {LONGEST_WAIT} seconds")


def agree(flag: bool, world: World, device: torch.device) -> bool:
    """True as soon as any process says so."""
    if world.size == 1:
        return flag
    votes = torch.tensor([int(flag)], device=device)
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return bool(votes.item())


def average(costs: torch.Tensor, world: World, device: torch.device) -> torch.Tensor:
    """Of all processes, whose parts of the batch are equal: what one process would have seen."""
    if world.size == 1:
        return costs
    total = costs.to(device)
    dist.all_reduce(total)
    return (total / world.size).to(costs.device)


def same_start(step: int, world: World, device: torch.device) -> None:
    """All processes must resume after the same update, or they would average what does not belong together."""
    if world.size == 1:
        return
    ends = torch.tensor([step, -step], device=device)
    dist.all_reduce(ends, op=dist.ReduceOp.MAX)
    last, first = int(ends[0]), -int(ends[1])
    if first != last:
        raise ValueError(
            f"some processes would resume after update {first}, others after {last}: "
            "--out must be one folder that all machines share"
        )


def wait_for_all(world: World) -> None:
    if world.size > 1:
        dist.barrier()


def pick_device(name: str, world_size: int = 1, local_rank: int = 0) -> torch.device:
    """auto: CUDA, then MPS, then the CPU; one GPU per local process."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device {name!r} is not known: choose auto, cpu, cuda, cuda:1 or mps") from None
    if device.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device {name!r} cannot train or evaluate: choose auto, cpu, cuda, cuda:1 or mps")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but this machine has no CUDA: choose auto or cpu")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device {name!r} was asked for, but this machine has no MPS: choose auto or cpu")
    if device.type == "cuda":
        index = local_rank if world_size > 1 else (device.index or 0)
        if index >= torch.cuda.device_count():
            raise ValueError(f"device cuda:{index} does not exist: this machine has {torch.cuda.device_count()} GPUs")
        device = torch.device("cuda", index)
        torch.cuda.set_device(device)
    return device


def describe(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({torch.get_num_threads()} threads)" if device.type == "cpu" else str(device)
