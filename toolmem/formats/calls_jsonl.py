"""Our own JSON Lines: one tool call per line, `tool_name`, `input`, `output`, `success`, `create_time`, ..."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from toolmem.errors import RecordError
from toolmem.formats.call_records import GIVEN, JUDGED, misspelt_in_words, read_record
from toolmem.formats.imported import Imported
from toolmem.formats.lines import Entry
from toolmem.models import ToolCallResult
from toolmem.protocols import Clock
from toolmem.stored import CallFailure

_NOT_WRITTEN = frozenset({"seq"})  # the store that reads the call counts anew


def read_calls(
    entries: Iterable[Entry], *, clock: Clock, time_zone: str, limit: int | None = None, trust: bool = False
) -> Imported:
    """Each entry is a call; its row is its position among the entries, bad ones counted. `limit`: rows to read."""
    imported = Imported(format="calls")
    for row, entry in enumerate(islice(entries, limit)):
        imported.rows = row + 1
        if entry.problem:
            imported.failures.append(CallFailure(row, "", f"{entry.place}: {entry.problem}"))
            continue
        try:
            call = read_record(entry.value, row, clock=clock, time_zone=time_zone, notes=imported, trust=trust)
        except RecordError as error:
            imported.failures.append(CallFailure(row, error.tool_name or "", f"{entry.place}: {error}"))
        else:
            imported.calls.append((row, call))
    imported.notes += misspelt_in_words(imported.misspelt)
    return imported


def is_call(value: Any) -> bool:
    """Does this look like a record of this format?"""
    return isinstance(value, Mapping) and "tool_name" in value


def record_of(call: ToolCallResult, *, judged: bool = False) -> dict[str, Any]:
    """The JSON object of a call, as `read_record` reads it. `judged`: with the verdict (read it back with `trust`)."""
    names = [*GIVEN, *(name for name in JUDGED if judged and name not in _NOT_WRITTEN)]
    record = call.model_dump(mode="json", include=set(names))
    if call.id is None:
        del record["id"]
    if not call.context:
        del record["context"]
    return {name: record[name] for name in names if name in record}


def write_calls(path: str | Path, calls: Iterable[ToolCallResult], *, judged: bool = False) -> int:
    """Write one call per line; compressed where the name ends in .gz. The same calls give the same bytes.

    Returns the number of calls written.
    """
    path = Path(path)
    written = 0
    with ExitStack() as stack:
        raw: IO[bytes] = stack.enter_context(path.open("wb"))
        if path.suffix == ".gz":  # no name and no time inside, so that the bytes depend on the calls alone
            raw = stack.enter_context(cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)))
        file = stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))
        for call in calls:
            file.write(json.dumps(record_of(call, judged=judged), ensure_ascii=False) + "\n")
            written += 1
    return written
