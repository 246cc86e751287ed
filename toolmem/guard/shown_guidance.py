"""Guidance without the calls that a rule stops now.

A card is written from calls that worked; a rule that was made since may stop them. Each call that
a line shows as having worked is asked of the guards when the line is shown. Nothing is logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from toolmem.guard.guard import Guard
from toolmem.guidance.shown import BULLET
from toolmem.guidance.shown_values import read_shown
from toolmem.guidance.wording import Language, Wording
from toolmem.models.guidance import Guidance, Line
from toolmem.models.tools import ToolRecord


def permitted_records(
    records: Iterable[ToolRecord],
    guards: Sequence[Guard],
    language: Language = "",
    conversation: str = "",
) -> list[ToolRecord]:
    """The records, each with guidance that shows no stopped call. Raises StoreError."""
    found = []
    for record in records:
        if (guidance := record.guidance) is not None:
            guidance = _permitted(guidance, record.tool_name, guards, language, conversation)
            record = replace(record, guidance=guidance)
        found.append(record)
    return found


def permitted_lines(
    lines: Sequence[Line], tool: str, guards: Sequence[Guard], conversation: str = ""
) -> list[Line | None]:
    """Each line as it may be shown: without the call that a rule stops, or None."""
    places = [place for place, line in enumerate(lines) if line.worked]
    calls = [(tool, read_shown(lines[place].worked)) for place in places]
    stopped = {
        place
        for guard in guards
        for place, stops in zip(places, guard.stopped(calls, conversation), strict=True)
        if stops
    }
    return [_without_call(line) if place in stopped else line for place, line in enumerate(lines)]


def _without_call(line: Line) -> Line | None:
    rest = line.text.removesuffix(line.then) if line.then else ""
    return replace(line, text=rest, repairs=(), worked="", then="") if rest else None


def _permitted(
    guidance: Guidance, tool: str, guards: Sequence[Guard], language: Language, conversation: str
) -> Guidance:
    shown = permitted_lines(guidance.lines, tool, guards, conversation)
    changes = {
        BULLET + old.text: new for old, new in zip(guidance.lines, shown, strict=True) if new != old
    }
    if not changes:
        return guidance
    told = Wording(language).say("stopped", k=len(changes))
    texts: list[str] = []
    for text in guidance.text.splitlines():
        line = changes.get(text)
        if line is not None or text not in changes:
            texts.append(BULLET + line.text if line else text)
    lines = [*filter(None, shown), Line(text=told, kind="rate", k=len(changes))]
    return replace(guidance, text="\n".join([*texts, BULLET + told]), lines=lines)
