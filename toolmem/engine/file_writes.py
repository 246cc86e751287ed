"""Calls as a store file takes them in: a hook that only asks writes nothing, and loads none of this."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolmem.store.codec import GuidanceCache
from toolmem.store.semantics import AppendCalls, ToolRow
from toolmem.store.sqlite import tool_writes
from toolmem.store.sqlite.calls_together import CallsTogether

if TYPE_CHECKING:
    from toolmem.store.sqlite.open_file import OpenFile
    from toolmem.stored import Appended, BesideCalls, LogLimits


def append(
    file: OpenFile, limits: LogLimits, now: datetime, workspace: str, tool: str, calls: Sequence[Any], keep: int
) -> Appended:
    """One transaction. `record` of the answer is None."""
    request = _KeepCalls(now, workspace, tool, lambda: calls, keep)
    request.prepare()
    return file.write(lambda db: tool_writes.commit(db, request, _NoGuidance(), None, limits)).answer()


def append_with(
    file: OpenFile,
    limits: LogLimits,
    now: datetime,
    workspace: str,
    calls: Sequence[Any],
    keep: int,
    beside: BesideCalls,
) -> dict[str, Appended]:
    """As `append`, of calls of any tools, and what changes beside them in the same transaction; by tool."""
    work = CallsTogether(now, workspace, calls, keep, beside, _KeepCalls)
    work.prepare()
    return file.write(lambda db: work.carry_out(db, _NoGuidance(), None, limits))


class _KeepCalls(AppendCalls):
    """Answers no record: that is a model of its own."""

    def _answer(self, row: ToolRow | None, stored: int, duplicates: tuple[int, ...], trimmed: int) -> Appended:
        return super()._answer(None, stored, duplicates, trimmed)


class _NoGuidance(GuidanceCache):
    """A call changes no guidance, so nobody reads it."""

    def get(self, key: Hashable, tool: str, read: Callable[[], str | None]) -> None:
        return None
