"""The proxy between a host's pipes and a server that it starts as a child process."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from toolmem.server.proxy.frames import FrameLines
from toolmem.server.proxy.interception import Shared
from toolmem.server.proxy.piped_client import CHUNK, PipedClient, own_output, stopped_by_signals

log = logging.getLogger("toolmem.proxy")

_GRACE = 5.0  # seconds that a server gets to end by itself once its stdin is closed, and once it is told to
_NOT_FOUND, _NOT_STARTED = 127, 126  # exit codes, as a shell has them
_MOST_JUNK = 2000  # characters of a line that is no message, on stderr


class ChildProxy(PipedClient):
    """One host, one child process, until either ends."""

    def __init__(self, command: Sequence[str], shared: Shared, *, read_from: int, write_to: int) -> None:
        super().__init__(shared, read_from=read_from, write_to=write_to)
        self._command = list(command)

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
        await self._leave(answers, requests, *ends)
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

    async def to_server(self, frame: bytes) -> None:
        await self._to_server(frame + b"\n")

    async def _to_server(self, data: bytes) -> None:
        assert self._server.stdin is not None
        with suppress(ConnectionError):  # it has ended, which its exit code tells
            self._server.stdin.write(data)
            await self._server.stdin.drain()

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


async def serve_child(command: Sequence[str], shared: Shared) -> int:
    """Relay between this process's stdin and stdout and the command's; answers its exit code."""
    async with own_output() as wire:
        proxy = ChildProxy(command, shared, read_from=0, write_to=wire)
        stopped_by_signals(proxy)
        try:
            return await proxy.run()
        finally:
            await shared.memory.close()
