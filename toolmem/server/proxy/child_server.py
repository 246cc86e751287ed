"""The proxy between a host's pipes and a server that it starts as a child process: one message a line."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import sys
import threading
import uuid
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from toolmem.server.proxy.frames import MAX_FRAME, FrameLines, id_at_head, written
from toolmem.server.proxy.interception import Interception, Shared

log = logging.getLogger("toolmem.proxy")

CHUNK = 1 << 18
_GRACE = 5.0  # seconds that a server gets to end by itself once its stdin is closed, and once it is told to
_NOT_FOUND, _NOT_STARTED = 127, 126  # exit codes, as a shell has them
_MOST_JUNK = 2000  # characters of a line that is no message, on stderr


def session_of_host() -> str:
    """The conversation that this process serves: the host's own session where it tells it."""
    return os.environ.get("CLAUDE_CODE_SESSION_ID", "") or uuid.uuid4().hex


class ByteSource:
    """What arrives at a descriptor, read by a thread: it may be a file, a pipe or a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(maxsize=2)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_all, args=[descriptor], name="toolmem-stdin", daemon=True).start()

    def _read_all(self, descriptor: int) -> None:
        chunk = b"-"
        with suppress(RuntimeError):  # the loop is closed
            while chunk:
                try:
                    chunk = os.read(descriptor, CHUNK)
                except OSError:
                    chunk = b""
                asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop).result()

    async def read(self) -> bytes:
        """The next bytes; b"" at the end."""
        return await self._chunks.get()


class ByteSink:
    """A descriptor that a thread writes to, so that a reader who takes nothing stops nobody else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.gone = asyncio.Event()  # nobody reads any more
        threading.Thread(target=self._write_all, name="toolmem-stdout", daemon=True).start()

    def _write_all(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                data, done = self._waiting.get()
                try:
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(self._descriptor, rest) :]
                except OSError:
                    self._loop.call_soon_threadsafe(self.gone.set)
                self._loop.call_soon_threadsafe(_done, done)

    async def write(self, data: bytes) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((data, done))
        await done


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class StdioProxy:
    """One host, one child process, until either ends."""

    def __init__(self, command: Sequence[str], shared: Shared, *, read_from: int, write_to: int) -> None:
        self._command = list(command)
        self._shared = shared
        self._client = ByteSource(read_from)
        self._answers = ByteSink(write_to)
        self._interception = Interception(shared, session_of_host())
        self._rests: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Tell the server to end."""
        self._stopping.set()

    async def run(self) -> int:
        """Relay until the end; answers the server's exit code."""
        try:
            self._server = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=CHUNK
            )
        except OSError as error:
            log.error("the server cannot be started: %s: %s", self._command[0], error.strerror or error)
            return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
        self._shared.memory.warm_up()
        answers = asyncio.create_task(self._relay_answers())
        requests = asyncio.create_task(self._relay_requests())
        ends = [asyncio.create_task(self._stopping.wait()), asyncio.create_task(self._answers.gone.wait())]
        await asyncio.wait([answers, requests, *ends], return_when=asyncio.FIRST_COMPLETED)
        code = await self._ended(answers)
        for task in (answers, requests, *ends, *self._rests):
            task.cancel()
        await asyncio.gather(answers, requests, *ends, *self._rests, return_exceptions=True)
        await self._interception.left()
        return code if code >= 0 else 128 - code

    async def _ended(self, answers: asyncio.Task[None]) -> int:
        """The exit code of the server, which is let end, told to, and killed. What it still says is passed on."""
        server = self._server
        assert server.stdin is not None
        if not self._stopping.is_set():
            server.stdin.close()
            await self._wait(server, self._stopping.wait())
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if server.returncode is None:
                _signal(server, sign)
                await self._wait(server)
        code = await server.wait()
        await asyncio.wait([answers], timeout=_GRACE)  # a grandchild may hold the pipe open
        return code

    async def _wait(self, server: asyncio.subprocess.Process, *others: Coroutine[Any, Any, object]) -> None:
        waits = [asyncio.create_task(each) for each in (server.wait(), *others)]
        await asyncio.wait(waits, timeout=_GRACE, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()

    # -- the two directions

    async def to_client(self, frame: bytes) -> None:
        await self._answers.write(frame + b"\n")

    async def to_server(self, frame: bytes) -> None:
        await self._to_server(frame + b"\n")

    async def _to_server(self, data: bytes) -> None:
        assert self._server.stdin is not None
        with suppress(ConnectionError):  # it has ended, which its exit code tells
            self._server.stdin.write(data)
            await self._server.stdin.drain()

    async def _relay_requests(self) -> None:
        lines = FrameLines()
        is_told = False
        while chunk := await self._client.read():
            for piece, is_whole in lines.feed(chunk):
                if is_whole:
                    is_told = False
                    self._go_on(await self._from_client(piece))
                elif not is_told:
                    is_told = True
                    await self._refuse(piece)
        if rest := lines.rest():
            self._go_on(await self._from_client(rest))
        if self._rests:  # nobody answers any more
            for task in self._rests:
                task.cancel()

    async def _from_client(self, line: bytes) -> Coroutine[Any, Any, None] | None:
        return await self._interception.from_client(line, self) if line.strip() else None

    def _go_on(self, rest: Coroutine[Any, Any, None] | None) -> None:
        if rest is not None:
            task = asyncio.create_task(rest)
            self._rests.add(task)
            task.add_done_callback(self._rests.discard)

    async def _refuse(self, head: bytes) -> None:
        """What is too long to be checked does not pass."""
        text = f"toolmem: not run: a message of more than {MAX_FRAME:,} bytes is not passed on"
        log.warning(text)
        await self.to_client(written({"id": id_at_head(head), "error": {"code": -32600, "message": text}}))

    async def _relay_answers(self) -> None:
        assert self._server.stdout is not None
        lines = FrameLines()
        while chunk := await self._server.stdout.read(CHUNK):
            for piece, is_whole in lines.feed(chunk):
                await self._from_server(piece, is_whole)
        if rest := lines.rest():
            await self._from_server(rest, True)

    async def _from_server(self, piece: bytes, is_whole: bool) -> None:
        if not is_whole:
            await self._answers.write(piece)  # a message that is too long to be read passes as it comes
        elif piece.lstrip()[:1] in (b"{", b"["):
            await self._interception.from_server(piece, self)
        elif piece.strip():
            print(piece[:_MOST_JUNK].decode("utf-8", "replace"), file=sys.stderr, flush=True)


def _signal(server: asyncio.subprocess.Process, sign: int) -> None:
    with suppress(ProcessLookupError):
        server.send_signal(sign)


async def serve_stdio(command: Sequence[str], shared: Shared) -> int:
    """Relay between this process's stdin and stdout and the command's; answers its exit code.

    Whatever else of this process prints lands on stderr meanwhile.
    """
    wire = os.dup(1)
    os.dup2(2, 1)
    proxy = StdioProxy(command, shared, read_from=0, write_to=wire)
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows a signal ends the process
            loop.add_signal_handler(each, proxy.stop)
    try:
        return await proxy.run()
    finally:
        await shared.memory.close()
