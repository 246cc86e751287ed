"""Progress of a flow as MCP notifications: a figure that only grows, at most some twenty times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from toolmem.flow.report import Event

Send = Callable[[float, float | None, str | None], Awaitable[None]]  # progress, total, message

INTERVAL = 0.05  # seconds between two notifications
_WATCHING: ContextVar[ProgressNotifications | None] = ContextVar("toolmem_mcp_progress", default=None)


def tell_progress(event: Event) -> None:
    """A listener of the app: hands the event to the request on whose behalf the flow runs, if it wants progress."""
    progress = _WATCHING.get()
    if progress is not None:
        progress.tell(event)


class ProgressNotifications:
    """Follows one flow, between `async with`. `total` is the number of its ops; an op counts by the share it has done.

    A client that reads slowly gets fewer notifications, never old ones.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._total = 0
        self._shares: dict[str, float] = {}  # op -> how much of it is done, 0 to 1
        self._message = ""
        self._sent = -1.0
        self._news = asyncio.Event()

    def tell(self, event: Event) -> None:
        """Take in an event of the flow; what it says is sent when its time comes."""
        if event.kind == "flow_started":
            self._total = event.total
            return
        if event.kind == "progress" and event.total:
            self._shares[event.op] = event.done / event.total
            self._message = f"{event.op}: {event.done} of {event.total} {event.message}".rstrip()
        elif event.kind == "op_finished":
            self._shares[event.op] = 1.0
            self._message = f"{event.op}: {event.message}"
        elif event.kind == "notice":
            self._message = event.message
        else:
            return
        self._news.set()

    async def __aenter__(self) -> ProgressNotifications:
        self._token = _WATCHING.set(self)
        self._pump = asyncio.create_task(self._keep_sending())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _WATCHING.reset(self._token)
        self._pump.cancel()
        await asyncio.wait([self._pump])
        if kind is None:
            await self._send_latest()

    async def _keep_sending(self) -> None:
        while True:
            await self._news.wait()
            await self._send_latest()
            await asyncio.sleep(INTERVAL)

    async def _send_latest(self) -> None:
        self._news.clear()
        done = round(sum(self._shares.values()), 6)
        if self._message and done > self._sent:
            await self._send(done, float(self._total) or None, self._message)
            self._sent = done
