"""Check a note against what the user said, and its condition against its own examples.

The checks, in order: the user said the quote; the tools exist; no call without arguments is
stopped; each example is stopped or passes as the note says; the condition is not far wider than the
quote. A model's mistake is refused, to be mended; what only the user can decide becomes a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from toolmem.errors import RequestError
from toolmem.models.rules import Evidence, Speaker
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.rules.notes.note import DemandNote, NoteRefused
from toolmem.rules.notes.quotes import find_quote
from toolmem.rules.notes.width import (
    Call,
    QuoteComparison,
    has_in_common,
    names_tool,
    ordinary_stops,
    other_tool_named,
    plain_calls,
)
from toolmem.text.display import plain
from toolmem.text.forms import INSIDE
from toolmem.view.conditions import (
    Alternative,
    Conditions,
    EarlierTest,
    History,
    Match,
    MoreThan,
    read_conditions,
)
from toolmem.view.patterns import compiled
from toolmem.view.tool_classes import CLASSES, classes_of
from toolmem.view.view import CallView

MAX_ORDINARY = 0.03  # share of ordinary calls that a demand may stop if it names no tool
MAX_WORKED = 0.5  # share of the tool's recorded calls that worked, likewise
MIN_WORKED = 5  # such calls before their share counts
REPLAYED = 500  # newest calls that worked
# A space in a pattern; escapes and sets are matched whole.
_SPACE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]| ")
_UNSAID = "the user did not say this: copy their words from one message, with nothing left out"
_TOO_SHORT = "a whole sentence, or at least three words of one (four Chinese characters)"


class NoteContext(Struct, kw_only=True):
    """What the program around a model knows when the model notes a demand."""

    user_messages: Sequence[str] | None  # typed in this conversation; None: not known
    said_at: Sequence[datetime] = ()  # when each message was typed, if known
    stopped_by: Collection[str] = ()  # ids of rules that stopped calls just before the last message
    is_guests: bool = False  # a guest typed them: they bind in this session alone
    by: Speaker = "user"  # program: they were read from a file, and may only restrict
    tools: Sequence[ToolSchema] = ()
    session: str = ""
    turn: str = ""  # the mark of the turn
    noted_by: str = ""  # the agent or model
    evidence: Evidence = ""  # that the user typed the messages; a guarded store requires it
    kept_calls: Sequence[Call] = ()  # recorded calls that worked, the newest first


class Verified(Struct, kw_only=True):
    """A note that passed the checks and can be kept."""

    note: DemandNote  # its effect and duration as the checks leave them
    ends: datetime | None = None  # None: it does not end
    scopes: list[str]  # what the rules are on: classes, and names of tools without a class
    conditions: Conditions | None = None
    pending: str = ""  # why it becomes a request; "": it is kept at once
    why_only_asks: str = ""  # why a ban was made to ask; "": the effect is that of the note
    would_stop: tuple[int, int] = (0, 0)  # recorded calls of its tools: stopped, and all
    example: str = ""  # one that it would stop


def verify(note: DemandNote, context: NoteContext, now: datetime) -> Verified:
    """Check a note's quote, tools and condition. `now`: in the user's zone. Raises NoteRefused."""
    pending = check_quote(note.quote, context)
    tools = _Tools(note, context.tools)
    verified = Verified(note=note, scopes=tools.scopes, pending=pending)
    if note.effect != "remind":
        trial = _Trial(note, tools, now)
        verified.conditions = trial.conditions
        _soften_wide_ban(verified, trial, context.kept_calls)
        if not pending and not verified.why_only_asks:
            trial.refuse_contradiction(note)
    return verified


def check_quote(quote: str, context: NoteContext) -> str:
    """Say why the user must confirm a quote, or "". Raises NoteRefused if unsaid or too short."""
    if context.user_messages is None:
        return "no message of the user is known here"
    match find_quote(quote, context.user_messages):
        case "unsaid":
            raise NoteRefused(("quote", _UNSAID))
        case "too_short":
            raise NoteRefused(("quote", _TOO_SHORT))
        case "shown":
            return "it is only in text that the user pasted or quoted"
    return ""


class _Tools:
    """The tools that a note is about, and the scopes of its rules."""

    def __init__(self, note: DemandNote, tools: Sequence[ToolSchema]) -> None:
        self.known = {folded_name(each.name): each for each in tools}
        examples = (*note.stops, *note.passes)
        self.named = note.tools or list(dict.fromkeys(each.tool for each in examples))
        available = ", ".join([*(each.name for each in tools), *CLASSES][:20])
        missing = [name for name in self.named if not self.has(name)]
        if missing:
            named = ", ".join(missing)[:100]
            raise NoteRefused(("tools", f"{named}: no such tool; there are {available}"))
        scopes: dict[str, None] = {}
        for name in self.named:
            classes = [kind for kind in self.kinds_of(name) if kind in CLASSES]
            scopes |= dict.fromkeys(classes or [folded_name(name)])
        self.scopes = list(scopes)

    def has(self, name: str) -> bool:
        return folded_name(name) in self.known or folded_name(name) in CLASSES

    def schema(self, name: str) -> ToolSchema:
        return self.known.get(folded_name(name)) or ToolSchema(name)

    def described(self, argument: str) -> str:
        """Return the descriptions of an argument in the schemas of the note's tools."""
        declared = (self.schema(name).properties.get(argument) for name in self.named)
        found = (each.get("description") for each in declared if isinstance(each, Mapping))
        return " ".join(str(each)[:300] for each in found)

    def kinds_of(self, name: str) -> list[str]:
        """Return the classes of a tool, such as `@write` and `@edit`; its name if it has none."""
        if folded_name(name) in CLASSES:
            return [folded_name(name)]
        declared = self.schema(name).properties
        return list(classes_of(name, dict.fromkeys(declared, ""), declared)) or [folded_name(name)]

    def view(self, tool: str, arguments: Mapping[str, Any]) -> CallView:
        return CallView(tool, arguments, self.schema(tool).parameters)

    def binds(self, view: CallView) -> bool:
        return not {folded_name(view.tool), *view.classes}.isdisjoint(self.scopes)


