"""What one client may take of a service: time for headers, connections, memory for bodies."""

import asyncio
import logging
import socket
import struct
import threading

import httpx
import pytest
import uvicorn

from toolmem.memory.toolmem import ToolMem
from toolmem.server import http
from toolmem.server.access import Access

HEAD = b"POST /operations/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GONE = (b"", "reset")


@pytest.fixture
def port(tmp_path, monkeypatch):
    """A service with small limits, in a thread."""
    limits = {"MAX_UNFINISHED": 3, "MAX_BODIES": 200_000, "HEADERS_TIMEOUT": 0.5}
    for name, limit in limits.items():
        monkeypatch.setattr(http, name, limit)
    with ToolMem(tmp_path / "m.db") as memory, socket.create_server(("127.0.0.1", 0)) as listening:
        app = http.Bounded(http.application(memory, Access()))
        config = uvicorn.Config(app, http=http.BoundedProtocol, log_config=None)
        server = uvicorn.Server(config)
        work = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        work.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        work.join()


def connect(port, data=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(data)
    return connection


def received(connection):
    """The first bytes of an answer; nothing where the connection was cut."""
    try:
        return connection.recv(12)
    except ConnectionError:
        return "reset"


def is_answered(port):
    return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost: local", HEAD])
def test_headers_that_do_not_come_in_time_end_the_connection(port, begun):
    assert received(connect(port, begun)) in GONE
    assert is_answered(port)


def test_of_very_many_unfinished_requests_the_oldest_are_cut(port, monkeypatch):
    monkeypatch.setattr(http, "HEADERS_TIMEOUT", 1_000)
    upload = connect(port, HEAD + b"Content-Length: 8\r\n\r\n")
    idle = [connect(port, b"GET /health") for _ in range(5)]
    assert [received(each) in GONE for each in idle[:3]] == [True] * 3
    assert is_answered(port)
    idle[-1].sendall(b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert received(idle[-1]) == b"HTTP/1.1 200"
    upload.sendall(b"no JSON!")
    assert received(upload) == b"HTTP/1.1 422"


def test_bodies_of_all_requests_together_are_bounded(port):
    head = HEAD + b"Content-Length: 150000\r\n\r\n"
    first, second = connect(port, head + b" " * 140_000), connect(port, head + b" " * 149_999)
    assert {received(second)} == {b"HTTP/1.1 503"}
    first.sendall(b" " * 10_000)
    assert received(first) == b"HTTP/1.1 422"
    third = connect(port, head + b" " * 150_000)  # what was held is free again
    assert received(third) == b"HTTP/1.1 422"


@pytest.mark.parametrize("path", [b"/operations/add", b"/rpc", b"/w/default/rule"])
def test_a_client_that_hangs_up_is_no_error(port, caplog, path):
    caplog.set_level(logging.INFO)
    head = HEAD.replace(b"/operations/add", path) + b"Content-Length: 99\r\n\r\n"
    connection = connect(port, head + b"[1,")
    assert is_answered(port)  # it has been read by now
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    while "hung up" not in caplog.text:
        assert is_answered(port)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
