"""Judge a recording of tool calls, and summarize every tool in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

import toolmem
from toolmem.config.sections import OpSection
from toolmem.formats.files import read_lines
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult
from toolmem.operations.results import Summarized, ToolOverview

WORKSPACE = "evaluate"
BATCH = 1000  # calls added at once
Progress = Callable[[int, int], None]  # (calls done, calls in all)


class BadRecord(Struct, frozen=True):
    """A line that was not evaluated."""

    line: int  # from 1
    tool_name: str
    error: str


class Evaluated(Struct):
    """What an evaluation found."""

    calls: list[ToolCallResult]  # in the order of the recording
    tools: list[ToolOverview]  # by name
    summary: Summarized
    bad_records: list[BadRecord]
    duplicates: int  # calls whose id was known


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
) -> Evaluated:
    """Judge the calls of a JSON Lines file, keep them in `store`, and summarize their tools.

    `ignore_success` withholds the recorded flag from the judge. Raises RequestError.
    """
    records, bad_records = _records(path, limit, ignore_success)
    duplicates = 0
    with ToolMem(store, workspace=WORKSPACE) as memory:
        for start in range(0, len(records), BATCH):
            batch = records[start : start + BATCH]
            added = memory.add([record for _, record in batch], tools=list(tools) or None)
            duplicates += added.evaluation.duplicates
            bad_records += [
                BadRecord(batch[each.index][0], each.tool_name, each.error)
                for each in added.evaluation.failures
            ]
            if progress is not None:
                progress(min(start + BATCH, len(records)), len(records))
        summary = memory.summarize()
        overviews = memory.tools()
        calls = list(_logged(memory))
    bad_records.sort(key=lambda each: each.line)
    return Evaluated(calls, overviews, summary, bad_records, duplicates)


def _records(
    path: str | os.PathLike[str], limit: int | None, ignore_success: bool
) -> tuple[list[tuple[int, Any]], list[BadRecord]]:
    records: list[tuple[int, Any]] = []
    bad_records: list[BadRecord] = []
    for line in read_lines(path):
        if limit is not None and len(records) + len(bad_records) >= limit:
            break
        if line.error:
            bad_records.append(BadRecord(line.number, "", line.error))
            continue
        record = line.value
        if ignore_success and isinstance(record, Mapping):
            record = {**record, "success": None}
        records.append((line.number, record))
    return records, bad_records


def _logged(memory: ToolMem) -> Iterator[ToolCallResult]:
    """Every call of the workspace that the store still holds, also those outside the windows."""
    store: Any = memory.services.store(OpSection())
    after = 0
    while page := store.call_log(memory.workspace_id, after=after, limit=BATCH):
        yield from (each.call for each in page)
        after = page[-1].position
