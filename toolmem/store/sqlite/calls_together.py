"""Calls of several tools in one commit, with what changes in keyed records because of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from toolmem.store.semantics import AppendCalls
from toolmem.store.sqlite import tool_writes
from toolmem.store.sqlite.keyed_records import SqliteRecordsOfCommit

if TYPE_CHECKING:
    import apsw

    from toolmem.protocols import EmbedderIdentity
    from toolmem.store.codec import GuidanceCache
    from toolmem.stored import Appended, BesideCalls, LogLimits


class CallsTogether:
    """`prepare` before the lock is taken, then `carry_out` inside the transaction."""

    def __init__(
        self,
        now: datetime,
        workspace: str,
        calls: Sequence[Any],
        keep: int,
        beside: BesideCalls,
        request: type[AppendCalls] = AppendCalls,
    ) -> None:
        self._now = now
        self._workspace = workspace
        self._calls = calls
        self._beside = beside
        by_tool: dict[str, list[Any]] = {}
        for call in calls:
            by_tool.setdefault(call.tool_name, []).append(call)
        self._requests = {
            tool: request(now, workspace, tool, partial(tuple, given), keep) for tool, given in by_tool.items()
        }

    def prepare(self) -> None:
        for request in self._requests.values():
            request.prepare()
        self._beside.prepare(self._calls)

    def carry_out(
        self, db: apsw.Connection, guidance: GuidanceCache, embedder: EmbedderIdentity | None, limits: LogLimits
    ) -> dict[str, Appended]:
        """What became of the calls, by tool."""
        appended = {
            tool: tool_writes.commit(db, request, guidance, embedder, limits).answer()
            for tool, request in self._requests.items()
        }
        self._beside.change(SqliteRecordsOfCommit(db, self._workspace, self._now), appended)
        return appended
