"""Clients that share one process without sessions: what is meant for one reaches no other and stops nothing of its."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.proxy.conftest import HERE, call, initialize
from tests.server.proxy.test_over_http import Running, free_port, running, wait_for

__all__ = ["running"]

HEAD = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
ASKS = {"id": 7, "method": "elicitation/create", "params": {"message": "for A", "requestedSchema": {"type": "object"}}}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
IDS = pytest.mark.parametrize("id", [1, "1", 1.5, "c1", ""], ids=str)


def stateless(id: Any, tag: str, **arguments: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
        **arguments.pop("meta", {}),
    }
    return call("puppet", {"tag": tag, **arguments}, id, _meta=meta)


class Reply:
    """A streamed answer, message by message."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any] | None:
        """None at the end of the stream."""
        async for line in self._lines:
            if line.startswith("data: "):
                told: dict[str, Any] = json.loads(line[6:])
                return told
        return None

    async def rest(self) -> list[dict[str, Any]]:
        told = []
        while (message := await self.next()) is not None:
            told.append(message)
        return told


class Puppet:
    """The proxy in front of one puppet, and what the puppet read."""

    def __init__(self, running: Running, folder: Path) -> None:
        self.log = folder / "log"
        self.url = running.proxy("--", sys.executable, str(HERE / "puppet_server.py"), str(self.log))

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    async def waits_for(self, found: Any) -> dict[str, Any]:
        """The first message of those that the puppet read for which this holds."""
        async with asyncio.timeout(20):
            while True:
                if told := [each for each in self.read() if found(each)]:
                    return told[0]
                await asyncio.sleep(0.02)

    async def has(self, tag: str) -> None:
        await self.waits_for(lambda each: each.get("params", {}).get("arguments", {}).get("tag") == tag)


