"""Keeps a Python process to this machine: to reach another one, or only to look up its name, raises OSError.

conftest.py imports it and puts its folder on PYTHONPATH, so that it holds in every fixture, every thread and every
Python process that a test starts. An audit hook sees what a library does through a socket however it got hold of it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from typing import Any


def leaves_the_machine(host: Any) -> bool:
    name = (host.decode(errors="replace") if isinstance(host, bytes) else str(host or "")).split("%")[0]
    if name in ("", "localhost", socket.gethostname()):
        return False
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return True
    return not (address.is_loopback or address.is_unspecified)


def watch(event: str, args: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in ("socket.connect", "socket.sendto"):
        host = args[1][0] if isinstance(args[1], tuple) and args[1] else None  # a Unix socket's address is a path
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if leaves_the_machine(host):
        if "TAGGERNET_REACHED_LOG" in os.environ:  # a library may swallow the error: its attempt is known all the same
            with open(os.environ["TAGGERNET_REACHED_LOG"], "a") as log:
                print(host, file=log)
        raise OSError(f"a test tried to reach {host}: tests may only talk to this machine")


sys.addaudithook(watch)
