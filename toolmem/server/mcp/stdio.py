"""MCP over stdin and stdout: one JSON-RPC message a line.

The SDK's `stdio_server` reads the messages and writes the answers. The lines that it is given are read here: its own
reader ends when stdin does and at no signal, takes a line of any length, and leaves what is no message unanswered.
What was taken in is answered before the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

GRACE = 30.0  # seconds that requests under way get once stdin has ended or a signal came; a second signal ends it
MAX_LINE = 8_000_000  # bytes of one message, and of all that were read and not yet taken in
_TOO_LONG = b"too long"  # this very object stands for a line of more bytes


@asynccontextmanager
async def stdio_streams() -> AsyncIterator[tuple[Any, AnswerStream]]:
    """What a server reads and writes, until stdin ends, a SIGTERM or SIGINT comes, or the client has gone.

    Until the end, whatever else of this process prints lands on stderr, and whatever reads stdin finds it empty: the
    protocol's bytes are nobody else's.
    """
    with _standard_input() as wire, _client_may_leave():
        lines = MessageLines(wire)
        async with stdio_server(stdin=lines) as (requests, answers):  # type: ignore[arg-type]
            lines.answers = AnswerStream(answers, lines.answered)
            with _stopped_by_signals(lines.stop):
                try:
                    yield requests, lines.answers
                finally:
                    sys.stdout.flush()  # while it is still diverted


@contextmanager
def _standard_input() -> Iterator[int]:
    """Standard input as a descriptor that nothing else of this process can reach."""
    wire = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    try:
        yield wire
    finally:
        os.dup2(wire, 0)  # the duplicate stays open: a thread may still wait on it


@contextmanager
def _client_may_leave() -> Iterator[None]:
    """A client that reads no more ends the connection, which is no failure."""
    try:
        yield
    except* BrokenPipeError:
        pass


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """A SIGTERM or SIGINT calls `stop` instead of ending the process."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError):  # on Windows a signal ends the process; what was answered is stored
        for each in signals:
            loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for each in signals:
                loop.remove_signal_handler(each)


class AnswerStream:
    """The SDK's stream of answers, which tells of each that was sent."""

    def __init__(self, inner: Any, answered: Callable[[Any], None]) -> None:
        self._inner = inner
        self._answered = answered

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._answered(item.message.id)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class MessageLines:
    """The lines of stdin that are messages; the others are answered here.

    Ends when stdin does, or when told to `stop`: once what it gave is answered.
    """

    answers: AnswerStream

    def __init__(self, wire: int, *, grace: float = GRACE) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting = 0  # bytes of `_lines`
        self._has_room = asyncio.Event()
        self._grace = grace
        self._stopping = False
        self._unanswered: set[RequestId] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_all, args=[wire], name="toolmem-stdin", daemon=True).start()

    def stop(self) -> None:
        """Take in nothing more and end once everything is answered; a second time: end now."""
        if self._stopping:
            self._settled.set()
        else:
            self._stopping = True
            self._lines.put_nowait(None)

    # -- reading

    def _read_all(self, wire: int) -> None:
        """In a daemon thread, which ends with stdin or with the process."""
        line: bytes | None = b"-"
        with open(wire, "rb", closefd=False) as stdin, suppress(RuntimeError):  # the loop is closed
            while line is not None:
                try:
                    line = _next_line(stdin)
                except OSError:
                    line = None
                asyncio.run_coroutine_threadsafe(self._take(line), self._loop).result()

    async def _take(self, line: bytes | None) -> None:
        """Let the client wait where much is waiting already."""
        self._lines.put_nowait(line)
        self._waiting += _weight(line)
        if self._waiting > MAX_LINE:
            self._has_room.clear()
            await self._has_room.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while (line := await self._lines.get()) is not None:
            self._waiting -= _weight(line)
            if self._waiting <= MAX_LINE:
                self._has_room.set()
            if not line.strip():
                continue
            try:
                self._note(_read(line))
                return line
            except _NotAMessage as error:
                await self.answers.send(SessionMessage(error.answer))
        await self._settle()
        raise StopAsyncIteration

    def _note(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            self._unanswered.add(message.id)
            self._settled.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.answered((message.params or {}).get("requestId"))

    def answered(self, request: Any) -> None:
        """This request needs no (further) answer."""
        if isinstance(request, int | str):
            self._unanswered.discard(request)
        if not self._unanswered:
            self._settled.set()

    async def _settle(self) -> None:
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._settled.wait()


def _next_line(stdin: BinaryIO) -> bytes | None:
    """Without what stands behind `MAX_LINE` bytes, of which nothing is kept; None at the end."""
    line = stdin.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE and not line.endswith(b"\n"):
        while (rest := stdin.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        return _TOO_LONG
    return line or None


def _weight(line: bytes | None) -> int:
    """Bytes that a waiting line takes, more or less."""
    return len(line or b"") + MAX_LINE // 1000


class _NotAMessage(Exception):
    """A line that is no message; `answer` says so."""

    def __init__(self, code: int, message: str, id: RequestId | None = None) -> None:
        self.answer = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
        super().__init__(message)


def _read(line: bytes) -> JSONRPCMessage:
    """The message of a line. Raises _NotAMessage, with the line's id where it has one."""
    if line is _TOO_LONG:
        raise _NotAMessage(INVALID_REQUEST, f"Invalid Request: the line is longer than {MAX_LINE:,} bytes")
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["type"] == "json_invalid":
            raise _NotAMessage(PARSE_ERROR, "Parse error: the line is not JSON") from None
        id = _members(line).get("id")
        known = id if isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool)) else None
        problem = "Invalid Request: expected one JSON-RPC 2.0 message a line"
        raise _NotAMessage(INVALID_REQUEST, problem, known) from None
    if isinstance(message, JSONRPCNotification) and "id" in _members(line):
        # The SDK takes a request whose id is none (NaN, null, a list) for a notification, and who asked would wait.
        raise _NotAMessage(INVALID_REQUEST, "Invalid Request: id: expected text or a whole number")
    return message


def _members(line: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        body = json.loads(line)
        return body if isinstance(body, dict) else {}
    return {}
