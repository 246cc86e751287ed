"""The layer that admits requests: whose, and how many at once. Shared by the HTTP and the MCP service."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from toolmem.server.http.access import AccessControl
from toolmem.server.http.responses import BUSY_PAUSE, JsonAnswer, refusal


class AccessLayer:
    """Answers a request that is refused. `limit`: requests at once; `always_up`: the path that never waits for a place.

    uvicorn's own `limit_concurrency` counts idle connections too, turns `/health` away, and answers in plain text.
    """

    def __init__(
        self,
        inner: ASGIApp,
        access: AccessControl,
        *,
        origins: Sequence[str] = (),
        limit: int | None = None,
        always_up: str = "",
    ) -> None:
        self._inner = inner
        self._access = access
        self._origins = origins
        self._limit = limit
        self._always_up = always_up
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refused(scope) if scope["type"] == "http" else None
        if answer is not None:
            await answer(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._inner(scope, receive, send)
        finally:
            self._inside -= 1

    def _refused(self, scope: Scope) -> JsonAnswer | None:
        headers, waits = scope["headers"], scope["path"] != self._always_up
        # Whether the service is up may be known to everybody; what it is made of may not.
        openly = not waits and not any(name == b"authorization" for name, _ in headers)
        if denied := self._access.refuses(headers, self._origins, openly=openly):
            return refusal(denied.status, denied.message, kind=denied.kind, headers=denied.headers)
        if self._limit is not None and self._inside >= self._limit and waits:
            message = f"{self._limit} requests are under way (http.limit_concurrency); ask again"
            return refusal(503, message, kind="Busy", headers={"Retry-After": str(BUSY_PAUSE)})
        return None
