"""Judge a recording of tool calls, summarize every tool in it, and ask for the summary again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import toolmem
from toolmem.config.sections import OpSection
from toolmem.errors import RequestError
from toolmem.formats.files import read_lines
from toolmem.formats.records import read_records
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.models.protocols import Store
from toolmem.models.tools import ToolRecord
from toolmem.operations.results import Summarized
from toolmem.text.stopped_calls import was_stopped

WORKSPACE = "evaluate"
BATCH = 1000  # calls added at once
Progress = Callable[[int, int], None]  # (calls done, calls in all)


class EvaluatedCall(Struct, frozen=True):
    """A call of the recording, as it was judged and stored: secrets are masked.

    A call that was not judged has no input and output: it was stopped before it ran, or its id was
    known before this evaluation.
    """

    row: int  # its place in the recording, from 0
    call: ToolCallResult


class BadRecord(Struct, frozen=True):
    """A record that was not evaluated."""

    line: int  # from 1
    tool_name: str
    error: str


class Evaluation(Struct, kw_only=True):
    """What an evaluation found."""

    source: str  # the file's name
    calls: list[EvaluatedCall]  # in the order of the recording
    tools: list[ToolRecord]  # with their guidance, by name
    summary: Summarized
    second_summary: Summarized  # asked for with nothing new
    bad_records: list[BadRecord]
    duplicates: int  # calls whose id was known
    ignore_success: bool
    started_at: datetime
    seconds: float


class _Recorded(Struct):
    """The readable calls of a file, each with its row and line."""

    calls: list[ToolCallResult] = []
    rows: list[int] = []
    lines: list[int] = []
    bad_records: list[BadRecord] = []


def sample() -> tuple[Path, list[Any]]:
    """The packaged recording, and the schemas of its tools."""
    folder = Path(toolmem.__file__).parent / "data"
    return folder / "recording.calls.jsonl.gz", json.loads((folder / "tools.json").read_bytes())


def evaluate(
    path: str | os.PathLike[str],
    *,
    store: str = ":memory:",
    tools: Sequence[Any] = (),
    ignore_success: bool = False,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Judge the calls of a JSON Lines file, keep them in `store`, and summarize their tools twice.

    `tools`: their schemas. `ignore_success` withholds the recorded flag from the judge. `limit`:
    records that are read. Raises RequestError.
    """
    started_at = datetime.now(UTC)
    recorded = _read(path, ignore_success, limit, started_at)
    with ToolMem(store, workspace=WORKSPACE) as memory:
        services = memory.services
        started = services.clock.monotonic()
        kept = services.store(OpSection())
        newest = kept.call_log(WORKSPACE, newest=True, limit=1)
        duplicates = _add(memory, recorded, list(tools) or None, progress)
        names = sorted({call.tool_name for call in recorded.calls})
        summary = memory.summarize(names) if names else Summarized()
        second = memory.summarize(names) if names else Summarized()
        stored = _logged(kept, newest[-1].position if newest else 0)
        return Evaluation(
            source=os.path.basename(path),
            calls=_evaluated(recorded, stored),
            tools=kept.records(WORKSPACE, names),
            summary=summary,
            second_summary=second,
            bad_records=sorted(recorded.bad_records, key=lambda bad: bad.line),
            duplicates=duplicates,
            ignore_success=ignore_success,
            started_at=started_at,
            seconds=services.clock.monotonic() - started,
        )


def clear(store: str) -> None:
    """Forget earlier evaluations in a store. Raises RequestError where it holds anything else."""
    with ToolMem(store, workspace=WORKSPACE) as memory:
        kept = memory.services.store(OpSection())
        others = [name for name in kept.workspaces() if name != WORKSPACE]
        if others:
            raise RequestError(
                f"{store} holds the workspace {others[0]!r} and is not cleared; name it by --store "
                "to add to it, or choose another folder by --out",
                field="out",
            )
        if kept.tool_names(WORKSPACE):
            kept.delete_workspace(WORKSPACE)


def _read(
    path: str | os.PathLike[str], ignore_success: bool, limit: int | None, now: datetime
) -> _Recorded:
    recorded = _Recorded()
    records: list[Any] = []
    lines: list[int] = []
    for line in read_lines(path):
        if len(lines) == limit:
            break
        lines.append(line.number)
        record = line.value
        if line.error:
            recorded.bad_records.append(BadRecord(line.number, "", line.error))
        elif ignore_success and isinstance(record, Mapping):
            record = {**record, "success": None}
        records.append(record if not line.error else {})
    unread = {bad.line for bad in recorded.bad_records}
    read = read_records(records, now)
    for failure in read.failures:
        if lines[failure.index] not in unread:
            bad = BadRecord(lines[failure.index], failure.tool_name, failure.error)
            recorded.bad_records.append(bad)
    for row, call in read.calls:
        recorded.rows.append(row)
        recorded.lines.append(lines[row])
        recorded.calls.append(replace(call, id=call.id or os.urandom(12).hex()))
    return recorded


def _add(
    memory: ToolMem, recorded: _Recorded, tools: list[Any] | None, progress: Progress | None
) -> int:
    """Judge and store the calls, naming those that cannot be. How many ids were known."""
    duplicates, total = 0, len(recorded.calls)
    for start in range(0, total, BATCH):
        added = memory.add(recorded.calls[start : start + BATCH], tools=tools)
        duplicates += added.evaluation.duplicates
        recorded.bad_records += [
            BadRecord(recorded.lines[start + each.index], each.tool_name, each.error)
            for each in added.evaluation.failures
        ]
        if progress is not None:
            progress(min(start + BATCH, total), total)
    return duplicates


def _logged(store: Store, after: int) -> dict[tuple[str, str | None], ToolCallResult]:
    """The calls that were stored since a position, by tool and id."""
    found: dict[tuple[str, str | None], ToolCallResult] = {}
    while page := store.call_log(WORKSPACE, after=after, limit=BATCH):
        found |= {(each.call.tool_name, each.call.id): each.call for each in page}
        after = page[-1].position
    return found


def _evaluated(
    recorded: _Recorded, stored: Mapping[tuple[str, str | None], ToolCallResult]
) -> list[EvaluatedCall]:
    bad = {each.line for each in recorded.bad_records}
    found = []
    for row, line, call in zip(recorded.rows, recorded.lines, recorded.calls, strict=True):
        if line in bad:
            continue
        known = stored.get((call.tool_name, call.id))
        if known is None:
            status: Any = "denied" if was_stopped(call.output) else "pending"
            known = replace(
                call, input={}, output="", context="", metadata={}, evaluation_status=status
            )
        found.append(EvaluatedCall(row, known))
    return found