class _AssumedHistory(History):
    """Assumes that `earlier` and `more_than` hold in `when`, and do not hold in `unless`.

    `replayed`: assume the opposite, because the order of recorded calls is not known.
    """

    def __init__(self, replayed: bool) -> None:
        self.replayed = replayed

    def happened(self, test: EarlierTest, unless: bool) -> bool:
        return unless is self.replayed

    def exceeded(self, test: MoreThan) -> bool:
        return not self.replayed


class _Trial:
    """Tries the condition of a note, as it will be kept, on calls. Raises NoteRefused."""

    def __init__(self, note: DemandNote, tools: _Tools, now: datetime) -> None:
        self.tools = tools
        self.now = now
        try:
            conditions = read_conditions(note.when, note.unless)
        except RequestError as error:
            raise NoteRefused((error.field or "when", str(error))) from None
        self.conditions = _map_alternatives(partial(_use_classes, tools), conditions)
        self._refuse_bare_calls()
        if problems := list(self._problems(note)):
            self.conditions = _map_alternatives(_match_inside_words, self.conditions)
            if any(self._problems(note)):
                raise NoteRefused(*problems)

    def stops(self, view: CallView, replayed: bool = False) -> bool:
        if not self.tools.binds(view):
            return False
        conditions = self.conditions if replayed else _assume_clock_holds(self.conditions)
        return conditions.check(view, self.now, _AssumedHistory(replayed)) is Match.YES

    def refuse_contradiction(self, note: DemandNote) -> None:
        """Refuse a condition that contradicts its quote, or that is on another tool."""
        comparison = QuoteComparison(
            note=note,
            conditions=self.conditions,
            is_stopped=lambda tool, arguments: self.stops(self.tools.view(tool, arguments)),
            unit_of=self.tools.described,
        )
        if problem := comparison.contradiction():
            raise NoteRefused(("when", problem))
        tools = self.tools
        others = {kind: tool for tool in tools.known for kind in tools.kinds_of(tool)}
        own = {*map(folded_name, tools.named), *tools.scopes}
        own.update(kind for name in tools.named for kind in tools.kinds_of(name))
        if about := other_tool_named(note.quote, sorted(others.keys() - own), self.conditions):
            problem = f"the user speaks of what {others[about]} does: note it for that tool"
            raise NoteRefused(("tools", problem))

    def _refuse_bare_calls(self) -> None:
        tests = [
            each
            for each in self.conditions.when
            if not (each.always or each.clock or each.earlier or each.more_than)
            and not any(test.missing for test in each.arguments)
        ]
        for tool in self.tools.named if tests else ():
            bare = Conditions(tests, self.conditions.unless)
            if bare.check(self.tools.view(tool, {}), self.now) is Match.YES:
                why = 'a call without arguments is stopped: add a test, or write "always": true'
                raise NoteRefused(("when", why))

    def _problems(self, note: DemandNote) -> Iterator[tuple[str, str]]:
        kinds = (("stops", note.stops, True), ("passes", note.passes, False))
        for name, examples, must_stop in kinds:
            for number, each in enumerate(examples):
                view = self.tools.view(each.tool, each.arguments)
                if must_stop and not self.tools.has(each.tool):
                    yield f"{name}[{number}]", f"{each.tool!r} is none of the tools"
                elif self.stops(view) is not must_stop:
                    yield f"{name}[{number}]", self._explain(view, must_stop)

    def _explain(self, view: CallView, must_stop: bool) -> str:
        shown = f"{view.tool} {json.dumps(view.arguments, ensure_ascii=False)[:200]}"
        lines = [line for unit in view.units for line in unit.lines][:4]
        read = f"; its commands are read as {lines}"[:300] if lines else ""
        if lines and any(each.word for each in self.conditions.alternatives):
            read += "; `word` must match a word from its beginning to its end"
        if must_stop:
            return f"must be stopped and is not: {shown}{read}: widen `when` or narrow `unless`"
        return f"must pass and is stopped: {shown}{read}: narrow `when` or add to `unless`"


