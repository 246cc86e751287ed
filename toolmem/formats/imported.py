"""What an importer hands back, the same for each format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from toolmem.formats.call_records import RecordsRead
from toolmem.models import ToolSchema

Format = Literal["calls", "openai"]


@dataclass(slots=True, kw_only=True)
class Imported(RecordsRead):
    """The calls of one file, in input order.

    A row is a recorded call, counted from 0; a bad record keeps its row, so that rows can be found again in the file:
    `calls` are (row, call), the `index` of a failure is its row (that of the next call, where it is none of a call).
    """

    format: Format
    tools: list[ToolSchema] = field(default_factory=list)  # declared in the file, each name once
    rows: int = 0  # recorded calls seen, good and bad
    conversations: int = 0  # read, in formats that have them
    unanswered: int = 0  # calls without an answer: counted, not imported
    notes: list[str] = field(default_factory=list)  # what a user should be told once, in plain words
