"""MCP over stdin and stdout: one JSON-RPC message a line.

The SDK's own transport hands every line to a worker thread, twice on its way out, and no signal ends it before stdin
does. This one reads and writes in the event loop where neither can block, and ends in order: requests that were taken
in are answered first.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio
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
_CHUNK = 1 << 16
MAX_LINE = 8_000_000  # bytes of one message
_MAX_LINES = 1000  # read and not yet taken in; with more, or with more bytes than MAX_LINE, the client waits
_TOO_LONG = b"too long"  # this very object stands for a line of more bytes


@contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """(stdin, stdout) as descriptors that nothing else of this process can reach.

    Until the end, whatever prints lands on stderr, and whatever reads stdin finds it empty: the protocol's bytes are
    nobody else's.
    """
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    try:
        yield wire_in, wire_out
    finally:
        sys.stdout.flush()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)  # the duplicates stay open: a thread may still wait on one


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """A SIGTERM or SIGINT calls `stop` instead of ending the process."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for each in signals:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


class StdioTransport:
    """Both streams of one connection: `requests` for the server to read, `answers` for it to write."""

    def __init__(self, wire_in: int, wire_out: int, *, grace: float = GRACE) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._partial = bytearray()  # of a line
        self._overlong = False  # the line that is being read is: nothing of it is kept
        self._waiting = 0  # bytes of `_lines`
        self._wire = wire_in
        self._paused = False
        self._grace = grace
        self._stopping = False
        self._ended = False
        self._unanswered: set[RequestId] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._loop = asyncio.get_running_loop()
        self.requests = _Requests(self)
        self.answers = _Answers(self, wire_out)
        self._start_reading()

    def stop(self) -> None:
        """Take in nothing more and end once everything is answered; a second time: end now."""
        if self._stopping:
            self._settled.set()
        else:
            self._stopping = True
            self._lines.put_nowait(None)

    # -- reading

    def _start_reading(self) -> None:
        """Without a thread where the loop can tell when there is something to read: of pipes, sockets and terminals."""
        try:
            self._loop.add_reader(self._wire, self._readable)
            self._paused = False
        except (OSError, NotImplementedError):  # a file; or a loop that cannot watch descriptors
            threading.Thread(target=self._read_all, name="toolmem-stdin", daemon=True).start()

    def stop_reading(self) -> None:
        with suppress(NotImplementedError):
            self._loop.remove_reader(self._wire)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._wire, _CHUNK)
        except OSError:
            chunk = b""
        self._take(chunk)
        self._paused = bool(chunk) and (self._lines.qsize() > _MAX_LINES or self._waiting > MAX_LINE)
        if self._paused or not chunk:
            self.stop_reading()

    def _read_all(self) -> None:
        """In a daemon thread, which ends with stdin or with the process."""
        chunk = b"-"
        with suppress(RuntimeError):  # the loop is closed
            while chunk:
                try:
                    chunk = os.read(self._wire, _CHUNK)
                except OSError:
                    chunk = b""
                asyncio.run_coroutine_threadsafe(self._taken(chunk), self._loop).result()

    async def _taken(self, chunk: bytes) -> None:
        self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        """Cut what was read into lines; nothing: it has ended."""
        self._partial += chunk
        if not chunk or b"\n" in chunk:
            *lines, rest = bytes(self._partial).split(b"\n")
            self._partial = bytearray(rest if chunk else b"")
            for line in [*lines, *([] if chunk else [rest])]:
                self._put(line)
        if not chunk:
            self._lines.put_nowait(None)
        elif len(self._partial) > MAX_LINE:
            self._partial.clear()
            self._overlong = True

    def _put(self, line: bytes) -> None:
        kept = _TOO_LONG if self._overlong or len(line) > MAX_LINE else line
        self._overlong = False
        self._waiting += len(kept)
        self._lines.put_nowait(kept)

    async def next_message(self) -> SessionMessage | None:
        """None once the connection has ended and what it asked for is answered; also when asked again."""
        while not self._ended:
            line = await self._lines.get()
            if line is None:
                await self._settle()
                break
            self._waiting -= len(line)
            if self._paused and not self._lines.qsize():
                self._start_reading()
            if not line.strip():
                continue
            try:
                message = _read(line)
            except _UnreadableError as error:
                await self.answers.send(SessionMessage(error.answer))
                continue
            self._note(message)
            return SessionMessage(message)
        return None

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
        self._stopping = self._ended = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._settled.wait()


class _Stream:
    """What the SDK asks of either stream: it is closed at the end of an `async with`."""

    async def aclose(self) -> None:
        """Nothing to do: what was sent is written."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Requests(_Stream):
    """The SDK's ReadStream."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport

    async def receive(self) -> SessionMessage | Exception:
        message = await self._transport.next_message()
        if message is None:
            raise anyio.EndOfStream
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = await self._transport.next_message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        self._transport.stop_reading()


class _Answers(_Stream):
    """The SDK's WriteStream. Lines never mix, whoever sends them."""

    def __init__(self, transport: StdioTransport, descriptor: int) -> None:
        self._transport = transport
        self._descriptor = descriptor
        self._turn = asyncio.Lock()
        self._fits = _room_in(descriptor)

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            if not self._turn.locked() and self._fits(len(line)):
                _write(self._descriptor, line)
            else:
                async with self._turn:
                    await asyncio.to_thread(_write, self._descriptor, line)
        except OSError:  # the client has gone
            self._transport.stop()
            raise anyio.BrokenResourceError from None
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                self._transport.answered(message.id)


def _write(descriptor: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _room_in(descriptor: int) -> Any:
    """A function that says whether so many bytes can be written without waiting for the reader.

    Of a pipe that is known where it is empty (Linux tells); a file never makes wait; for anything else: no.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return lambda size: True
    if not stat.S_ISFIFO(mode) or not sys.platform.startswith("linux"):
        return lambda size: False
    import fcntl
    import termios

    capacity = fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)
    unread = bytearray(4)

    def fits(size: int) -> bool:
        fcntl.ioctl(descriptor, termios.FIONREAD, unread)
        return size <= capacity and not any(unread)

    return fits


class _UnreadableError(Exception):
    """A line that is no message; `answer` says so."""

    def __init__(self, code: int, message: str, id: RequestId | None = None) -> None:
        self.answer = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
        super().__init__(message)


def _read(line: bytes) -> JSONRPCMessage:
    """The message of a line. Raises _UnreadableError, with the line's id where it has one."""
    if line is _TOO_LONG:
        raise _UnreadableError(INVALID_REQUEST, f"Invalid Request: the line is longer than {MAX_LINE:,} bytes")
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["type"] == "json_invalid":
            raise _UnreadableError(PARSE_ERROR, "Parse error: the line is not JSON") from None
        id = _members(line).get("id")
        known = id if isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool)) else None
        problem = "Invalid Request: expected one JSON-RPC 2.0 message a line"
        raise _UnreadableError(INVALID_REQUEST, problem, known) from None
    if isinstance(message, JSONRPCNotification) and "id" in _members(line):
        # The SDK takes a request whose id is none (NaN, null, a list) for a notification, and who asked would wait.
        raise _UnreadableError(INVALID_REQUEST, "Invalid Request: id: expected text or a whole number")
    return message


def _members(line: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        body = json.loads(line)
        return body if isinstance(body, dict) else {}
    return {}
