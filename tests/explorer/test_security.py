"""What the page refuses: other files, other hosts, large requests, numbers out of bounds."""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's table of sockets")
def test_it_listens_on_the_loopback_only(server_port: int) -> None:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{server_port:04X}")]
    assert listening == [f"0100007F:{server_port:04X}"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((0, 0.0, 9, 5, 0), "groups=9 is out of range: give an integer from 2 to 8"),
        ((0, 0.0, 1000000, 5, 0), "give an integer from 2 to 8"),
        ((0, 0.0, 3, 1000000, 0), "iterations=1000000 is out of range: give an integer from 1 to 10"),
        ((0, 0.0, 3, 0, 0), "give an integer from 1 to 10"),
        ((0, 0.9, 3, 5, 0), "noise=0.9 is out of range"),
        ((-1, 0.0, 3, 5, 0), "give an integer from 0 to 999"),
        (("../../etc/passwd", 0.0, 3, 5, 0), "is not an integer"),
        ((0, 0.0, [3], 5, 0), "groups=[3] is not an integer"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_one_sentence(server_port: int, asked: Any, sentence: str) -> None:
    answer = group(server_port, *asked)
    assert "event: error" in answer
    assert sentence in answer
    assert "Traceback" not in answer


def test_questions_queue_and_all_are_answered(server_port: int) -> None:
    wrong: list[str] = []
    seconds: list[float] = []

    def client(first: int) -> None:
        for scene in range(first, first + 4):
            began = time.monotonic()
            answer = group(server_port, scene, 0.1, 3, 5, 0)
            seconds.append(time.monotonic() - began)
            if "event: complete" not in answer or "tn-stage" not in answer:
                wrong.append(answer[:200])

    clients = [threading.Thread(target=client, args=(10 * number,)) for number in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert not wrong, wrong[0]
    assert len(seconds) == 32
    assert statistics.median(seconds) < 10
