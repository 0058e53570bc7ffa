"""The explorer: a page that runs a model in the browser. Drag a shape and the groups follow.

``launch`` serves it on this machine. ``page/`` is the page itself: HTML, CSS and JavaScript, with nothing to build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from taggernet.data import Scenes
    from taggernet.explorer.serve import Served
    from taggernet.tagger import Tagger

__all__ = ["launch"]


def launch(
    model: Tagger | str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    scenes: Scenes | None = None,
    block: bool = True,
) -> Served:
    """Open the page for a model, or for the folder of one.

    ``scenes`` are shown in place of the built-in ones, and are needed where the model is of none of the paper's data
    sets and its inputs cannot be drawn. ``port`` None takes the first free one from 7860. ``block=False`` returns the
    running page, with ``url`` and ``close``, instead of waiting for Ctrl-C.
    """
    from taggernet.explorer.bundle import bundle
    from taggernet.explorer.serve import check_address, serve

    check_address(host, port)
    return serve(bundle(model, scenes), host=host, port=port, open_browser=open_browser, block=block)
