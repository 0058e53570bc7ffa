"""The guards of conftest.py hold."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import torch

from taggernet.metrics.contingency import Contingency, entropy


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80)])
def test_an_outside_address_cannot_be_reached(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as sock:
        with pytest.raises(OSError, match="only talk to this machine"):
            sock.connect(address)
        with pytest.raises(OSError, match="only talk to this machine"):
            sock.connect_ex(address)


def test_an_outside_name_is_not_even_looked_up() -> None:
    with pytest.raises(urllib.error.URLError, match="only talk to this machine"):
        urllib.request.urlopen("http://taggernet.invalid/")


def test_neither_can_a_child_process_nor_a_message_without_a_connection() -> None:
    asked = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    ended = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    assert "only talk to this machine" in ended.stderr
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        with pytest.raises(OSError, match="only talk to this machine"):
            sock.sendto(b"hello", ("192.0.2.1", 53))


@pytest.fixture(scope="module")
def reached() -> str:
    with socket.socket() as sock:
        try:
            sock.connect(("192.0.2.1", 80))
        except OSError as refusal:
            return str(refusal)
    return "an answer"


def test_nor_a_fixture_that_outlives_a_test(reached: str) -> None:
    assert "only talk to this machine" in reached


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(("localhost", server.getsockname()[1]), timeout=5):
            pass


@pytest.mark.skipif(os.environ.get("TAGGERNET_NO_TYPECHECK") == "1", reason="the import hook is switched off")
def test_shapes_in_annotations_are_checked() -> None:
    with pytest.raises(TypeError, match="entropy"):
        entropy(torch.ones(3, 2, dtype=torch.int64), torch.ones(4, dtype=torch.int64))
    with pytest.raises(TypeError, match="Contingency"):
        Contingency(torch.ones(3, 2, dtype=torch.int64))
