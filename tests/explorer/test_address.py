"""Where the page listens."""

from __future__ import annotations

import inspect

import pytest

from taggernet import Tagger, TaggerConfig, cli
from taggernet.explorer import launch
from taggernet.explorer.address import is_loopback

MODEL = Tagger(TaggerConfig(shape=(10, 10), widths=(8, 4)))


@pytest.mark.parametrize("port", [0, -1, 65536, 99_999_999])
def test_a_port_that_cannot_be_is_refused(port: int) -> None:
    with pytest.raises(ValueError, match="choose one from 1 to 65535"):
        launch(MODEL, port=port, open_browser=False)


def test_the_page_is_for_this_machine_unless_another_host_is_named() -> None:
    assert inspect.signature(launch).parameters["host"].default == "127.0.0.1"
    assert cli.Explore().host == "127.0.0.1"
    assert is_loopback("127.0.0.1")
    assert not is_loopback("0.0.0.0")
