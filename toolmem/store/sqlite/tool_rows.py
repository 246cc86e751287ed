"""The row of a tool: reading it, writing it, and the record that the outside gets of it."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import apsw

from toolmem.models import Guidance, LifetimeCounters, ToolCallResult, ToolRecord
from toolmem.store.codec import (
    MAX_INTEGER,
    Ranges,
    clip,
    members,
    micros,
    moment,
    read_ranges,
    storable,
    write_ranges,
)
from toolmem.store.sqlite.caches import copied
from toolmem.store.sqlite.lookup import one, workspace_id

logger = logging.getLogger("toolmem.store")

_COUNTERS = "calls, successes, failures, judged, score_sum, time_calls, time_sum, token_calls, token_sum, since"
_COLUMNS = (
    "tools.id, name, memory_id, id_stem, version, guidance_version, first_seq, last_seq, covered, unjudged, "
    f"{_COUNTERS}, time_created, time_modified"
)
_BY_NAME = (
    f"SELECT {_COLUMNS}, guidance.value FROM tools LEFT JOIN guidance ON guidance.tool = tools.id "
    "WHERE workspace = ? AND name = ?"
)
_ALL = f"SELECT {_COLUMNS}, NULL FROM tools WHERE workspace = ? ORDER BY name"
# CROSS JOIN: the names come first, each is one step down the index of tools.
_BY_NAMES = (
    f"SELECT {_COLUMNS}, NULL FROM json_each(?) AS asked CROSS JOIN tools ON workspace = ? AND name = asked.value "
    "ORDER BY asked.key"
)


@dataclass(slots=True)
class ToolRow:
    """One row of `tools`; times in microseconds."""

    id: int
    name: str
    memory_id: str
    id_stem: str
    version: int
    guidance_version: int
    first_seq: int
    last_seq: int
    covered: Ranges
    unjudged: Ranges
    counters: LifetimeCounters = field(repr=False)
    time_created: int
    time_modified: int
    guidance: str | None = field(default=None, repr=False)  # JSON

    @property
    def kept(self) -> int:
        return self.last_seq - self.first_seq + 1

    def assigned_id(self, seq: int) -> str:
        """The id that the store gives to a call that came without one."""
        return f"{self.id_stem}-{seq}"

    def assigned(self, call_id: str) -> bool:
        """Whether this is an id that the store itself has given away."""
        stem, dash, number = call_id.rpartition("-")
        if not dash or stem != self.id_stem or not number.isascii() or not number.isdecimal():
            return False
        return number[0] != "0" and len(number) <= 12 and int(number) <= self.last_seq

    def key(self, seq: int) -> int:
        return self.id << 32 | seq

    def prune(self) -> None:
        """Coverage and missing verdicts speak of kept calls only, so that the row never grows with the history."""
        self.covered = clip(self.covered, self.first_seq, self.last_seq)
        self.unjudged = clip(self.unjudged, self.first_seq, self.last_seq)


def fresh(name: str, now: int, memory_id: str | None = None) -> ToolRow:
    """A tool that the store does not know yet. `id_stem` is never taken over from elsewhere: two stores that hold
    the same tool must not give the same id to two calls."""
    return ToolRow(
        id=0,
        name=name,
        memory_id=memory_id or uuid.uuid4().hex,
        id_stem=uuid.uuid4().hex[:16],
        version=0,
        guidance_version=0,
        first_seq=1,
        last_seq=0,
        covered=[],
        unjudged=[],
        counters=LifetimeCounters(),
        time_created=now,
        time_modified=now,
    )


def read_tool(db: apsw.Connection, workspace: int | None, name: str) -> ToolRow | None:
    if workspace is None or not storable(name):
        return None
    row = one(db, _BY_NAME, workspace, name)
    return None if row is None else _tool_row(row)


def read_tools(db: apsw.Connection, workspace: str, names: list[str] | None) -> list[ToolRow]:
    """In the order asked, missing ones absent; None: all, by name. Without their guidance: see `add_guidance`."""
    number = workspace_id(db, workspace)
    if number is None:
        return []
    if names is None:
        return [_tool_row(row) for row in db.execute(_ALL, (number,))]
    asked = json.dumps([name for name in names if storable(name)])
    return [_tool_row(row) for row in db.execute(_BY_NAMES, (asked, number))]


def add_guidance(db: apsw.Connection, row: ToolRow) -> ToolRow:
    row.guidance = next((text for (text,) in db.execute("SELECT value FROM guidance WHERE tool = ?", (row.id,))), None)
    return row


def _tool_row(row: Any) -> ToolRow:
    since = row[19]
    number, name, memory_id, id_stem, version, guidance_version, first_seq, last_seq = row[:8]
    return ToolRow(
        number,
        name,
        memory_id,
        id_stem,
        version,
        guidance_version,
        first_seq,
        last_seq,
        _ranges(name, row[8]),
        _ranges(name, row[9]),
        LifetimeCounters(
            calls=row[10],
            successes=row[11],
            failures=row[12],
            judged=row[13],
            score_sum=row[14],
            time_calls=row[15],
            time_sum=row[16],
            token_calls=row[17],
            token_sum=row[18],
            since=None if since is None else moment(since),
        ),
        row[20],
        row[21],
        row[22],
    )


def _ranges(tool: str, text: str) -> Ranges:
    try:
        return read_ranges(text)
    except (ValueError, TypeError):
        logger.error("the coverage of tool %r is damaged: its kept calls count as new", tool)
        return []


def write_tool(db: apsw.Connection, workspace: int, row: ToolRow) -> None:
    """Insert (id 0) or update; counts as a commit of the record."""
    row.version += 1
    counters = row.counters
    values = (
        row.version,
        row.guidance_version,
        row.first_seq,
        row.last_seq,
        write_ranges(row.covered),
        write_ranges(row.unjudged),
        counters.calls,
        counters.successes,
        counters.failures,
        counters.judged,
        counters.score_sum,
        counters.time_calls,
        counters.time_sum,
        counters.token_calls,
        counters.token_sum,
        None if counters.since is None else micros(counters.since),
        row.time_modified,
    )
    if row.id:
        db.execute(_UPDATE, (*values, row.id))
    else:
        db.execute(_INSERT, (*values, workspace, row.name, row.memory_id, row.id_stem, row.time_created))
        row.id = db.last_insert_rowid()


_WRITTEN = f"version, guidance_version, first_seq, last_seq, covered, unjudged, {_COUNTERS}, time_modified"
_UPDATE = f"UPDATE tools SET {', '.join(f'{column} = ?' for column in _WRITTEN.split(', '))} WHERE id = ?"
_INSERT = (
    f"INSERT INTO tools ({_WRITTEN}, workspace, name, memory_id, id_stem, time_created) "
    f"VALUES ({', '.join('?' * (len(_WRITTEN.split(', ')) + 5))})"
)


def read_guidance(tool: ToolRow) -> Guidance | None:
    """A guidance that cannot be read any more is logged and treated as absent: the tool is summarized again."""
    if tool.guidance is None:
        return None
    try:
        parsed = _parsed_guidance(tool.guidance)
    except ValueError as error:
        logger.error("the guidance of tool %r is damaged and left out: %s", tool.name, type(error).__name__)
        return None
    return copied(parsed)


@lru_cache(maxsize=4096)
def _parsed_guidance(text: str) -> Guidance:
    """Parsing is nine tenths of reading a record. Shared between threads: hand out copies only."""
    return Guidance.model_validate_json(text)


def record_of(workspace: str, row: ToolRow) -> ToolRecord:
    return record_with(workspace, row, read_guidance(row))


def record_with(workspace: str, row: ToolRow, guidance: Guidance | None) -> ToolRecord:
    return ToolRecord(
        workspace=workspace,
        tool_name=row.name,
        memory_id=row.memory_id,
        version=row.version,
        guidance_version=row.guidance_version,
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        covered=list(row.covered),
        unjudged=sorted(members(row.unjudged)),
        counters=row.counters,
        guidance=guidance,
        time_created=moment(row.time_created),
        time_modified=moment(row.time_modified),
    )


def count(counters: LifetimeCounters, calls: Sequence[ToolCallResult]) -> None:
    """Add calls to the lifetime counters."""
    # One assignment for all: assigning to a field of a model costs as much as a row does.
    outcomes = [call.failed for call in calls]
    scores = [call.score for call in calls if call.score is not None]
    times = [call.time_cost for call in calls if call.time_cost is not None]
    tokens = [call.token_cost for call in calls if call.token_cost is not None]
    counters.calls += len(calls)
    counters.failures += outcomes.count(True)
    counters.successes += outcomes.count(False)
    counters.judged += len(scores)
    counters.score_sum = sum(scores, counters.score_sum)
    counters.time_calls += len(times)
    counters.time_sum = sum(times, counters.time_sum)
    counters.token_calls += len(tokens)
    counters.token_sum = min(sum(tokens, counters.token_sum), MAX_INTEGER)
    oldest = moment(min(micros(call.create_time) for call in calls))
    counters.since = oldest if counters.since is None else min(counters.since, oldest)


def count_outcome(counters: LifetimeCounters, call: ToolCallResult, sign: int) -> None:
    """Add (1) or take back (-1) what a call says of success and score."""
    if call.failed is not None:
        if call.failed:
            counters.failures += sign
        else:
            counters.successes += sign
    if call.score is not None:
        counters.judged += sign
        counters.score_sum += sign * call.score
