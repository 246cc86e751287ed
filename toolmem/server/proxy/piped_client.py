"""A host at this process's stdin and stdout, whatever the server is: one message a line."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import sys
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from toolmem.server.proxy.frames import MAX_FRAME, FrameLines, id_at_head, written
from toolmem.server.proxy.interception import Interception, Shared

log = logging.getLogger("toolmem.proxy")

CHUNK = 1 << 18


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


class PipedClient(ABC):
    """What reads the host's messages and has them passed to a server, until either ends."""

    def __init__(self, shared: Shared, *, read_from: int, write_to: int) -> None:
        self._shared = shared
        self._client = ByteSource(read_from)
        self._answers = ByteSink(write_to)
        self._interception = Interception(shared, session_of_host())
        self._rests: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Tell the server to end."""
        self._stopping.set()

    @abstractmethod
    async def run(self) -> int:
        """Relay until the end; answers the exit code."""

    @abstractmethod
    async def to_server(self, frame: bytes) -> None:
        """A message for the server."""

    async def to_client(self, frame: bytes) -> None:
        await self._answers.write(frame + b"\n")

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

    async def _from_client(self, line: bytes) -> Coroutine[Any, Any, None] | None:
        return await self._interception.from_client(line, self) if line.strip() else None

    def _go_on(self, rest: Coroutine[Any, Any, None] | None) -> None:
        """With what waits for somebody, while other messages pass."""
        if rest is not None:
            task = asyncio.create_task(rest)
            self._rests.add(task)
            task.add_done_callback(self._rests.discard)

    async def _refuse(self, head: bytes) -> None:
        """What is too long to be checked does not pass."""
        text = f"toolmem: not run: a message of more than {MAX_FRAME:,} bytes is not passed on"
        log.warning(text)
        await self.to_client(written({"id": id_at_head(head), "error": {"code": -32600, "message": text}}))

    async def _leave(self, *tasks: asyncio.Task[Any]) -> None:
        """End what still goes on, and note the calls that were not answered."""
        for task in (*tasks, *self._rests):
            task.cancel()
        await asyncio.gather(*tasks, *self._rests, return_exceptions=True)
        await self._interception.left()


@asynccontextmanager
async def own_output() -> AsyncIterator[int]:
    """Stdout as a descriptor that nothing else of this process can reach: what else prints lands on stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    yield wire  # it stays open: a thread may still write to it


def stopped_by_signals(client: PipedClient) -> None:
    """A SIGTERM or SIGINT ends the server, and then this process."""
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows a signal ends the process
            loop.add_signal_handler(each, client.stop)