class HttpClient:
    """One program with connections of its own."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self._url, self._http = url, http

    @asynccontextmanager
    async def asks(self, message: Any) -> AsyncIterator[Reply]:
        async with self._http.stream("POST", self._url, json=message, headers=HEAD) as response:
            yield Reply(response)

    async def tells(self, message: Any) -> httpx.Response:
        return await self._http.post(self._url, json=message, headers=HEAD)

    async def answer(self, message: Any) -> list[dict[str, Any]]:
        async with self.asks(message) as reply:
            return await reply.rest()


@pytest.fixture
def puppet(running: Running, tmp_path: Path) -> Puppet:
    return Puppet(running, tmp_path)


@pytest.fixture
async def clients(puppet: Puppet) -> AsyncIterator[list[HttpClient]]:
    async with AsyncExitStack() as stack:
        made = [await stack.enter_async_context(httpx.AsyncClient(timeout=30, trust_env=False)) for _ in range(3)]
        yield [HttpClient(puppet.url, http) for http in made]


def text(messages: list[dict[str, Any]]) -> list[str]:
    return [each["result"]["content"][0]["text"] for each in messages if "result" in each]


def is_refusal(id: Any) -> Any:
    return lambda each: each.get("id") == id and "error" in each


# ---------------------------------------------------------------- what the server asks


@pytest.mark.parametrize(
    ("method", "id"), [("elicitation/create", 7), ("sampling/createMessage", "7"), ("roots/list", 1.5)]
)
async def test_a_request_that_names_no_call_reaches_nobody_while_two_clients_are_served(method, id, puppet, clients):
    a, b, c = clients
    async with a.asks(stateless(1, "a", holds=True)) as for_a, b.asks(stateless(1, "b", holds=True)) as for_b:
        await puppet.has("a")
        await puppet.has("b")
        told = await c.answer(stateless(1, "c", says=[{**ASKS, "id": id, "method": method}], ends="a"))
        assert text(told) == ["c"]
        assert len(told) == 1
        refused = await puppet.waits_for(is_refusal(id))
        assert "two clients" in refused["error"]["message"]
        await c.answer(stateless(2, "d", ends="b"))
        assert text(await for_a.rest()) == ["a"]
        assert text(await for_b.rest()) == ["b"]


async def test_a_late_request_of_a_call_that_ended_does_not_reach_the_client_that_is_served_next(puppet, clients):
    a, b, _c = clients
    assert text(await a.answer(stateless(1, "a"))) == ["a"]
    async with b.asks(stateless(1, "b", holds=True)) as for_b:
        await puppet.has("b")
        await a.answer(stateless(2, "c", says=[ASKS], ends="b"))
        await puppet.waits_for(is_refusal(7))
        assert text(await for_b.rest()) == ["b"]


async def test_a_late_request_of_a_call_whose_client_left_does_not_reach_the_next_client(puppet, clients):
    a, b, _ = clients
    async with a.asks(stateless(1, "a", holds=True)):
        await puppet.has("a")
    await puppet.waits_for(lambda each: each.get("method") == "notifications/cancelled")
    assert text(await b.answer(stateless(1, "b", says=[ASKS]))) == ["b"]
    await puppet.waits_for(is_refusal(7))


@pytest.mark.parametrize(
    ("where", "id"),
    [
        *(("relatedRequestId", id) for id in (1, "1", 1.5)),
        ("io.modelcontextprotocol/relatedRequestId", "c1"),
        ("progressToken", 1),
    ],
)
async def test_a_request_that_names_its_call_reaches_that_client_alone_and_so_does_the_reply(
    where, id, puppet, clients
):
    a, b, c = clients
    asks = {**ASKS, "params": {**ASKS["params"], "_meta": {where: {"of": "a"}}}}
    async with a.asks(stateless(id, "a", holds=True)) as for_a, b.asks(stateless(id, "b", holds=True)) as for_b:
        await puppet.has("a")
        await puppet.has("b")
        assert text(await c.answer(stateless(id, "c", says=[asks]))) == ["c"]
        question = await for_a.next()
        assert question["params"]["message"] == "for A"
        if where != "progressToken":
            assert question["params"]["_meta"][where] == id
        for guess in (7, "7", question["id"] + "x"):  # B does not answer in A's name
            forged = await b.tells({"jsonrpc": "2.0", "id": guess, "result": {"action": "accept"}})
            assert forged.status_code == 400
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert (await a.tells(reply)).status_code == 202
        assert (await a.tells(reply)).status_code == 400  # once
        taken = [each for each in puppet.read() if "result" in each]
        assert [(each["id"], each["result"]["action"]) for each in taken] == [(7, "decline")]
        await c.answer(stateless(1, "d", ends="a"))
        await c.answer(stateless(1, "e", ends="b"))
        assert text(await for_a.rest()) == ["a"]
        assert [each["id"] for each in await for_b.rest()] == [id]


async def test_a_request_that_names_a_call_that_is_over_is_refused_to_the_server(puppet, clients):
    a, _b, _ = clients
    assert text(await a.answer(stateless(1, "a"))) == ["a"]
    asks = {**ASKS, "params": {**ASKS["params"], "_meta": {"relatedRequestId": {"of": "a"}}}}
    assert text(await a.answer(stateless(1, "b", says=[asks]))) == ["b"]
    refused = await puppet.waits_for(is_refusal(7))
    assert "over" in refused["error"]["message"]


async def test_a_question_that_is_open_when_its_call_ends_is_refused_to_the_server(puppet, clients):
    a, b, _ = clients
    asks = {**ASKS, "params": {**ASKS["params"], "_meta": {"relatedRequestId": {"of": "a"}}}}
    async with a.asks(stateless(1, "a", holds=True)) as for_a:
        await puppet.has("a")
        await b.answer(stateless(1, "b", says=[asks]))
        question = await for_a.next()
    await puppet.waits_for(is_refusal(7))
    late = await a.tells({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
    assert late.status_code == 400


async def test_a_client_that_is_served_alone_is_asked_what_the_server_asks(puppet, clients):
    a, _, _ = clients
    for n in (1, 2):
        told = await a.answer(stateless(n, "a", says=[ASKS]))
        assert [each.get("method") for each in told] == ["elicitation/create", None]


# ---------------------------------------------------------------- cancelling


@IDS
async def test_a_cancellation_of_another_client_stops_nobodys_call(id, puppet, clients, kept):
    a, b, c = clients
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    async with a.asks(stateless(id, "a", holds=True)) as for_a:
        await puppet.has("a")
        ours = puppet.read()[0]["id"]
        by_name = {**cancel, "params": {"requestId": ours}}
        for told in (cancel, by_name):
            assert (await b.tells(told)).status_code == 202
        assert text(await b.answer(stateless(id, "b"))) == ["b"]
        await b.tells(cancel)
        await c.answer(stateless(2, "c", ends="a"))
        assert text(await for_a.rest()) == ["a"]
    assert not [each for each in puppet.read() if each.get("method") == "notifications/cancelled"]
    assert {each.metadata["ending"] for each in kept()} == {"answered"}


async def test_closing_the_stream_cancels_the_call_of_that_client_alone(puppet, clients, kept):
    a, b, c = clients
    async with b.asks(stateless(1, "b", holds=True)) as for_b:
        await puppet.has("b")
        async with a.asks(stateless(1, "a", holds=True)):
            await puppet.has("a")
        cancelled = await puppet.waits_for(lambda each: each.get("method") == "notifications/cancelled")
        names = {each["params"]["arguments"]["tag"]: each["id"] for each in puppet.read() if "id" in each}
        assert cancelled["params"]["requestId"] == names["a"]
        await c.answer(stateless(1, "c", ends="b"))
        assert text(await for_b.rest()) == ["b"]


async def test_a_session_cancels_its_own_call_and_no_other_by_the_same_id(puppet):
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        heads = []
        for _ in range(2):
            begun = await http.post(puppet.url, json=initialize(), headers=HEAD)
            heads.append({**HEAD, "mcp-session-id": begun.headers["mcp-session-id"]})
        async with http.stream("POST", puppet.url, json=call("puppet", {"tag": "a", "holds": True}), headers=heads[0]):
            await puppet.has("a")
            assert (await http.post(puppet.url, json=CANCEL, headers=heads[1])).status_code == 202
            await http.post(puppet.url, json=call("puppet", {"tag": "b"}, 2), headers=heads[1])
            assert not [each for each in puppet.read() if each.get("method") == CANCEL["method"]]
            own = {**CANCEL, "params": {"requestId": 1.0}}  # equal as JSON
            assert (await http.post(puppet.url, json=own, headers=heads[0])).status_code == 202
            await puppet.waits_for(lambda each: each.get("method") == CANCEL["method"])


async def test_a_call_of_a_session_whose_client_left_is_kept_as_it_ends(puppet, kept):
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        begun = await http.post(puppet.url, json=initialize(), headers=HEAD)
        head = {**HEAD, "mcp-session-id": begun.headers["mcp-session-id"]}
        async with http.stream("POST", puppet.url, json=call("puppet", {"tag": "a", "holds": True}), headers=head):
            await puppet.has("a")
        await asyncio.sleep(0.3)
        later = {"tag": "b", "says": [ASKS], "ends": "a"}
        told = await http.post(puppet.url, json=call("puppet", later, 2), headers=head)
        assert "for A" in told.text  # the client of the session is asked where it still listens
        await http.delete(puppet.url, headers=head)
    assert {each.input["tag"]: each.metadata["ending"] for each in kept()} == {"a": "answered", "b": "answered"}


# ---------------------------------------------------------------- progress, and what concerns all


async def test_progress_follows_its_call_whoever_else_uses_the_same_token(puppet, clients):
    a, b, c = clients
    token = {"progressToken": 1}
    report = [
        {"method": "notifications/progress", "params": {"progressToken": {"of": tag}, "progress": n}}
        for tag, n in (("a", 1), ("b", 2), ("a", 3))
    ]
    async with (
        a.asks(stateless(1, "a", holds=True, meta=token)) as for_a,
        b.asks(stateless(1, "b", holds=True, meta=token)) as for_b,
    ):
        await puppet.has("a")
        await puppet.has("b")
        await c.answer(stateless(1, "c", says=report, ends="a"))
        late = await c.answer(stateless(2, "d", says=report[:1], ends="b"))
        assert [each["id"] for each in late] == [2]  # progress of a call that is over reaches nobody
        told_a, told_b = await for_a.rest(), await for_b.rest()
    assert [each["params"] for each in told_a[:-1]] == [
        {"progressToken": 1, "progress": 1},
        {"progressToken": 1, "progress": 3},
    ]
    assert [each["params"] for each in told_b[:-1]] == [{"progressToken": 1, "progress": 2}]


async def test_a_log_message_that_names_no_call_reaches_nobody_while_two_clients_are_served(puppet, clients):
    a, b, _ = clients
    logs = {"method": "notifications/message", "params": {"level": "info", "data": "of A's order"}}
    async with a.asks(stateless(1, "a", holds=True)) as for_a:
        await puppet.has("a")
        assert len(await b.answer(stateless(1, "b", says=[logs], ends="a"))) == 1
        assert len(await for_a.rest()) == 1


async def test_that_lists_have_changed_reaches_everybody(puppet, clients):
    a, b, _ = clients
    changed = {"method": "notifications/tools/list_changed"}
    async with a.asks(stateless(1, "a", holds=True)) as for_a:
        await puppet.has("a")
        assert len(await b.answer(stateless(1, "b", says=[changed], ends="a"))) == 2
        assert len(await for_a.rest()) == 2


async def test_ids_are_used_again_once_their_call_is_over(puppet, clients):
    a, b, _ = clients
    for tag in "abcd":
        both = await asyncio.gather(a.answer(stateless(1, f"{tag}1")), b.answer(stateless(1, f"{tag}2")))
        assert [text(each) for each in both] == [[f"{tag}1"], [f"{tag}2"]]


async def test_a_batch_is_refused(puppet, clients):
    a, _, _ = clients
    (told,) = await a.answer([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert (told["id"], told["error"]["code"]) == (None, -32600)


# ---------------------------------------------------------------- in front of a server with an address


NAIVE = """
import http.server, json, sys, threading, time
seen = {}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if told.get("method") == "notifications/cancelled":
            seen[told["params"]["requestId"]].set()
        if "id" not in told:
            self.send_response(202); self.send_header("content-length", "0"); self.end_headers(); return
        stopped = seen[told["id"]] = threading.Event()
        says = b"cancelled" if stopped.wait(1.5) else b"done"
        body = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}' % says
        self.send_response(200); self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


