"""Checks a note against what the user said, and its condition against its own examples and ordinary calls.

    verified = verify(read_note(given), heard, tools)     # raises NoteRefused: each problem says what to change

In this order: the quote was said; its tools are there and no call without arguments is stopped; every example comes out
as the note says; the condition is no wider than the quote; what it would have stopped is told; and there are bounds.
What a model may have got wrong is refused, so that it can write the note anew. What only the user can settle is a
proposal, which binds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from toolmem.demands.note import DemandNote, ExampleCall
from toolmem.demands.quotes import standing_of
from toolmem.demands.width import (
    LEAST_KEPT,
    MOST_KEPT,
    MOST_ORDINARY,
    Call,
    have_in_common,
    named_in,
    ordinary_stopped,
)
from toolmem.errors import NoteRefused
from toolmem.guard.alternatives import (
    Alternative,
    Conditions,
    as_if_it_were_time,
    linear_matcher,
    of_given_calls,
    spread,
)
from toolmem.guard.compiled_conditions import CompiledConditions
from toolmem.guard.histories import PASSING, STOPPING, UNKNOWN, History
from toolmem.guard.tool_classes import SCOPES, class_schema, is_scope, scopes_of
from toolmem.guard.units import kinds_of, with_units
from toolmem.guard.view import View, plain, view_of
from toolmem.late_dataclasses import dataclass, replace
from toolmem.light_models import ToolSchema

MOST_IN_SESSION = 10  # notes that bind at once; further ones are proposals
MOST_IN_FORCE = 200
REPLAYED = 500  # of the newest calls of its tools that worked
RECORDED_ALONE = "only the agent's own recording shows that it was typed"
_NEVER_SAID = "the user did not say this here: copy their words exactly, from one message, with nothing left out"


class NotesHeld(NamedTuple):
    """How many notes there are already."""

    in_session: int = 0
    in_force: int = 0


NONE_HELD = NotesHeld()


@dataclass(frozen=True, slots=True)
class Verified:
    """A note that can be kept."""

    note: DemandNote  # its conditions as they are kept; its effect and duration as the checks leave them
    places: tuple[str, ...]  # classes, and names of tools of no class, that it is kept under
    status: Literal["active", "proposed"] = "active"
    why: str = ""  # it only waits, or does less than the note says
    would_stop: tuple[int, int] = (0, 0)  # of so many calls of its tools that worked
    for_example: str = ""  # one of these


def verify(
    note: DemandNote,
    heard: Sequence[str] | None,
    tools: Sequence[str | ToolSchema],
    *,
    now: datetime,
    own_words: Callable[[str], str] = str,
    kept: Sequence[Call] = (),
    held: NotesHeld = NONE_HELD,
    beside: Sequence[str] = (),
) -> Verified:
    """`heard`: what the user typed in this conversation, None where no road hears the user; `tools`: the agent's;
    `own_words`: a message without what it only shows; `kept`: calls of its tools that worked, the newest first;
    `now`: in the user's zone; `beside`: what they typed as an agent's recording alone tells, which makes a proposal.
    Raises NoteRefused.
    """
    waits = _not_heard(note, heard, own_words, beside)
    known = _Tools(note, tools)
    verified = Verified(note, known.places)
    if note.conditions is not None:
        tried = _Trial(note, known, now)
        verified = _no_wider(replace(verified, note=tried.note), tried, kept)
    if verified.status == "active" and (held.in_session >= MOST_IN_SESSION or held.in_force >= MOST_IN_FORCE):
        most = f"{MOST_IN_SESSION} notes in a session and {MOST_IN_FORCE} in force"
        waits = waits or f"there are more than {most}: it waits for the user"
    return replace(verified, status="proposed", why=waits) if waits else verified


def _not_heard(
    note: DemandNote, heard: Sequence[str] | None, own_words: Callable[[str], str], beside: Sequence[str]
) -> str:
    """Why the quote cannot bind yet; "" where the user said it. Raises NoteRefused where nobody did."""
    if heard is None:
        return "nothing here heard the user say it"
    match standing_of(note.quote, heard, own_words):
        case "unsaid" if standing_of(note.quote, beside, own_words) in {"said", "shown"}:
            return RECORDED_ALONE
        case "unsaid":
            raise NoteRefused([("quote", _NEVER_SAID)])
        case "too_short":
            raise NoteRefused([("quote", "a whole sentence, or at least three words of one (four Chinese characters)")])
        case "shown":
            return "it stands in what the user pasted or quoted"
    return ""


class _Tools:
    """The tools that a note is about, as the agent has them, and the classes that it is kept under."""

    def __init__(self, note: DemandNote, tools: Sequence[str | ToolSchema]) -> None:
        schemas = [each if isinstance(each, ToolSchema) else ToolSchema(name=each) for each in tools]
        self._known = {plain(each.name): each for each in schemas}
        self.all = [each.name for each in schemas if not is_scope(each.name)]
        self._known |= {scope: class_schema(scope) for scope in SCOPES}
        self.named = note.tools or tuple(dict.fromkeys(each.tool for each in (*note.stops, *note.passes)))
        if note.effect != "remind" and not self.named:
            raise NoteRefused([("tools", f"which tools: {self._there_are()}")])
        missing = [name for name in self.named if plain(name) not in self._known]
        if missing:
            raise NoteRefused([("tools", f"{', '.join(missing)[:100]}: no such tool; {self._there_are()}")])
        self.places = tuple(dict.fromkeys(place for name in self.named for place in self.places_of(name)))

    def _there_are(self) -> str:
        return f"there are {', '.join(list(self._known)[:20])}"

    def parameters(self, tool: str) -> Mapping[str, Any] | None:
        schema = self._known.get(plain(tool))
        return schema.parameters if schema is not None and schema.parameters else None

    def places_of(self, tool: str) -> tuple[str, ...]:
        """Its classes; its own name where it is of none."""
        if is_scope(tool):
            return (plain(tool),)
        return scopes_of(tool, self.parameters(tool)) or (plain(tool),)

    def kinds_of(self, tool: str) -> tuple[str, ...]:
        """As `places_of`, and what parts two tools of one class."""
        return kinds_of(tool, self.parameters(tool)) or self.places_of(tool)

    def binds(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        own = {plain(tool), *self.places_of(tool), *scopes_of(tool, self.parameters(tool), arguments)}
        return not own.isdisjoint(self.places)

    def __contains__(self, tool: str) -> bool:
        return plain(tool) in self._known


class _Trial:
    """The conditions of a note, for the classes of its tools, as its examples want them. Raises NoteRefused."""

    def __init__(self, note: DemandNote, tools: _Tools, now: datetime) -> None:
        assert note.conditions is not None
        self.tools = tools
        self._now = now
        conditions = _by_class(note.conditions, tools)
        self._refuse_of_nothing(conditions)
        self._take(conditions)
        problems = list(self._wrong(note))
        if problems:  # they may look into messages
            self._take(spread(conditions))
            if list(self._wrong(note)):
                raise NoteRefused(problems)
        self.note = replace(note, conditions=self.conditions)

    def _take(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self._compiled = CompiledConditions(conditions)
        timed = as_if_it_were_time(conditions)
        self._in_time = self._compiled if timed == conditions else CompiledConditions(timed)

    def stops(self, call: Call, view: View | None = None, *, history: History = STOPPING) -> bool:
        """`view`: of the call, where it is known; `history`: what ran before it, here whatever would stop it."""
        tool, arguments = call
        if not self.tools.binds(tool, arguments):
            return False
        compiled = self._compiled if history is PASSING else self._in_time
        return compiled.hold(view or view_of(tool, arguments, self.tools.parameters(tool)), self._now, history)

    @property
    def _is_timed(self) -> bool:
        return any(each.clock is not None and each.clock.of == "now" for each in self.conditions.when)

    def _refuse_of_nothing(self, conditions: Conditions) -> None:
        self._take(of_given_calls(conditions))
        for tool in self.tools.named:
            if self.stops((tool, {}), history=UNKNOWN):
                told = 'a call without arguments is stopped: add a test, or write "always": true if every call is meant'
                raise NoteRefused([("when", told)])

    def _wrong(self, note: DemandNote) -> Iterator[tuple[str, str]]:
        """Examples that come out otherwise than the note says."""
        for name, listed, expected in (("stops", note.stops, True), ("passes", note.passes, False)):
            for number, each in enumerate(listed):
                place = f"{name}[{number}]"
                if expected and each.tool not in self.tools:
                    yield place, f"{each.tool!r} is none of the tools"
                elif self.stops((each.tool, each.arguments)) is not expected:
                    yield place, self._wrongly(each, expected=expected)

    def _wrongly(self, each: ExampleCall, *, expected: bool) -> str:
        shown = json.dumps(each.arguments, ensure_ascii=False)[:200]
        fields = with_units(view_of(each.tool, each.arguments))
        lines = [line for unit in fields["units"] for line in unit["lines"]]
        read = f"; its commands are read as {lines[:4]}"[:300] if lines else ""
        if lines and any("word" in one.patterns for one in (*self.conditions.when, *self.conditions.unless)):
            read += "; `word` must match a word from its beginning to its end"
        if expected:
            return f"must be stopped and is not: {each.tool} {shown}{read}: widen `when`, or narrow `unless`"
        timed = "; tried as if the time of `clock` had come" if self._is_timed else ""
        return f"must pass and is stopped: {each.tool} {shown}{read}{timed}: narrow `when`, or add to `unless`"


def _by_class(conditions: Conditions, tools: _Tools) -> Conditions:
    """With the classes of the tools in place of their names: `^Bash$` holds for the shell of every agent."""
    listed = (conditions.when, conditions.unless)
    return Conditions(*(tuple(_of_earlier(_of_places(each, tools), tools) for each in of) for of in listed))


def _of_earlier(each: Alternative, tools: _Tools) -> Alternative:
    """An earlier call may be of any of the agent's tools, and of its shell by whatever agent."""
    pattern = each.earlier.tests.patterns.get("tool") if each.earlier is not None else None
    if each.earlier is None or pattern is None:
        return each
    fits = linear_matcher(pattern)
    meant = [name for name in tools.all if any(map(fits, (name, *tools.kinds_of(name))))]
    if tools.all and not meant:
        raise NoteRefused([("when", f"`earlier.tool`: {pattern!r} fits none of the agent's tools")])
    if any("@shell" in tools.kinds_of(name) for name in meant):
        pattern = f"{pattern}|^@shell$"
    tests = replace(each.earlier.tests, patterns={**each.earlier.tests.patterns, "tool": pattern})
    return replace(each, earlier=replace(each.earlier, tests=tests))


