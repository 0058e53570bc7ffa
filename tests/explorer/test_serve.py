"""The little web server: what it hands out, to whom, and what it says where it cannot listen."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from taggernet.explorer.bundle import Bundle
from taggernet.explorer.serve import POLICY, Served, check_address, listen, serve

FILES = Bundle({"index.html": b"<p>page</p>", "ui/a.js": b"1", "models/0/model.safetensors": b"\0" * 70_000})


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    page = serve(FILES, host="127.0.0.1", port=None, open_browser=False, block=False)
    yield page
    page.close()


def ask(page: Served, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", int(page.url.rstrip("/").rpartition(":")[2]), timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/index.html?x=1", "text/html"), ("/ui/a.js", "text/javascript")]
)
def test_files_come_with_their_kind_and_the_policy(path: str, kind: str, served: Served) -> None:
    status, content, headers = ask(served, path)
    assert status == 200
    assert content
    assert headers["Content-Type"].startswith(kind)
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_download_that_is_broken_off_is_no_error(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    handle = served.server.handle_error
    for error, said in ((BrokenPipeError(), False), (ConnectionResetError(), False), (RuntimeError("odd"), True)):
        try:
            raise error
        except Exception:
            handle(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
        assert ("Traceback" in capsys.readouterr().err) == said


def test_the_policy_names_no_other_host() -> None:
    assert "http" not in POLICY
    assert "*" not in POLICY
    assert "unsafe-inline" not in POLICY


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/../serve.py", "/%2e%2e/serve.py", "//etc/passwd", "/ui", "/ui/", "/ui/../../x", "/\0", "/%00"],
)
def test_no_file_but_its_own_is_served(path: str, served: Served) -> None:
    try:
        assert ask(served, path)[0] == 404
    except (http.client.InvalidURL, ValueError):
        assert not path.isprintable()  # no client sends it


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_uploaded(method: str, served: Served) -> None:
    assert ask(served, "/", method)[0] == 501


def test_a_head_has_no_body(served: Served) -> None:
    status, content, headers = ask(served, "/", "HEAD")
    assert (status, content, headers["Content-Length"]) == (200, b"", "11")


HOSTS = {
    "localhost:80": 200,
    "127.0.0.1": 200,
    "[::1]:7860": 200,
    "evil.example": 421,
    "127.0.0.1.evil.example:80": 421,
}


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_other_host_names_are_refused(host: str, status: int, served: Served) -> None:
    """A page elsewhere whose name leads here (DNS rebinding) reads nothing."""
    assert ask(served, "/", Host=host)[0] == status


def test_the_page_is_for_this_machine_unless_another_host_is_named(served: Served) -> None:
    assert served.server.server_address[0] == "127.0.0.1"
    assert served.url.startswith("http://127.0.0.1:")


def test_many_visitors_at_once(served: Served) -> None:
    wrong: list[object] = []

    def visit() -> None:
        for _ in range(10):
            status, content, _ = ask(served, "/models/0/model.safetensors")
            if (status, len(content)) != (200, 70_000):
                wrong.append((status, len(content)))

    visitors = [threading.Thread(target=visit) for _ in range(8)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert wrong == []


def test_a_busy_port_is_one_sentence_and_the_next_free_one_is_found() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1, port {port} \(.*\): choose another host"):
            listen("127.0.0.1", port, FILES)
    first = listen("127.0.0.1", None, FILES)
    second = listen("127.0.0.1", None, FILES)
    assert first.server_address[1] < second.server_address[1]
    first.server_close()
    second.server_close()


@pytest.mark.parametrize("port", [0, 65536, -1])
def test_a_port_that_does_not_exist_is_one_sentence(port: int) -> None:
    with pytest.raises(ValueError, match=f"port={port} does not exist: choose one from 1 to 65535"):
        check_address("127.0.0.1", port)


def test_a_host_that_is_not_this_machine_is_one_sentence() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1"):
        check_address("192.0.2.1", None)


def test_it_serves_until_it_is_interrupted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            serve(FILES, host="127.0.0.1", port=None, open_browser=False, block=True)
    said = capsys.readouterr().out
    assert "The explorer is at http://127.0.0.1:" in said
    port = int(said.partition("127.0.0.1:")[2].partition("/")[0])
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):  # noqa: PT011
        pass
