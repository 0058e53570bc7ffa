"""The page as it is served."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's table of sockets")
def test_it_listens_on_the_loopback_only(server_port: int) -> None:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{server_port:04X}")]
    assert listening == [f"0100007F:{server_port:04X}"]