def _of_places(each: Alternative, tools: _Tools) -> Alternative:
    pattern = each.patterns.get("tool")
    if pattern is None:
        return each
    fits = linear_matcher(pattern)
    meant = [name for name in tools.named if any(map(fits, (name, *tools.kinds_of(name))))]
    if not meant:
        raise NoteRefused([("when", f"`tool`: {pattern!r} fits none of the tools {', '.join(tools.named)[:100]}")])
    others = {kind for name in tools.named if name not in meant for kind in tools.kinds_of(name)}
    kinds = dict.fromkeys(kind for name in meant for kind in _apart(tools.kinds_of(name), others, plain(name)))
    rest = {name: given for name, given in each.patterns.items() if name != "tool"}
    if not others and (rest or each.arguments or each.always or each.clock or each.earlier or each.more_than):
        return replace(each, patterns=rest)
    return replace(each, patterns={**rest, "tool": f"^({'|'.join(map(re.escape, kinds))})$"})


def _apart(kinds: Sequence[str], others: Collection[str], name: str) -> Sequence[str]:
    """The classes of a tool that parts it from the others that the note names; its name where none does."""
    return ([kind for kind in kinds if kind not in others][-1:] or [name]) if set(kinds) & set(others) else kinds


# ---------------------------------------------------------------- no wider than what was said