async def test_without_a_session_a_cancellation_does_not_pass_to_a_server_with_an_address(running):
    port = free_port()
    running._start([sys.executable, "-c", NAIVE, str(port)])
    wait_for(port)
    url = running.proxy("--url", f"http://127.0.0.1:{port}/mcp")
    async with httpx.AsyncClient(timeout=30, trust_env=False) as a, httpx.AsyncClient(timeout=30, trust_env=False) as b:
        waiting = asyncio.create_task(a.post(url, json=stateless(1, "a"), headers=HEAD))
        await asyncio.sleep(0.7)
        assert (await b.post(url, json=CANCEL, headers=HEAD)).status_code == 202
        batch = (await b.post(url, json=[CANCEL], headers=HEAD)).json()
        assert (batch["id"], batch["error"]["code"]) == (None, -32600)
        assert text([(await waiting).json()]) == ["done"]


async def test_with_a_session_a_cancellation_passes_to_a_server_with_an_address(running):
    url = running.proxy("--url", running.mail())
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        head = {**HEAD, "mcp-protocol-version": "2025-11-25"}
        begun = await http.post(url, json=initialize(), headers=head)
        head["mcp-session-id"] = begun.headers["mcp-session-id"]
        await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=head)
        waiting = asyncio.create_task(http.post(url, json=call("wait", {"seconds": 20}), headers=head))
        await asyncio.sleep(0.7)
        assert (await http.post(url, json=CANCEL, headers=head)).status_code == 202
        assert "cancelled" in (await asyncio.wait_for(waiting, 10)).text
