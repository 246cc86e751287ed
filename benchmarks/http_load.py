"""Many clients at once on one HTTP service, at little cost: it shares the cores with what it measures.

Requests are made as bytes before the run; a connection is a bare asyncio protocol that reads a status and a length.
`benchmarks/serving.py` and the tests of the service drive it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Asked(NamedTuple):
    """One request; `tag` tells the caller which it was."""

    tag: Any
    content: bytes


class Answered(NamedTuple):
    tag: Any
    status: int  # 0: the connection ended before the answer
    body: bytes
    seconds: float


@dataclass
class Load:
    """What came of a run."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # per answer, in the order of arrival
    elapsed: float = 0.0  # seconds, the whole run
    own_cpu: float = 0.0  # seconds of processor time that the generator used

    @property
    def answers(self) -> int:
        return len(self.seconds)

    @property
    def per_second(self) -> float:
        return self.answers / self.elapsed

    def quantile(self, share: float) -> float:
        """Milliseconds within which this share of the answers came."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


def http_request(path: str, body: Any = None, *, token: str = "", method: str = "POST") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    if token:
        head.append(f"Authorization: Bearer {token}")
    return "\r\n".join(head).encode() + _END + content


class _Connection(asyncio.Protocol):
    """One request at a time over one connection that is kept alive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = 0  # bytes of the whole answer, 0: its head has not arrived
        self._body_at = 0
        self._waiting: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.open = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.open = True

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed:
            end = self._buffer.find(_END)
            if end < 0:
                return
            self._body_at = end + len(_END)
            head = bytes(self._buffer[:end]).lower()
            start = head.find(_LENGTH)
            length = int(head[start + len(_LENGTH) :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            self.open = b"connection: close" not in head
            self._needed = self._body_at + length
        if len(self._buffer) >= self._needed:
            self._done()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._done()

    def _done(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def ask(self, content: bytes) -> tuple[int, bytes]:
        assert self._transport is not None
        self._buffer.clear()
        self._needed = 0
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(content)
        await self._waiting
        if not self._needed or len(self._buffer) < self._needed:
            return 0, b""
        return int(self._buffer[9:12]), bytes(self._buffer[self._body_at : self._needed])

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def drive(
    port: int,
    requests: Iterable[Asked],
    *,
    clients: int = 1,
    on_answer: Callable[[Answered], None] | None = None,
) -> Load:
    """Send the requests over so many connections, each one its next request when the last is answered.

    A connection that the service closes is opened again; where nothing listens any more, the client stops.
    """
    load = Load()
    waiting = iter(requests)
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(_client(port, waiting, load, on_answer) for _ in range(clients)))
    load.elapsed = time.perf_counter() - began
    load.own_cpu = time.process_time() - cpu
    return load


async def _client(
    port: int, waiting: Iterator[Asked], load: Load, on_answer: Callable[[Answered], None] | None
) -> None:
    loop = asyncio.get_running_loop()
    connection: _Connection | None = None
    try:
        for asked in waiting:
            if connection is None or not connection.open:
                if connection is not None:
                    connection.close()
                transport, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
                if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
                    break  # where nobody listens, a socket that got this very port is connected with itself
            sent = time.perf_counter()
            status, body = await connection.ask(asked.content)
            seconds = time.perf_counter() - sent
            load.statuses[status] += 1
            load.seconds.append(seconds)
            if on_answer is not None:
                on_answer(Answered(asked.tag, status, body, seconds))
    except OSError:
        pass  # nothing listens any more
    finally:
        if connection is not None:
            connection.close()


def mixed(count: int, *, workspace: str, tools: int = 50, first: int = 0, token: str = "") -> Iterator[Asked]:
    """Two adds, two reads and a rule method of every five requests. Tags: ("add" | "read" | "rpc", what was sent)."""
    for number in range(first, first + count):
        tool = f"tool_{(number + number // 5) % tools:03}"
        turn = number % 5
        if turn < 2:
            call = {
                "id": f"call-{number}",
                "tool_name": tool,
                "input": {"query": f"orders of customer {number}", "limit": number % 7},
                "output": "no such table: orders" if number % 3 == 0 else f'[{{"id": {number}}}]',
                "success": number % 3 != 0,
                "create_time": "2026-01-01T00:00:00+00:00",
            }
            body: Any = {"workspace_id": workspace, "tool_call_results": [call]}
            yield Asked(("add", (tool, call["id"])), http_request("/add_tool_call_result", body, token=token))
        elif turn < 4:
            body = {"workspace_id": workspace, "tool_names": tool}
            yield Asked(("read", tool), http_request("/retrieve_tool_memory", body, token=token))
        else:
            method, params = _rule_method(number // 5, tool)
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"workspace_id": workspace, **params}}
            yield Asked(("rpc", (method, params)), http_request("/rpc", body, token=token))


def _rule_method(number: int, tool: str) -> tuple[str, dict[str, Any]]:
    turn = number % 4
    if turn == 0:
        rule = {"id": f"rule-{number % 40}-{tool}", "tool_name": tool, "rule": f"never delete order {number % 40}"}
        return "memory.tool_rule_put", {**rule, "priority": "critical" if number % 8 else "high"}
    if turn == 1:
        return "memory.tool_rules_for_prompt", {}
    if turn == 2:
        return "memory.tool_rule_list", {"tool_name": tool}
    return "memory.tool_rules_json", {"tool_name": tool}
