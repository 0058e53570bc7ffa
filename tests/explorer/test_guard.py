"""What stands before the server: other files, other hosts and large requests are refused."""

from __future__ import annotations

import http.client
import json

import pytest
from page_client import ask

from taggernet.explorer.guard import LARGEST_REQUEST, allowed

TRAVERSALS = [
    "/file=/etc/passwd",
    "/gradio_api/file=/etc/passwd",
    "/gradio_api/file=../../../../etc/passwd",
    "/gradio_api/file/etc/passwd",
    "/gradio_api/proxy=http://127.0.0.1:1/",
    "/gradio_api/stream/a/1/1/playlist.m3u8",
    "/gradio_api/custom_component/1/client/component/../../../../../etc/passwd",
    "/static/../../../../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/%252e%252e/%252e%252e/etc/passwd",
    "/assets/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/assets/..\\..\\..\\etc\\passwd",
    "/assets//etc/passwd",
    "/svelte/../../routes.py",
    "/assets/%00/etc/passwd",
    "/gradio_api/queue/../file=/etc/passwd",
    "/monitoring",
    "/gradio_api/upload_progress?upload_id=x",
    "/docs",
    "/openapi.json",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_file_but_its_own_is_served(server_port: int, path: str) -> None:
    status, content = ask(server_port, "GET", path)
    assert status in (400, 404)
    assert b"root:" not in content
    assert b"import" not in content


@pytest.mark.parametrize("path", TRAVERSALS)
def test_such_addresses_do_not_exist(path: str) -> None:
    assert not allowed(path)


@pytest.mark.parametrize("path", ["/", "/config", "/assets/index.js", "/gradio_api/queue/join", "/gradio_api/info/"])
def test_the_pages_own_addresses_exist(path: str) -> None:
    assert allowed(path)


def test_nothing_can_be_uploaded(server_port: int) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'
    for path in ("/upload", "/gradio_api/upload"):
        assert ask(server_port, "POST", path, form, content_type="multipart/form-data; boundary=x")[0] == 404


def test_large_requests_are_refused(server_port: int) -> None:
    large = json.dumps({"data": ["x" * LARGEST_REQUEST]}).encode()
    assert ask(server_port, "POST", "/gradio_api/queue/join", large, content_type="application/json")[0] == 413
    assert ask(server_port, "POST", "/gradio_api/queue/join", transfer_encoding="chunked")[0] == 411


def test_other_host_names_are_refused(server_port: int) -> None:
    assert ask(server_port, "GET", "/", host=f"evil.example:{server_port}")[0] == 403
    assert ask(server_port, "GET", "/", host=f"localhost:{server_port}")[0] == 200


def test_a_browser_is_told_to_stay(server_port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server_port, timeout=20)
    connection.request("GET", "/")
    answer = connection.getresponse()
    policy = answer.getheader("content-security-policy") or ""
    answer.read()
    connection.close()
    assert "default-src 'self'" in policy
    assert "http" not in policy
