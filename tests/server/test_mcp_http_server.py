"""`toolmem mcp mcp.transport=streamable-http`: a real process, the SDK's client, and requests by hand."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from toolmem.cli import main
from toolmem.server.http.limits import Limits
from toolmem.server.mcp.http import read_frame

SARAH = "never email Sarah at sarah@example.com"
TOKEN = "correct-horse-battery-staple"


class Server:
    """One process; `url` once it answers."""

    def __init__(self, folder: Path, *overrides: str, env: dict[str, str] | None = None) -> None:
        self.log = folder / "mcp.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "toolmem", "mcp", "mcp.transport=streamable-http", "mcp.port=0", *overrides],
                cwd=folder,
                stderr=log,
                env={**os.environ, **(env or {})},
            )
        self.url = self._announced()

    def _announced(self) -> str:
        for _ in range(600):
            for line in self.log.read_text().splitlines():
                if line.startswith("toolmem serves MCP at "):
                    return line.split()[-1]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError("no address was announced")

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=300)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("http"))
    yield server
    assert server.end() == 0
    log = server.log.read_text()
    assert "Traceback" not in log
    assert SARAH not in log
    lines = [json.loads(line) for line in log.splitlines()[1:]]
    assert {"path", "status", "ms"} <= set(lines[0])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("guarded"), "mcp.host=0.0.0.0", env={"TOOLMEM_TOKEN": TOKEN})
    server.url = server.url.replace("0.0.0.0", "127.0.0.1")
    yield server
    assert server.end() == 0
    assert TOKEN not in server.log.read_text()


@pytest.fixture
def own_logging() -> Iterator[None]:
    """What the command sets up for its process is undone: here it is the tests' process."""
    loggers = [logging.getLogger(name) for name in ("toolmem", "uvicorn", "asyncio", "mcp", "toolmem.server.access")]
    before = [(each, each.handlers, each.propagate, each.level) for each in loggers]
    yield
    for each, each.handlers, each.propagate, level in before:
        each.setLevel(level)


def record(number: int) -> dict[str, Any]:
    return {"tool_name": "search", "input": {"q": f"rain {number}"}, "output": '["umbrella"]', "success": True}


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


def post(server: Server, headers: dict[str, str] | None = None, **given: Any) -> httpx.Response:
    body = given or {"json": LIST}
    return httpx.post(server.url, headers={**ACCEPT, **(headers or {})}, timeout=30, trust_env=False, **body)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_ages_of_the_protocol_are_served_with_progress(plain, mode):
    told: list[float] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with Client(plain.url, mode=mode) as client:
        records = [record(n) for n in range(50)]
        given = {"workspace_id": mode, "tool_call_results": records}
        answer = await client.call_tool("add_tool_call_result", given, progress_callback=watch)
        assert answer.structured_content["success"] is True
        assert set(answer.structured_content) == {"answer", "success", "metadata"}
        assert told == sorted(set(told))
        assert told[-1] == 2.0
        assert (await client.read_resource(f"toolmem://{mode}/tools/search")).contents[0].text.startswith("# `search`")


async def test_two_clients_at_once_lose_nothing(plain):
    async def add(first: int) -> None:
        async with Client(plain.url) as client:
            for number in range(first, first + 10):
                given = {"workspace_id": "both", "tool_call_results": [record(number)]}
                assert not (await client.call_tool("add_tool_call_result", given)).is_error

    await asyncio.gather(add(0), add(100))
    async with Client(plain.url) as client:
        got = await client.call_tool("retrieve_tool_memory", {"workspace_id": "both", "tool_names": "search"})
        assert got.structured_content["metadata"]["memory_list"][0]["metadata"]["lifetime"]["calls"] == 20


async def test_what_one_client_notes_the_next_one_reads(plain):
    async with Client(plain.url) as client:
        rule = {"workspace_id": "safety", "tool_name": "send_email", "rule": SARAH, "priority": "high"}
        assert not (await client.call_tool("memory_tools_put", rule)).is_error
    async with Client(plain.url) as client:
        rules = (await client.read_resource("toolmem://safety/rules")).contents[0].text
        assert f"### `send_email`\n- [high] {SARAH}" in rules
        prompt = await client.get_prompt("tool_memory", {"workspace_id": "safety"})
        assert prompt.messages[0].content.text == rules


