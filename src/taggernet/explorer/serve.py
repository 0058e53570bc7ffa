"""The page on this machine: the standard library's web server, which hands out the files of a bundle, no other."""

from __future__ import annotations

import ipaddress
import mimetypes
import socket
import sys
import threading
import webbrowser
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from posixpath import normpath
from typing import Any
from urllib.parse import unquote, urlsplit

from taggernet.explorer.bundle import Bundle

FIRST_PORT, PORTS = 7860, 100
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {".js": "text/javascript", ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Served:
    """A page that is being served."""

    url: str
    server: ThreadingHTTPServer

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def serve(files: Bundle, *, host: str, port: int | None, open_browser: bool, block: bool) -> Served:
    """Serve the page until Ctrl-C, or return at once with ``block=False``."""
    server = listen(host, port, files)
    shown = f"[{host}]" if ":" in host else host
    page = Served(f"http://{shown}:{server.server_address[1]}/", server)
    worker = threading.Thread(target=server.serve_forever, daemon=True)
    worker.start()
    if open_browser:
        webbrowser.open(page.url)
    if block:
        print(f"The explorer is at {page.url} (Ctrl-C ends it)", flush=True)
        try:
            worker.join()
        finally:
            page.close()
    return page


def listen(host: str, port: int | None, files: Bundle) -> ThreadingHTTPServer:
    """A server on this port, or on the first free one from 7860."""
    check_address(host, port)
    handler = _handler(files, is_loopback(host))

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_port = False
        address_family = socket.getaddrinfo(host, None)[0][0]

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A browser that breaks off a download, as by reloading the page, is no error."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    problem: OSError | None = None
    for number in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else [port]:
        try:
            return Server((host, number), handler)
        except OSError as found:
            problem = found
    raise _cannot_listen(host, port, problem) from None


def check_address(host: str, port: int | None) -> None:
    """Whether there can be such an address: known before a model is loaded."""
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"port={port} does not exist: choose one from 1 to 65535, or none for the first free one")
    try:
        with socket.socket(socket.getaddrinfo(host, None)[0][0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port or 0))
    except (OSError, UnicodeError) as problem:
        raise _cannot_listen(host, port, problem) from None


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _cannot_listen(host: str, port: int | None, problem: Exception | None) -> OSError:
    where = host if port is None else f"{host}, port {port}"
    reason = getattr(problem, "strerror", None) or problem
    return OSError(f"the page cannot listen on {where} ({reason}): choose another host or port, or neither")


def _handler(files: Bundle, loopback: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "taggernet", ""
        timeout = 30

        def do_GET(self) -> None:
            if loopback and not is_loopback(_host_name(self.headers.get("Host", ""))):
                self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"This page is for this machine only.", "text/plain")
                return
            path = normpath(unquote(urlsplit(self.path).path)).lstrip("/")
            name = "index.html" if path in ("", ".") else path
            content = files.read(name)
            if content is None:
                self._answer(HTTPStatus.NOT_FOUND, b"There is no such file.", "text/plain")
                return
            ending = name[name.rfind(".") :]
            kind = TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            self._answer(HTTPStatus.OK, content, kind)

        do_HEAD = do_GET

        def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind + ("; charset=utf-8" if kind.startswith("text/") else ""))
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a page that works has nothing to say in the terminal."""

    return Handler


def _host_name(header: str) -> str:
    """The host of a Host header, without its port."""
    return header[1 : header.find("]")] if header.startswith("[") else header.partition(":")[0]
