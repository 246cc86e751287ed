"""What an importer hands back, the same for each format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from toolmem.models import ToolCallResult, ToolSchema
from toolmem.stored import CallFailure

Format = Literal["calls", "openai"]


@dataclass(slots=True)
class Imported:
    """The calls of one file, in input order.

    A row is a recorded call, counted from 0; a bad record keeps its row, so that rows can be found again in the file.
    """

    format: Format
    calls: list[tuple[int, ToolCallResult]] = field(default_factory=list)  # (row, call)
    tools: list[ToolSchema] = field(default_factory=list)  # declared in the file, each name once
    failures: list[CallFailure] = field(default_factory=list)  # index: the row (of the next call, where there is none)
    rows: int = 0  # recorded calls seen, good and bad
    conversations: int = 0  # read, in formats that have them
    unanswered: int = 0  # calls without an answer: counted, not imported
    repaired_surrogates: int = 0
    naive_times: int = 0  # times without a zone, read in `time_zone`
    timeless: int = 0  # calls without a time of their own: they carry the time of the import
    notes: list[str] = field(default_factory=list)  # what a user should be told once, in plain words
