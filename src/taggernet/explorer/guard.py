"""What stands before gradio: the few addresses the page needs, small requests, and nothing from elsewhere.

gradio can take uploads, hand out files and fetch from other servers. The page does none of these, so their addresses
do not exist here; a browser is told the same by a content security policy.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_REQUEST = 64 * 1024
"""Bytes. The largest question is a drawing: one per element."""
WHOLE = ("/", "/config", "/theme.css", "/favicon.ico", "/gradio_api/info", "/gradio_api/startup-events")
BELOW = ("/assets/", "/static/", "/svelte/", "/gradio_api/heartbeat/", "/gradio_api/queue/", "/gradio_api/call/")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'; font-src 'self' data:; object-src 'none'; "
        "frame-ancestors 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def allowed(path: str) -> bool:
    """Whether an address is one of the page's own, however it is spelled."""
    plain = unquote(unquote(path)).replace("\\", "/")
    if "\0" in plain or ".." in plain.split("/") or posixpath.normpath(plain) != (plain.rstrip("/") or "/"):
        return False
    return plain in WHOLE or plain.rstrip("/") in WHOLE or plain.startswith(BELOW)


class Guard:
    """ASGI middleware. ``loopback`` also refuses requests made to another host name (DNS rebinding)."""

    def __init__(self, app: Application, loopback: bool = True) -> None:
        self.app, self.loopback = app, loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return None
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal:
            return await _refuse(send, *refusal)

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        return await self.app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if self.loopback and _host_name(headers.get("host", "")) not in LOOPBACK:
            return 403, "this page answers to its own machine only"
        raw = scope.get("raw_path") or scope["path"].encode()
        if not allowed(scope["path"]) or not allowed(raw.decode("latin-1")):
            return 404, "there is nothing here"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "this cannot be done here"
        if scope["method"] == "POST":
            length = headers.get("content-length", "")
            if not length.isdigit():
                return 411, "say how long the request is"
            if int(length) > LARGEST_REQUEST:
                return 413, f"requests may hold at most {LARGEST_REQUEST} bytes"
        return None


def _host_name(host: str) -> str:
    """The Host header without its port."""
    return host.rsplit(":", 1)[0] if host.rsplit(":", 1)[-1].isdigit() else host


async def _refuse(send: Send, status: int, reason: str) -> None:
    start = {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]}
    await send(start)
    await send({"type": "http.response.body", "body": reason.encode()})
