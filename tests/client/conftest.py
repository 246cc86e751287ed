"""A real service for the client, and one that misbehaves as it is told."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from toolmem.testing.service_process import ServiceProcess

TOKEN = "a-token-for-tests-83b1"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """`toolmem serve` with a token; tests keep apart by their workspaces."""
    with ServiceProcess(tmp_path_factory.mktemp("service"), token=TOKEN) as service:
        yield service


@pytest.fixture(autouse=True)
def _no_token_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLMEM_TOKEN", raising=False)


class Received(NamedTuple):
    head: str
    body: Any


class Misbehaving:
    """Answers requests one after the other: each entry of `script` is what happens to one request.

    "cut": closed without an answer; "last": the same, and nothing listens any more; "half": half an answer;
    "silence": no answer; bytes: sent as they are;
    (status, body): an HTTP answer with a JSON body.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.received: list[Received] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                if self._one(connection) == "last":
                    self._socket.close()
                    return

    def _one(self, connection: socket.socket) -> Any:
        """Answers what happened to the request."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode()
        length = next((int(line.split(":")[1]) for line in text.lower().splitlines() if "content-length" in line), 0)
        while len(body) < length:
            body += connection.recv(65536)
        self.received.append(Received(text, json.loads(body) if body else None))
        what = self.script.pop(0) if self.script else "cut"
        if what == "silence":
            self._stopped.wait(5)
        elif what == "half":
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"answer": "Succ')
        elif isinstance(what, bytes):
            connection.sendall(what)
        elif isinstance(what, tuple):
            status, answer = what
            content = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
            connection.sendall(head + content)
        return what

    def stop(self) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def misbehaving() -> Iterator[Any]:
    started: list[Misbehaving] = []

    def start(*script: Any) -> Misbehaving:
        started.append(Misbehaving(*script))
        return started[-1]

    yield start
    for server in started:
        server.stop()
