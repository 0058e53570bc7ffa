"""Requests to a page that is served, without a browser."""

from __future__ import annotations

import http.client
import json
from typing import Any


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if method == "POST" and "transfer_encoding" not in headers:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body if "transfer_encoding" not in headers else None)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def group(port: int, *asked: Any) -> str:
    """What the page's endpoint for programs answers."""
    body = json.dumps({"data": asked}).encode()
    status, content = ask(port, "POST", "/gradio_api/call/group", body, content_type="application/json")
    if status != 200:
        return content.decode()
    event = json.loads(content)["event_id"]
    return ask(port, "GET", f"/gradio_api/call/group/{event}")[1].decode()