def _map_alternatives(
    change: Callable[[Alternative], Alternative], conditions: Conditions
) -> Conditions:
    return Conditions(list(map(change, conditions.when)), list(map(change, conditions.unless)))


def _without(each: Alternative, test: str) -> Alternative:
    """Return an alternative without one of its tests; `always` if it has no other test."""
    tests = asdict(each)
    rest = {name: value for name, value in tests.items() if value and name != test}
    return Alternative(**rest) if rest else Alternative(always=True)


def _assume_clock_holds(conditions: Conditions) -> Conditions:
    """Return the conditions at a time when the rule holds.

    `when` loses each `clock` on the current time, `unless` the exceptions with one.
    """

    def is_now(each: Alternative) -> bool:
        return each.clock is not None and each.clock.of == "now"

    when = [_without(each, "clock") if is_now(each) else each for each in conditions.when]
    return Conditions(when, [each for each in conditions.unless if not is_now(each)])


def _match_inside_words(each: Alternative) -> Alternative:
    """Let spaces in a `command` pattern also match spaces inside a quoted word."""

    def also_inside(found: re.Match[str]) -> str:
        text = found[0]
        if text == " ":
            return f"[ {INSIDE}]"
        return f"{text[:-1]}{INSIDE}]" if text[0] == "[" and " " in text else text

    return replace(each, command=each.command and _SPACE.sub(also_inside, each.command))


