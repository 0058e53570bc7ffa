"""From a model to a running page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from taggernet.data import Scenes
from taggernet.explorer.address import is_loopback
from taggernet.explorer.canvas import asset
from taggernet.explorer.guard import LARGEST_REQUEST, Guard
from taggernet.explorer.loader import open_model, own_scenes
from taggernet.explorer.page import build
from taggernet.explorer.quiz import Contest
from taggernet.explorer.scenes import TextureScenes, source_for
from taggernet.explorer.session import Explorer
from taggernet.explorer.session_limit import SESSIONS, forget_old_visitors
from taggernet.tagger import Tagger

SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def theme() -> Any:
    """gradio's plain theme in the page's greys, with the fonts that the visitor's machine has."""
    plain = gr.themes.Base(primary_hue="indigo", neutral_hue="zinc", font=SANS, font_mono=MONO)
    return plain.set(
        body_background_fill="#f6f6f8",
        body_background_fill_dark="#131317",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1d1d23",
        block_border_color="#e2e2e7",
        block_border_color_dark="#33333d",
        block_label_text_color="#5b5b66",
        block_title_text_color="#18181b",
        block_title_text_color_dark="#f4f4f6",
        block_title_text_weight="600",
        block_title_text_size="14px",
        button_primary_background_fill="#3f3f94",
        button_primary_background_fill_hover="#33337d",
        button_primary_background_fill_dark="#5c5cc9",
        button_primary_background_fill_hover_dark="#6d6ddb",
        button_secondary_background_fill="#ffffff",
        button_secondary_background_fill_hover="#ececf1",
        button_secondary_background_fill_dark="#26262e",
        button_secondary_background_fill_hover_dark="#32323c",
        button_secondary_border_color="#d3d3db",
        button_secondary_border_color_dark="#41414d",
        button_border_width="1px",
        button_border_width_dark="1px",
        button_large_radius="10px",
        button_small_radius="9px",
        button_small_text_size="14px",
        button_small_padding="8px 12px",
        color_accent="#3f3f94",
        border_color_accent="#3f3f94",
        checkbox_background_color_selected="#3f3f94",
        checkbox_background_color_selected_dark="#8f8ff0",
        slider_color="#3f3f94",
        slider_color_dark="#8f8ff0",
    )


@dataclass(frozen=True)
class Page:
    """A page that is being served."""

    url: str
    blocks: Any

    def close(self) -> None:
        self.blocks.close(verbose=False)


def page_for(model: Tagger | str | Path, scenes: Scenes | None = None) -> Any:
    """The page for a model, not yet served."""
    tagger, name, recipe = open_model(model)
    scenes = own_scenes(model) if scenes is None else scenes
    source = source_for(tagger.config, scenes, digits=1 if recipe.startswith("texture-mnist-1") else 2)
    two_digits = isinstance(source, TextureScenes) and source.digits == 2
    contest = Contest(source.test, tagger) if two_digits and source.test is not None else None
    return build(Explorer(tagger, source, name), contest)


def serve(
    model: Tagger | str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    scenes: Scenes | None = None,
    block: bool = True,
) -> Page:
    """Serve the page until Ctrl-C, or return at once with ``block=False``."""
    blocks = page_for(model, scenes)
    _, url, _ = blocks.launch(
        server_name=host,
        server_port=port,
        inbrowser=open_browser,
        prevent_thread_lock=True,
        quiet=True,
        share=False,
        show_error=False,
        footer_links=[],
        max_file_size=LARGEST_REQUEST,
        enable_monitoring=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        state_session_capacity=SESSIONS,
        theme=theme(),
        css=asset("style.css"),
        app_kwargs={
            "middleware": [Middleware(Guard, loopback=is_loopback(host))],
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        },
    )
    forget_old_visitors(blocks)
    page = Page(url, blocks)
    if block:
        print(f"The page is at {url} (Ctrl-C ends it)")
        blocks.block_thread()
    return page
