"""Leave out of guidance the calls that rules stop.

A card shows calls that worked, and a later rule may stop such a call. So each call is checked
against the rules when its line is shown, as if it were the first of its conversation. A call that a
rule denies is left out. A call that the user would be asked about is marked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from toolmem.guard.guard import Guard
from toolmem.guidance.shown import BULLET
from toolmem.guidance.shown_values import read_shown
from toolmem.guidance.wording import Language, Wording
from toolmem.models.decisions import Action
from toolmem.models.guidance import Guidance, Line
from toolmem.models.tools import ToolRecord
from toolmem.view.parameters import CUT
from toolmem.view.view import CallView

# Kinds of repairs that name a call by a word alone.
_BY_WORD = ("program", "statement", "action", "flag_added", "value", "first")


class ShownCall(Struct, frozen=True, dict=True):
    """A call as guidance shows it. `text`: its arguments as JSON, which may be cut short."""

    tool: str
    text: str
    conversation_id: str = ""
    folder: str = ""

    @cached_property
    def view(self) -> CallView:
        given = read_shown(self.text)
        if not isinstance(given, dict):
            given = {CUT: self.text}
        elif not self.text.endswith("}") or any(CUT in name for name in given):
            given[CUT] = CUT
        for path in [path for path in given if "." in path]:  # a nested field: `to.name`
            *fields, last = path.split(".")
            inside = given
            for field in fields:
                inside = inside.setdefault(field, {})
                inside = inside if isinstance(inside, dict) else {}
            inside[last] = given[path]
        view = CallView(self.tool, given, None, self.folder)
        view.is_cut = CUT in self.text
        return view


def permitted_records(
    records: Iterable[ToolRecord], guards: Sequence[Guard], language: Language = "", *place: str
) -> list[ToolRecord]:
    """Return the records, without the calls in their guidance that a rule denies.

    `place`: the id of the conversation that sees the guidance, and its folder. Raises StoreError.
    """
    records = list(records)
    say = Wording(language)
    lines = [
        (each.tool_name, line) for each in records if each.guidance for line in each.guidance.lines
    ]
    permitted = iter(_permitted(lines, guards, say, *place))
    found = []
    for record in records:
        if (guidance := record.guidance) is not None:
            shown = [next(permitted) for _ in guidance.lines]
            record = replace(record, guidance=_with_lines(guidance, shown, say))
        found.append(record)
    return found


def permitted_lines(
    lines: Sequence[Line], tool: str, guards: Sequence[Guard], language: Language = "", *place: str
) -> list[Line]:
    """Do what `permitted_records` does for lines about one tool. Raises StoreError."""
    permitted = _permitted([(tool, line) for line in lines], guards, Wording(language), *place)
    return [line for line in permitted if line is not None]


def _permitted(
    lines: Sequence[tuple[str, Line]], guards: Sequence[Guard], say: Wording, *place: str
) -> list[Line | None]:
    """Return each line as it may be shown; None if nothing of the line may be shown."""
    pairs = [(i, *call) for i, (tool, line) in enumerate(lines) for call in _calls_in(tool, line)]
    calls = [ShownCall(tool, text, *place) for _, tool, text in pairs]
    actions: dict[int, set[Action]] = {}
    for guard in guards if calls else ():
        for (i, *_), action in zip(pairs, guard.preview(calls, *place[:1]), strict=True):
            actions.setdefault(i, set()).add(action)
    return [_as_permitted(line, actions.get(i, ()), say) for i, (_, line) in enumerate(lines)]


def _calls_in(tool: str, line: Line) -> Iterator[tuple[str, str]]:
    """Yield the calls that a line recommends, each as (tool, arguments as JSON)."""
    if line.worked:
        yield tool, line.worked
    for each in line.repairs:
        if each.kind in _BY_WORD and each.path:
            program = f"{each.before} " if each.kind == "flag_added" else ""
            if each.after not in line.worked:
                yield tool, json.dumps({each.path: program + each.after}, ensure_ascii=False)
        elif each.kind in ("tool", "first", "source") and each.after:
            yield each.after, "{}"


def _as_permitted(line: Line, actions: Collection[Action], say: Wording) -> Line | None:
    body = line.text.removesuffix(line.mark)
    mark = line.text.removeprefix(body)  # stays at the end
    if "deny" in actions:
        if not line.then or not body.endswith(line.then):
            return None
        text = body.removesuffix(line.then) + say.phrase("repair_withheld") + mark
        return replace(line, text=text, repairs=(), worked="", then="")
    if "ask" in actions:
        return replace(line, text=body + say.phrase("asks_first") + mark)
    return line


def _with_lines(guidance: Guidance, lines: Sequence[Line | None], say: Wording) -> Guidance:
    """Replace the guidance's lines by `lines`. The first None becomes a note on what is missing."""
    withheld = lines.count(None)
    if withheld:
        text = say.phrase("example_withheld" if withheld == 1 else "examples_withheld", k=withheld)
        lines = list(lines)
        lines[lines.index(None)] = Line(text=text, kind="withheld")
    pairs = zip(guidance.lines, lines, strict=True)
    changes = {BULLET + old.text: new for old, new in pairs if new is not old}
    if not changes:
        return guidance
    own = [(text, changes.get(text)) for text in guidance.text.splitlines()]
    texts = (BULLET + new.text if new else text for text, new in own if new or text not in changes)
    kept = [line for line in lines if line is not None]
    return replace(guidance, text="\n".join(texts), lines=kept)
