"""Where the page listens, checked before its server is loaded."""

from __future__ import annotations

import ipaddress
import socket


def check_address(host: str, port: int | None) -> None:
    """Whether one can listen there at all: the server itself would try for a long time, and say it in many lines."""
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"port={port} does not exist: choose one from 1 to 65535, or none for the first free one")
    try:
        family = socket.getaddrinfo(host, None)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port or 0))
    except (OSError, UnicodeError) as problem:
        where = host if port is None else f"{host}, port {port}"
        reason = getattr(problem, "strerror", None) or problem
        raise OSError(
            f"the page cannot listen on {where} ({reason}): choose another host or port, or neither"
        ) from None


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
