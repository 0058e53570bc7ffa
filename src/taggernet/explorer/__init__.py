"""The page: watch groups form, take one away, and see whether you read textured digits better than the network.

``launch`` opens it. The parts that need no browser (``scenes``, ``looking``, ``contest``) do not import gradio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from taggernet.data import Scenes
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
) -> Any:
    """Open the page for a model, or for the folder of one.

    ``scenes`` are shown as the test set in place of the built-in ones, and are needed where the model is of none of
    the paper's data sets and its inputs cannot be drawn. ``port`` None takes the first free one from 7860.
    ``block=False`` returns the running page, with ``url`` and ``close``, instead of waiting for Ctrl-C.
    """
    from taggernet.explorer.address import check_address
    from taggernet.explorer.loader import check_model

    check_address(host, port)
    check_model(model)
    try:
        from taggernet.explorer.app import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "gradio":
            raise
        raise OSError("the page needs gradio, which is not installed: pip install 'taggernet[web]'") from None
    return serve(model, host=host, port=port, open_browser=open_browser, scenes=scenes, block=block)
