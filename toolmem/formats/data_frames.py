"""Calls and other rows as pandas DataFrames that Parquet and CSV files can hold.

A column has the type of its field, whatever the rows hold. A field that may be an object or a list
is JSON text, because neither file has a type for objects with different keys.
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
    inspect.NoneType: None,
}


def read_calls(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """The calls of recordings as a pandas DataFrame, in the columns of `memory.calls().to_frame()`.

    `paths`: files and folders that `toolmem import` can read, in a format that is recognized unless
    `format` or `mapping` is given. Calls are not judged, and secrets in them are not masked.
    `metadata`, and `input` where it is no text, are JSON text. So `frame.to_parquet(path)` (needs
    pyarrow) and `frame.to_csv(path)` hold all of a call, and these files can be read here, imported
    and evaluated. A time that is not recorded is NaT.

    A UserWarning says what could not be read or was left out: `frame.attrs["bad_records"]` (the
    first 1,000) and `frame.attrs["notes"]`. Raises RequestError if a file cannot be read.
    """
    _pandas()  # before a long file is read
    now = datetime.now(UTC)
    reader = RecordingReader(now, format=format, mapping=mapping)
    found = list(reader.read([paths] if isinstance(paths, str | os.PathLike) else paths))
    frame = frame_of(ToolCallResult, [each.call for each in found if isinstance(each, ReadCall)])
    frame["create_time"] = frame["create_time"].mask(frame["create_time"] == now)
    bad = [each for each in found if isinstance(each, BadRecord)]
    notes = reader.all_notes()
    frame.attrs = {"bad_records": [asdict(each) for each in bad[:MAX_BAD]], "notes": notes}
    if bad:
        count = f"{len(bad):,} of {len(bad) + len(frame):,} records could not be read"
        notes = [f"{count}; {bad[0].place}: {bad[0].error}", *notes]
    if notes:
        text = "; ".join(plain(note, 400) for note in notes[:8])
        warnings.warn(f"{text} (see the frame's .attrs)", stacklevel=2)
    return frame


def frame_of(kind: type[Struct], rows: Sequence[Struct]) -> pd.DataFrame:
    """Make a DataFrame of structs: a column for each field, and `conversation_id` for calls.

    Raises RequestError if pandas is not installed.
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
    """The dtype of a field. A field of several types is text."""
    info = inspect.type_info(annotation)
    members = info.types if isinstance(info, inspect.UnionType) else (info,)
    found = {_TYPES.get(type(each), "string") for each in members} - {None}
    return (found.pop() if len(found) == 1 else None) or "string"


def _text(value: Any) -> str | None:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return None if value is None else str(value)