def test_a_page_of_another_name_or_origin_stays_out(plain):
    assert post(plain).status_code == 200
    assert post(plain, {"Host": "evil.example"}).status_code == 403
    assert post(plain, {"Origin": "https://evil.example"}).status_code == 403
    for origin in (
        "http://127.0.0.1:1.evil.example",
        "http://localhost.evil.example",
        "http://[::1].evil.example",
        "null",
    ):
        assert post(plain, {"Origin": origin}).status_code == 403, origin
    assert post(plain, {"Host": "[::1].evil.example"}).status_code == 403
    answer = post(plain, {"Origin": "http://localhost:3000"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_what_is_no_request_of_the_protocol_is_refused(plain):
    assert post(plain, content=b"{not json", headers={"Content-Type": "application/json"}).status_code == 400
    assert post(plain, content=b"x", headers={"Content-Type": "text/plain"}).status_code == 400
    assert post(plain, content=b"[" * 100_000, headers={"Content-Type": "application/json"}).status_code == 400
    big = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "' + b"a" * 10_000_000 + b'"}}'
    assert post(plain, content=big, headers={"Content-Type": "application/json"}).status_code == 413
    for method in ("GET", "DELETE"):
        answer = httpx.request(method, plain.url, headers=ACCEPT, timeout=30, trust_env=False)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert httpx.get(plain.url.replace("/mcp", "/other"), timeout=30, trust_env=False).status_code == 404
    assert post(plain).status_code == 200


@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
def test_without_the_token_nobody_comes_in(guarded, given):
    answer = post(guarded, given)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text


async def test_with_the_token_any_name_of_the_server_will_do(guarded):
    assert post(guarded, {"Authorization": f"Bearer {TOKEN}", "Host": "tools.example:8001"}).status_code == 200
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as carrier,
        Client(streamable_http_client(guarded.url, http_client=carrier)) as client,
    ):
        assert not (await client.call_tool("memory_recall", {})).is_error


def test_an_address_that_lets_others_in_needs_a_token(capsys, monkeypatch, own_logging):
    monkeypatch.delenv("TOOLMEM_TOKEN", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "mcp.transport=http", "mcp.host=0.0.0.0", "mcp.port=0", "llm.default.backend=dashscope"])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert "DASHSCOPE_API_KEY" in said.err  # every problem at once
    assert "mcp.host: 0.0.0.0 lets others in, and no token is configured" in said.err


def test_a_port_that_is_taken_ends_the_start(capsys, own_logging):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["mcp", "mcp.transport=sse", f"mcp.port={port}"])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert f"mcp.port: {port} on 127.0.0.1 is taken by another program, perhaps another toolmem; mcp.port=" in said.err
    assert "'sse' is no longer part of the protocol; serving streamable HTTP" in said.err


@pytest.mark.parametrize("frame_id", ["NaN", "null", "[1]", "1.5", "true", "{}", "Infinity", "1e999"])
def test_a_request_without_a_proper_id_is_answered_and_not_taken_for_a_notification(plain, frame_id):
    body = f'{{"jsonrpc": "2.0", "id": {frame_id}, "method": "tools/list"}}'.encode()
    answer = post(plain, {"Content-Type": "application/json"}, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32600, -32700)


def test_a_batch_is_refused_as_the_protocol_has_none(plain):
    answer = post(plain, {"Content-Type": "application/json"}, content=json.dumps([LIST]).encode())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert "no batches" in answer.json()["error"]["message"]


def test_what_cannot_be_read_at_once_is_refused_before_the_protocol_reads_it(plain):
    for body in (b'{"x": [' + b"[]," * 450_000 + b"1]}", b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}"):
        answer = post(plain, {"Content-Type": "application/json"}, content=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert post(plain).status_code == 200


def test_a_body_may_come_in_pieces(plain):
    def pieces() -> Iterator[bytes]:
        text = json.dumps(LIST).encode()
        yield from (text[:10], text[10:11], text[11:])

    answer = post(plain, {"Content-Type": "application/json"}, content=pieces())
    assert answer.status_code == 200
    assert "memory_recall" in answer.text


async def test_a_frame_that_does_not_arrive_in_time_is_refused():
    async def nothing_comes():
        await asyncio.Event().wait()

    refused, _ = await read_frame(nothing_comes, Limits(body=100, items=10, seconds=0.05))
    assert refused is not None
    assert refused.status_code == 408
