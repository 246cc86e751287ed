"""Recorded calls and conversations, in our own and in other people's formats, become `ToolCallResult`.

A file comes in by `files.read_file`, which looks at its content and hands it to one of the formats:

    calls_jsonl   one call per line, our own JSON Lines (plain or .gz; a JSON array too)
    openai_chat   OpenAI chat conversations: assistant `tool_calls` joined with their `tool` messages

Whatever the road, each call passes `call_records.read_record`, the one place that knows what a good record is. A bad
record is named and the others go on; a file without one good record is refused.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.formats.call_records import RecordNotes, RecordsRead, read_record, read_records
    from toolmem.formats.calls_jsonl import record_of, write_calls
    from toolmem.formats.files import FORMATS, read_file, recognize
    from toolmem.formats.imported import Format, Imported

_HOMES = {
    **dict.fromkeys(("record_of", "write_calls"), "calls_jsonl"),
    **dict.fromkeys(("Format", "Imported"), "imported"),
    **dict.fromkeys(("FORMATS", "read_file", "recognize"), "files"),
    **dict.fromkeys(("RecordNotes", "RecordsRead", "read_record", "read_records"), "call_records"),
}

__all__ = [
    "FORMATS",
    "Format",
    "Imported",
    "RecordNotes",
    "RecordsRead",
    "read_file",
    "read_record",
    "read_records",
    "recognize",
    "record_of",
    "write_calls",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"toolmem.formats.{_HOMES[name]}"), name)
