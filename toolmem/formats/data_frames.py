"""Recordings and other rows as pandas DataFrames, which Parquet and CSV files can hold.

Types of columns are those of the fields, whatever the rows hold: "string", "boolean", "Int64",
float64 and datetime64[us, UTC]. A field that may hold an object or a list is JSON text, for neither
file has a type for objects of different keys. A text of such a field is the text itself.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, inspect
from msgspec.structs import asdict, fields

from toolmem.errors import RequestError
from toolmem.formats.recording import BadRecord, ReadCall, RecordingReader
from toolmem.models.calls import ToolCallResult
from toolmem.text.display import plain

if TYPE_CHECKING:
    import pandas as pd

MAX_BAD = 1_000  # bad records that a frame carries: pandas copies them with each of its results
_TYPES = {
    inspect.BoolType: "boolean",
    inspect.IntType: "Int64",
    inspect.FloatType: "float64",
    inspect.DateTimeType: "datetime64[us, UTC]",
}


def read_calls(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """The calls of recordings as a pandas DataFrame, in the columns of `memory.calls().to_frame()`.

    `paths`: files and folders in any format that `toolmem import` reads, which is recognized unless
    `format` or `mapping` is given. Calls are not judged, and secrets in them are not masked.
    `input` and `metadata` are JSON text (an input that is a text is itself), so that
    `frame.to_parquet(path)` (with pyarrow) and `frame.to_csv(path)` hold them; these files can be
    read here, imported and evaluated. A time that a recording does not tell is NaT.

    `frame.attrs["bad_records"]` has the first 1,000 records that could not be read: line,
    tool_name, error, file. `frame.attrs["notes"]` says what else was left out or guessed. A
    UserWarning tells of both. Raises RequestError where a file cannot be read.
    """
    _pandas()  # before a long file is read
    now = datetime.now(UTC)
    reader = RecordingReader(now, format=format, mapping=mapping)
    calls: list[ToolCallResult] = []
    bad: list[BadRecord] = []
    bad_count = 0
    for each in reader.read([paths] if isinstance(paths, str | os.PathLike) else paths):
        if isinstance(each, ReadCall):
            calls.append(each.call)
        elif isinstance(each, BadRecord):
            bad_count += 1
            bad += [each][: MAX_BAD - len(bad)]
    frame = frame_of(ToolCallResult, calls)
    frame["create_time"] = frame["create_time"].mask(frame["create_time"] == now)
    notes = reader.all_notes()
    frame.attrs = {"bad_records": [asdict(each) for each in bad], "notes": notes}
    if bad:
        first = plain(f"{bad[0].place}: {bad[0].error}", 300)
        count = f"{bad_count:,} of {bad_count + len(calls):,} records could not be read"
        notes = [f"{count}; {first}", *notes]
    if notes:
        text = "; ".join(plain(note, 400) for note in notes)
        warnings.warn(f"{text} (see the frame's .attrs)", stacklevel=2)
    return frame


def frame_of(kind: type[Struct], rows: Sequence[Struct]) -> pd.DataFrame:
    """A row for each item, a column for each field; of calls, `conversation_id` too.

    Raises RequestError where pandas is not installed.
    """
    pandas = _pandas()
    types = {each.name: _type(each.type) for each in fields(kind)}
    if kind is ToolCallResult:
        types["conversation_id"] = "string"
    columns = {}
    for name, dtype in types.items():
        values = [getattr(row, name) for row in rows]
        values = [_text(each) for each in values] if dtype == "string" else values
        columns[name] = pandas.Series(values, dtype=dtype)
    return pandas.DataFrame(columns)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        problem = "a DataFrame needs pandas: pip install pandas, or toolmem[research]"
        raise RequestError(problem) from None
    return pandas


def _type(annotation: Any) -> str:
    """The dtype of a field. What may be of several types is text."""
    info = inspect.type_info(annotation)
    members = info.types if isinstance(info, inspect.UnionType) else (info,)
    found = {
        _TYPES.get(type(each), "string")
        for each in members
        if not isinstance(each, inspect.NoneType)
    }
    return found.pop() if len(found) == 1 else "string"


def _text(value: Any) -> str | None:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return None if value is None else str(value)
