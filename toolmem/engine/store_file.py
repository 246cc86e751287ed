"""The embedded store in the hands of one thread: the same tables and transactions, without an event loop.

Opening it and what it refuses are the store's own (`toolmem.store.sqlite.connection`). A store on a
server is reached through `toolmem serve`.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolmem.late import late_logger
from toolmem.light_models import GuidanceLines
from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX
from toolmem.store.keyed import RecordStore
from toolmem.store.sqlite import keyed_records
from toolmem.store.sqlite.connection import can_be_written, location_of, open_read_only, open_writer
from toolmem.store.sqlite.open_file import OpenFile
from toolmem.stored import LogLimits

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

    from toolmem.engine.guarding import CallGuard
    from toolmem.errors import StoreDamaged
    from toolmem.protocols import MemoryStore
    from toolmem.store.keyed import PutRecord
    from toolmem.stored import Appended, BesideCalls, LoggedCall, LoggedDecision, RawRecord, Stamped

logger = late_logger("toolmem.engine")

T = TypeVar("T")

BUSY_TIMEOUT = 5.0  # seconds: the agent waits


class MachineClock:
    """The machine's time, for work that no event loop runs."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # no loop runs it


class StoreFile(RecordStore):
    """What the engine needs of `MemoryStore`. Its coroutines wait for nothing: each ends at its first step.

    A file that is not there is made by the first write; one that may not be written is read. Used by the thread that
    opened it. Raises StoreUnavailable or StoreVersionError.
    """

    held = False  # whether who opened it holds an agent to its rules

    def __init__(self, path: str | Path, *, busy_timeout: float = BUSY_TIMEOUT, log: LogLimits | None = None) -> None:
        self.location = place = location_of(path)
        self.clock = self._clock = MachineClock()
        opened = partial(open_read_only, place, busy_timeout)
        if can_be_written(place):
            opened = partial(open_writer, place, "FULL", busy_timeout)
        self._file = OpenFile(opened, place, busy_timeout)
        self._limits = log or LogLimits()
        self.guards: dict[Hashable, CallGuard] = {}  # what the guard holds in memory, as long as the file is open

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> StoreFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def protocol(self) -> MemoryStore:
        """As the rule store and the masks are handed a store; what they do not ask for is not there."""
        return cast("MemoryStore", self)

    def make(self) -> StoreFile:
        """The file, where it is not there yet; this store."""
        self._file.make()
        return self

    @property
    def is_made(self) -> bool:
        """False where there is no file, and nothing was written."""
        return self._file.is_made

    @property
    def damage(self) -> StoreDamaged | None:
        """What a read or a write found, though whoever asked for it went on."""
        return self._file.damage

    def is_known(self) -> bool:
        """Did this user make the store, or trust it? One that is not there yet will be this user's."""
        from toolmem.store.known_stores import is_known, read_id

        return not self.is_made or is_known(self.location, self._file.read(read_id))

    def tool_names(self, workspace: str, most: int) -> list[str]:
        """The tools that have calls, by name; no more than so many, the newest."""
        from toolmem.store.sqlite import tool_reads

        rows = self._file.read(lambda db: tool_reads.read_tools(db, workspace, None))
        return sorted(row.name for row in sorted(rows, key=lambda row: row.time_modified, reverse=True)[:most])

    # -- what the prompt is made of

    def prompt_rows(
        self, workspace: str, namespaces: Sequence[str] | None, tools: Sequence[str]
    ) -> tuple[list[RawRecord], list[tuple[str, GuidanceLines]]]:
        """The records of rules (None: of all tools), and the guidance of these tools, of one moment of the store."""
        from toolmem.store.sqlite import tool_reads

        def rows(db: apsw.Connection) -> tuple[list[RawRecord], list[tuple[str, str | None]]]:
            rules = keyed_records.list_raw(db, workspace, namespaces, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
            known = tool_reads.read_tools(db, workspace, list(tools)) if tools else []
            return rules, [(row.name, tool_reads.guidance_text(db, row)) for row in known]

        records, known = self._file.read(rows)
        return records, [(tool, lines) for tool, text in known if (lines := _guidance_lines(tool, text)) is not None]

    # -- keyed records

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        return self._file.read(lambda db: keyed_records.get(db, workspace, namespace, key))

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> list[RawRecord]:
        return self._file.read(
            lambda db: keyed_records.list_raw(db, workspace, namespaces, prefix=prefix, key_prefix=key_prefix)
        )

    async def _put(self, record: PutRecord) -> RawRecord:
        return self._file.write(lambda db: keyed_records.put(db, record, None))

    async def read_stamped(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
        return self._file.read(lambda db: keyed_records.read_stamped(db, workspace, keys))

    async def delete(self, workspace: str, namespace: str, key: str) -> bool:
        return self._file.write(lambda db: keyed_records.delete(db, workspace, namespace, key))

    # -- calls and decisions

    async def append_calls(self, workspace: str, tool: str, calls: Sequence[Any], keep: int) -> Appended:
        """`record` of the answer is None."""
        from toolmem.engine.file_writes import append

        return append(self._file, self._limits, self.clock.now(), workspace, tool, calls, keep)

    async def append_with(
        self, workspace: str, calls: Sequence[Any], keep: int, beside: BesideCalls
    ) -> dict[str, Appended]:
        """As `append_calls`, of calls of any tools, and what changes beside them in the same commit; by tool."""
        from toolmem.engine.file_writes import append_with

        return append_with(self._file, self._limits, self.clock.now(), workspace, calls, keep, beside)

    async def call_log(
        self, workspace: str, *, tool: str | None = None, newest: bool = False, limit: int = 1000
    ) -> list[LoggedCall]:
        """As `MemoryStore.call_log`; loads the models of calls, which no call of an agent waits for."""
        from toolmem.store.sqlite import call_log

        return self._file.read(lambda db: call_log.read(db, workspace, tool=tool, newest=newest, limit=limit))

    async def log_decision(self, workspace: str, decision: LoggedDecision) -> None:
        from toolmem.store.logged_decisions import decision_json
        from toolmem.store.sqlite import decision_log

        text, most = decision_json(workspace, decision), self._limits.max_decisions
        self._file.write(lambda db: decision_log.write(db, workspace, decision, text, most))

    async def decisions(self, workspace: str, **asked: Any) -> list[LoggedDecision]:
        from toolmem.store.sqlite import decision_log

        return self._file.read(lambda db: decision_log.read(db, workspace, **asked))


def _guidance_lines(tool: str, text: str | None) -> GuidanceLines | None:
    """None where there is none, or it cannot be read any more."""
    try:
        return None if text is None else GuidanceLines.model_validate_json(text)
    except ValueError as error:
        logger.error("the guidance of tool %r is damaged and left out: %s", tool, type(error).__name__)
        return None
