"""Guidance without the calls that a rule stops now.

A card is written from calls that worked; a rule that was made since may stop them. Each call that
a line shows as having worked is held against the rules when the line is shown. Nothing is logged.
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
    """The records, with guidance that shows no stopped call. Raises StoreError."""
    records = list(records)
    lines = [
        (each.tool_name, line) for each in records if each.guidance for line in each.guidance.lines
    ]
    permitted = iter(_permitted(lines, guards, conversation))
    found = []
    for record in records:
        if (guidance := record.guidance) is not None:
            shown = [next(permitted) for _ in guidance.lines]
            record = replace(record, guidance=_with_lines(guidance, shown, language))
        found.append(record)
    return found


def permitted_lines(
    lines: Sequence[Line], tool: str, guards: Sequence[Guard], conversation: str = ""
) -> list[Line]:
    """Lines about a tool, without the calls that a rule stops. Raises StoreError."""
    permitted = _permitted([(tool, line) for line in lines], guards, conversation)
    return [line for line in permitted if line is not None]


def _permitted(
    lines: Sequence[tuple[str, Line]], guards: Sequence[Guard], conversation: str
) -> list[Line | None]:
    """Each line of a tool as it may be shown; None where nothing of it may be."""
    places = [place for place, (_, line) in enumerate(lines) if line.worked]
    calls = [(lines[place][0], read_shown(lines[place][1].worked)) for place in places]
    stopped: set[int] = set()
    for guard in guards if calls else ():
        answers = guard.stopped(calls, conversation)
        stopped |= {place for place, stops in zip(places, answers, strict=True) if stops}
    return [
        _without_call(line) if place in stopped else line for place, (_, line) in enumerate(lines)
    ]


def _without_call(line: Line) -> Line | None:
    rest = line.text.removesuffix(line.then) if line.then else ""
    return replace(line, text=rest, repairs=(), worked="", then="") if rest else None


def _with_lines(guidance: Guidance, lines: Sequence[Line | None], language: Language) -> Guidance:
    """The guidance with each of its lines replaced; a last line says how many were changed."""
    pairs = zip(guidance.lines, lines, strict=True)
    changes = {BULLET + old.text: new for old, new in pairs if new is not old}
    if not changes:
        return guidance
    k = len(changes)
    told = Line(text=Wording(language).say("stopped", k=k), kind="left_out", k=k)
    texts: list[str] = []
    for text in guidance.text.splitlines():
        line = changes.get(text)
        if line is not None:
            texts.append(BULLET + line.text)
        elif text not in changes:
            texts.append(text)
    kept = [line for line in lines if line is not None]
    return replace(guidance, text="\n".join([*texts, BULLET + told.text]), lines=[*kept, told])
