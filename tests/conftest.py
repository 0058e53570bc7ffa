"""What every test runs under: no display, no network, checked array shapes, reproducible examples."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import jaxtyping
import matplotlib
import pytest
import torch
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")

# The models here are small: on a busy machine threads that wait for each other make them far slower than one.
torch.set_num_threads(1)

# derandomize: a failure seen in CI is the failure seen at home. The soak profile looks further.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("TAGGERNET_HYPOTHESIS_PROFILE", "ci"))

# Must come before the first import of taggernet. Off where torch.compile is tested, which cannot trace it.
if os.environ.get("TAGGERNET_NO_TYPECHECK") != "1":
    jaxtyping.install_import_hook("taggernet", "beartype.beartype")


def _leaves_the_machine(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return False
    host = str(address[0]).split("%")[0]
    if host in ("", "localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that reaches out, so that none passes only where a server happens to answer."""
    connect, connect_ex, lookup = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse(address: object) -> None:
        raise OSError(f"a test tried to reach {address}: tests may only talk to this machine")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if _leaves_the_machine(self.family, address):
            refuse(address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if _leaves_the_machine(self.family, address):
            refuse(address)
        return connect_ex(self, address)

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and _leaves_the_machine(socket.AF_INET, (name,)):
            refuse(name)
        return lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)


@pytest.fixture
def without_typecheck() -> Iterator[None]:
    """Call as a user does: beartype would otherwise refuse bad input before our own sentence is raised."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
