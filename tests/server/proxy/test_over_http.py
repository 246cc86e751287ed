"""The proxy with streamable HTTP on either side: real servers, the SDK's client, both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitResult

from tests.server.proxy.conftest import MAIL, PROXY, SARAH, SCRIPTED, call, initialize

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
WAYS = [
    "HTTP to HTTP",
    "HTTP to HTTP, answers in JSON",
    "stdio to HTTP",
    "stdio to HTTP, answers in JSON",
    "HTTP to stdio",
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nobody listens")


class Running:
    """What was started for one test."""

    def __init__(self, folder: Path, store: Path) -> None:
        self._folder, self._store = folder, store
        self.processes: list[subprocess.Popen[bytes]] = []

    def mail(self, *more: str) -> str:
        port = free_port()
        self._start([*MAIL, str(port), *more])
        wait_for(port)
        return f"http://127.0.0.1:{port}/mcp"

    def proxy(self, *options: str, **environment: str) -> str:
        port = free_port()
        self._start([*PROXY, "--store", str(self._store), "--listen", f"127.0.0.1:{port}", *options], **environment)
        wait_for(port)
        return f"http://127.0.0.1:{port}/mcp"

    def way(self, name: str) -> str | StdioServerParameters:
        """What a client is told to connect to."""
        json_answers = ["json"] if "JSON" in name else []
        if name == "HTTP to stdio":
            return self.proxy("--", *MAIL)
        url = self.mail(*json_answers)
        if name.startswith("HTTP"):
            return self.proxy("--url", url)
        command = [*PROXY, "--store", str(self._store), "--url", url]
        return StdioServerParameters(command=command[0], args=command[1:])

    def _start(self, command: list[str], **environment: str) -> None:
        env = {**os.environ, "HOME": str(self._folder / "home"), **environment}
        with open(self._folder / f"stderr{len(self.processes)}", "wb") as errors:
            self.processes.append(subprocess.Popen(command, cwd=self._folder, env=env, stdout=errors, stderr=errors))


@pytest.fixture
def running(tmp_path: Path, store: Path) -> Iterator[Running]:
    started = Running(tmp_path, store)
    yield started
    for each in started.processes:
        each.kill()
        each.wait()


@pytest.mark.parametrize(
    ("way", "era"),
    [
        *((way, "2026-07-28") for way in WAYS),
        (WAYS[0], "legacy"),
        *(pytest.param(way, "legacy", marks=pytest.mark.slow) for way in WAYS[1:]),
    ],
)
async def test_calls_are_answered_recorded_guarded_and_asked_about(way, era, running, told, kept):
    told(SARAH, "ask me before you email Bob")
    asked: list[str] = []
    progress: list[float] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        ours = params.message.startswith("toolmem")
        return ElicitResult(action="accept", content={"run": True} if ours else {"pieces": 3})

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async with Client(running.way(way), mode=era, elicitation_callback=answer) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert SARAH in tools["send_email"].description
        assert (await client.call_tool("weather", {"city": "Rome"})).structured_content["degrees"] == 21.5
        assert (await client.call_tool("fail", {"text": "no"})).is_error is True
        stopped = await client.call_tool("send_email", {"to": "sarah@example.com"})
        assert stopped.is_error is True
        assert SARAH in stopped.content[0].text
        if "JSON" not in way or era != "legacy":  # a server that answers in JSON can ask and report nothing meanwhile
            assert (await client.call_tool("send_email", {"to": "Bob"})).is_error is False
            assert ["Bob" in each for each in asked] == [True]
        if "JSON" not in way:
            await client.call_tool("count", {"to": 3}, progress_callback=note)
            assert progress == [1, 2, 3]
            if era == "legacy":
                assert (await client.call_tool("order", {})).content[0].text == "ordered 3"
    names = [each.tool_name for each in kept()]
    assert names[:2] == ["weather", "fail"]
    assert all(each.metadata["ending"] in {"answered", "tool_error"} for each in kept())


async def test_two_clients_of_one_process_with_the_same_ids_get_their_own_answers(running):
    url = running.proxy("--", *MAIL)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
    }
    head = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        bodies = [call("size", {"text": "x" * n}, 1, _meta=meta) for n in (3, 5, 7)]
        answers = await asyncio.gather(*(client.post(url, json=each, headers=head) for each in bodies))
    told = [json.loads(each.text.partition("data: ")[2]) for each in answers]
    assert [each["id"] for each in told] == [1, 1, 1]
    assert [each["result"]["content"][0]["text"] for each in told] == ["3", "5", "7"]


async def test_a_session_ends_with_its_process(running):
    url = running.proxy("--", *SCRIPTED)
    head = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        begun = await client.post(url, json=initialize(), headers=head)
        session = {"mcp-session-id": begun.headers["mcp-session-id"], **head}
        assert (await client.post(url, json=call("odd", {}), headers=session)).status_code == 200
        assert (await client.delete(url, headers=session)).status_code == 200
        assert (await client.post(url, json=call("odd", {}), headers=session)).status_code == 404


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}], ids=["another host", "another origin"]
)
async def test_a_web_page_of_somebody_else_reaches_no_process(running, headers):
    url = running.proxy("--", *SCRIPTED)
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        assert (await client.post(url, json=call("odd", {}), headers=headers)).status_code == 403


def test_other_addresses_than_loopback_need_a_token(tmp_path, store):
    command = [*PROXY, "--store", str(store), "--listen", "0.0.0.0:0", "--", *SCRIPTED]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert b"TOOLMEM_TOKEN" in done.stderr


async def test_a_token_is_asked_for_and_not_passed_on(running):
    url = running.proxy("--", *SCRIPTED, TOOLMEM_TOKEN="a-token-of-ours")
    head = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        assert (await client.post(url, json=initialize(), headers=head)).status_code == 401
        with_token = {**head, "authorization": "Bearer a-token-of-ours"}
        assert (await client.post(url, json=initialize(), headers=with_token)).status_code == 200


async def test_a_server_that_is_away_is_said_and_the_call_has_no_answer(running, start, kept):
    url = running.proxy("--url", f"http://127.0.0.1:{free_port()}/mcp")
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        answer = await client.post(url, json=call("odd", {}))
    assert answer.status_code == 502
    assert answer.json()["id"] == 1
    assert "cannot be reached" in answer.json()["error"]["message"]


def test_a_host_is_told_that_the_address_cannot_be_reached(tmp_path, store):
    command = [*PROXY, "--store", str(store), "--url", f"http://127.0.0.1:{free_port()}/mcp"]
    done = subprocess.run(command, input=json.dumps(call("odd", {})).encode() + b"\n", capture_output=True, timeout=60)
    assert json.loads(done.stdout)["id"] == 1
    assert "cannot be reached" in json.loads(done.stdout)["error"]["message"]
    assert done.returncode == 0


async def test_headers_of_the_entry_go_to_the_server(running, tmp_path):
    seen = tmp_path / "seen"
    server = (
        "import http.server, sys\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        open(sys.argv[2], 'w').write(str(self.headers))\n"
        "        self.send_response(202); self.end_headers()\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
    )
    port = free_port()
    running._start([sys.executable, "-c", server, str(port), str(seen)])
    wait_for(port)
    url = running.proxy("--url", f"http://127.0.0.1:{port}/mcp", TOOLMEM_MCP_HEADERS='{"X-Key": "k1"}')
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        await client.post(url, json={"jsonrpc": "2.0", "method": "notifications/x"}, headers={"x-own": "1"})
    assert "x-key: k1" in seen.read_text().lower()
    assert "x-own: 1" in seen.read_text().lower()