def _no_wider(verified: Verified, tried: _Trial, kept: Sequence[Call]) -> Verified:
    note, tools = verified.note, tried.tools
    replayed = [call for call in kept[:REPLAYED] if tools.binds(*call)]
    stopped = [call for call in replayed if tried.stops(call, history=PASSING)]
    told = replace(verified, would_stop=(len(stopped), len(replayed)), for_example=_shown(stopped))
    why = _too_wide(note, tried, len(stopped), len(replayed))
    if not why:
        return told
    if note.lasting == "session":
        return replace(told, note=replace(note, effect="ask"), why=f"{why}: the user is asked about such calls")
    narrowed = replace(note, effect="ask", lasting="session")
    return replace(told, note=narrowed, why=f"{why}: the user is asked about such calls in this session alone")


def _too_wide(note: DemandNote, tried: _Trial, kept_stopped: int, kept: int) -> str:
    """Why a condition says more than its quote; "" where it does not."""
    assert note.conditions is not None
    named = named_in(note.quote, (*tried.tools.named, *tried.tools.places))
    examples = [(each.tool, each.arguments) for each in note.stops]
    in_common = have_in_common(note.quote, note.conditions, examples)
    if not named and not in_common:
        return "the quote and the condition have no word in common"
    if any(each.always for each in note.conditions.when) and not named and not in_common:
        return "every call is meant, and the quote names no tool"
    if named:
        return ""
    stopped, of = ordinary_stopped(note.quote, tried.tools.places, tried.stops)
    if stopped > MOST_ORDINARY * of:
        return f"{stopped} of {of} ordinary calls would be stopped that the quote does not name"
    if kept >= LEAST_KEPT and kept_stopped > MOST_KEPT * kept:
        return f"{kept_stopped} of the last {kept} calls would have been stopped, and the quote names no tool"
    return ""


def _shown(stopped: Sequence[Call]) -> str:
    if not stopped:
        return ""
    tool, arguments = stopped[0]
    command = arguments.get("command")
    return str(command)[:160] if isinstance(command, str) else f"{tool} {json.dumps(arguments, default=str)[:140]}"
