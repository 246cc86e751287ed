"""Calls by id as the report shows them, and what followed each in its conversation: a line of each, cut to size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

from toolmem.guidance.outcomes import conversations, went_wrong
from toolmem.models import ToolCallResult
from toolmem.pages.rendering import clip
from toolmem.readers.plain_text import name_shown
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.recorded import input_text

MOST_CHARACTERS = 160  # of an input, and of an output
MOST_READ = 20_000  # of an output that is cut to them


class RecordedCalls:
    """The calls of an evaluation, and those that its store kept from before."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._rows = rows_by_id(evaluation)
        kept = (call for memory in evaluation.memories for call in memory.tool_call_results)
        self._calls = {call.id: call for call in (*kept, *evaluation.calls) if call.id is not None}
        self._zone = ZoneInfo(evaluation.time_zone)
        self._next: dict[str, str] = {}  # the call after it in its conversation
        self._next_of_tool: dict[str, str] = {}
        self._follow()

    def _follow(self) -> None:
        ids, calls = [*self._calls], [*self._calls.values()]
        for group in conversations(calls).told:
            self._next |= {ids[a]: ids[b] for a, b in pairwise(group)}
            latest: dict[str, int] = {}
            for position in group:
                before = latest.get(calls[position].tool_name)
                if before is not None:
                    self._next_of_tool[ids[before]] = ids[position]
                latest[calls[position].tool_name] = position

    def with_what_followed(self, call_ids: Sequence[str]) -> Iterator[dict[str, str]]:
        """Each call with the next one of its conversation, and where that is another tool's the next of its tool.

        One that followed the call named before it is not told twice.
        """
        told = ""
        for call_id in call_ids:
            if call_id not in self._calls:
                yield {"part": "unknown", "row": row_text(call_id, self._rows)}
                continue
            if told != call_id:
                yield self._shown(call_id, "call")
            after, of_tool = self._next.get(call_id), self._next_of_tool.get(call_id)
            for told in dict.fromkeys(each for each in (after, of_tool) if each is not None):
                yield self._shown(told, "after", self._calls[call_id].tool_name)
            if after is None:
                yield {"part": "last" if self._calls[call_id].conversation_id else "alone", "row": ""}

    def _shown(self, call_id: str, part: str, of_tool: str = "") -> dict[str, str]:
        call = self._calls[call_id]
        return {
            "part": part,
            "row": row_text(call_id, self._rows),
            "id": clip(call_id, 40),
            "tool": clip(name_shown(call.tool_name), 60) if of_tool not in ("", call.tool_name) else "",
            "time": f"{call.create_time.astimezone(self._zone):%Y-%m-%d %H:%M:%S}",
            "outcome": outcome_of(call),
            "input": clip(input_text(call)[:MOST_READ], MOST_CHARACTERS),
            "output": clip(call.output[:MOST_READ], MOST_CHARACTERS) or "(empty)",
        }


def outcome_of(call: ToolCallResult) -> str:
    """Whether it worked as guidance counts it: neither its flag nor the judge says that it failed."""
    failed = went_wrong(call)
    if failed:
        return f"failed ({clip(call.error_class, 30)})" if call.error_class else "failed"
    if failed is None:
        return "not known"
    return "worked" if call.score != 0.0 else "ran, score 0"


def rows_by_id(evaluation: Evaluation) -> dict[str, int]:
    """The row of each recorded call that has an id."""
    numbered = zip(evaluation.row_numbers, evaluation.calls, strict=True)
    return {call.id: row for row, call in numbered if call.id is not None}


def row_text(call_id: str, rows: Mapping[str, int]) -> str:
    """Its row in calls.csv; its id where it was recorded before."""
    return str(rows[call_id]) if call_id in rows else clip(call_id, 24)