def _use_classes(tools: _Tools, each: Alternative) -> Alternative:
    """Replace tools' names by classes, so that `^Bash$` holds for the shell of every agent."""
    if each.earlier is not None and each.earlier.tool:
        names = [tool.name for tool in tools.known.values()]
        meant = _matching_tools(each.earlier.tool, names, tools)
        if any("@shell" in tools.kinds_of(name) for name in meant):
            earlier = replace(each.earlier, tool=f"{each.earlier.tool}|^@shell$")
            each = replace(each, earlier=earlier)
    if each.tool is None:
        return each
    meant = _matching_tools(each.tool, tools.named, tools)
    if not meant:
        named = ", ".join(tools.named)[:100]
        raise NoteRefused(("when", f"`tool`: {each.tool!r} fits none of the tools {named}"))
    others = {kind for name in tools.named if name not in meant for kind in tools.kinds_of(name)}
    kinds = [kind for name in meant for kind in _distinct_class(tools.kinds_of(name), others, name)]
    if not others:
        return _without(each, "tool")
    return replace(each, tool=f"^({'|'.join(map(re.escape, dict.fromkeys(kinds)))})$")


def _matching_tools(pattern: str, names: Sequence[str], tools: _Tools) -> list[str]:
    search = compiled(pattern).search
    return [n for n in names if any(map(search, (folded_name(n), *tools.kinds_of(n))))]


def _distinct_class(kinds: list[str], others: set[str], name: str) -> list[str]:
    """Return classes that tell a tool from `others`, or the tool's name if there are none."""
    if others.isdisjoint(kinds):
        return kinds
    return [kind for kind in kinds if kind not in others][-1:] or [folded_name(name)]


def _soften_wide_ban(verified: Verified, trial: _Trial, calls: Sequence[Call]) -> None:
    """Make a ban ask if its condition is far wider than its quote. Counts what it would stop."""
    views = [trial.tools.view(*call) for call in calls[:REPLAYED]]
    bound = [view for view in views if trial.tools.binds(view)]
    stopped = [view for view in bound if trial.stops(view, replayed=True)]
    verified.would_stop = (len(stopped), len(bound))
    if stopped:
        verified.example = shown_call(stopped[0].tool, stopped[0].arguments)
    why_wide = _why_wide(verified, trial) if verified.note.effect == "deny" else ""
    tools = [*trial.tools.named, *verified.scopes]
    if why_wide and not names_tool(verified.note.quote, tools, trial.conditions):
        verified.why_only_asks = why_wide
        verified.note = replace(verified.note, effect="ask")


def _why_wide(verified: Verified, trial: _Trial) -> str:
    """Say which stopped calls the quote of a condition does not name; "" if they are few."""
    note = verified.note
    stopped, worked = verified.would_stop
    found, total = ordinary_stops(note.quote, verified.scopes, trial.stops)
    if len(found) > MAX_ORDINARY * total:
        shown = plain(shown_call(found[0].tool, found[0].arguments), 60)
        why = "ordinary calls would be stopped that the quote does not name"
        return f"{len(found)} of {total} {why}, such as `{shown}`"
    if has_in_common(note.quote, trial.conditions):
        return ""
    if worked >= MIN_WORKED and stopped > MAX_WORKED * worked:
        return f"{stopped} of the last {worked} calls would have been stopped, and no tool is named"
    calls: list[Call] = []
    for name in trial.tools.named:
        calls += plain_calls(name, trial.tools.schema(name).properties)
    number = sum(trial.stops(trial.tools.view(*call)) for call in calls)
    if number > MAX_WORKED * len(calls) or any(each.always for each in trial.conditions.when):
        share = f"{number} of {len(calls)} plain calls" if calls else "all calls"
        return f"{share} of the tool would be stopped, and the quote does not name it"
    return ""


def shown_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Write a call for the user: its command, or its tool and the values of its arguments."""
    command = arguments.get("command")
    if isinstance(command, str):
        return command
    values = (str(each) for each in arguments.values() if isinstance(each, str | int | float))
    return " ".join([tool, *values])
