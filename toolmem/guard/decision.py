"""What stands against a call, from several sources, and what the host is told: deny over ask over advise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from toolmem.errors import RequestError
from toolmem.guard.call_conditions import Condition, needs_history, of_alternatives, validator_of
from toolmem.guard.known_names import Missing
from toolmem.guard.open_words import may_bind, with_literals
from toolmem.guard.repeats import Held
from toolmem.guard.shell_commands import TOO_DEEP, UNKNOWN, Argv, is_glob
from toolmem.guard.view import View
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass, field, replace
from toolmem.readers.denied_calls import STOPPED as STOPPED
from toolmem.readers.plain_text import plain

if TYPE_CHECKING:
    from toolmem.guard.compiled_conditions import CompiledConditions
    from toolmem.guard.histories import History

logger = late_logger("toolmem.guard")

Action = Literal["allow", "advise", "ask", "deny"]
Mode = Literal["off", "shadow", "advise", "enforce"]
Kind = Literal["rule", "repeat", "known_name", "schema", "self"]

_ORDER: dict[str, int] = {"allow": 0, "advise": 1, "ask": 2, "deny": 3}
_MOST_TOLD = 3  # sources that one reason names
_LEAVE = "Leave it out, or ask them to take it back."
_QUOTED = 200  # characters of anything that comes from a call
MODES: Mapping[str, Mode] = {"rules": "enforce", "repeats": "advise", "names": "advise", "schema": "advise"}
_SETTING = {"rule": "rules", "repeat": "repeats", "known_name": "names", "schema": "schema", "self": "rules"}


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule as the guard reads it."""

    id: str
    text: str
    effect: str  # deny, ask, remind
    when: Condition | None
    by: str = "user"
    said_at: datetime | None = None
    expires_at: datetime | None = None
    session: str = ""  # the only one in which it binds; "": in all
    _test: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)  # made when first asked for

    @property
    def checkable(self) -> bool:
        return self.effect in {"deny", "ask"} and self.when is not None

    @property
    def reminds(self) -> bool:
        """The user's, and no call is checked against it."""
        return self.effect == "remind" and self.by == "user"

    def holds(self, view: View, now: datetime, history: History | None = None) -> bool:
        """Does a call fulfil the condition? `history`: of its conversation. Raises RequestError where it is damaged."""
        if self.when is None or isinstance(self.when, bool):
            return self.when is True
        if (compiled := self.compiled) is None:
            if not self._test:
                self._test.append(validator_of(self.when))
            return bool(self._test[0].is_valid(view.fields))
        return compiled.hold(view, now) if history is None else compiled.hold(view, now, history)

    @property
    def compiled(self) -> CompiledConditions | None:
        """None where it is no list of alternatives. Raises RequestError where it is damaged."""
        if not of_alternatives(self.when):
            return None
        if not self._test:
            from toolmem.guard.alternatives import read_alternatives
            from toolmem.guard.compiled_conditions import CompiledConditions

            self._test.append(CompiledConditions(read_alternatives(self.when)))
        made: CompiledConditions = self._test[0]
        return made

    @property
    def needs_history(self) -> bool:
        """Does it ask for earlier calls, or how many there were? Cheap where it does not."""
        return self.checkable and needs_history(self.when)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that stands against a call."""

    kind: Kind
    action: Action  # as the source says, whatever its mode
    text: str  # for the agent
    mode: Mode = "enforce"
    rule_id: str = ""
    k: int | None = None
    n: int | None = None
    call_ids: tuple[str, ...] = ()
    forced: bool = False  # the call runs all the same
    is_wait: bool = False  # says how long to wait
    remedy: str = ""  # what may be done instead; several that share it say it once

    @property
    def effective(self) -> Action:
        """What the mode, and force, leave of the action."""
        if self.forced:
            return "allow"
        if self.mode == "enforce":
            return self.action
        return "advise" if self.mode == "advise" else "allow"

    def as_json(self) -> dict[str, Any]:
        told = {"kind": self.kind, "rule_id": self.rule_id, "k": self.k, "n": self.n, "call_ids": list(self.call_ids)}
        return {**told, "forced": True} if self.forced else told


@dataclass(frozen=True, slots=True)
class CallMark:
    """What is remembered of a call from its decision to its end."""

    tool_name: str
    identity: str
    conversation_id: str = ""
    state: int | None = None  # of the conversation when the call was started
    moved: int = 0  # how often this process had seen it change
    cwd: str = ""
    context: str = ""
    forced: tuple[str, ...] = ()  # the sources that would have stopped it
    hints: Mapping[str, Any] = field(default_factory=dict)  # at what the tool does, as it declares


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """What is to become of a call."""

    id: str
    action: Action
    reason: str = ""
    advice: str = ""
    sources: tuple[Finding, ...] = field(default=())
    mode: str = "enforce"  # shadow where something was found and nothing is done about it
    forced: bool = False  # it runs though something was found
    mark: CallMark | None = field(default=None, repr=False, compare=False)
    reminders: tuple[CheckedRule, ...] = field(default=(), repr=False, compare=False)  # the user's, on this tool

    @property
    def stops(self) -> bool:
        return self.action in {"ask", "deny"}

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "action": self.action,
            "reason": self.reason,
            "advice": self.advice,
            "sources": [each.as_json() for each in self.sources],
            "mode": self.mode,
        }


def decide(decision_id: str, sources: Sequence[Finding]) -> GuardDecision:
    """One decision of what all sources say."""
    if not sources:
        return GuardDecision(decision_id, "allow")
    action: Action = max((each.effective for each in sources), key=lambda each: _ORDER[each])
    forced = any(each.forced for each in sources)
    mode = "enforce" if action in {"ask", "deny"} or forced else "advise" if action == "advise" else "shadow"
    deciding = [each for each in sources if each.effective == action]
    advising = [each for each in sources if each.effective == "advise"]
    reason = ""
    if action in {"ask", "deny"}:
        asked = [each for each in sources if each.effective == "ask" and each not in deciding]
        told = [*dict.fromkeys(each.text for each in [*deciding, *asked])][:_MOST_TOLD]
        against = " ".join([*told, *_remedies(deciding)])
        reason = f"{STOPPED}. {against}" if action == "deny" else f"{STOPPED}; ask the user first. {against}"
    advice = " ".join([*dict.fromkeys(each.text for each in advising), *_remedies(advising)])
    return GuardDecision(decision_id, action, reason, advice, tuple(sources), mode, forced)


def _remedies(findings: Iterable[Finding]) -> Iterable[str]:
    return dict.fromkeys(each.remedy for each in findings if each.remedy)


# ---------------------------------------------------------------- sources


def against_rules(
    rules: Iterable[CheckedRule],
    view: View,
    mode: Mode,
    now: datetime | None = None,
    history: History | None = None,
) -> list[Finding]:
    """The rules that a call breaks; those whose condition is damaged only remind.

    `now` None: the machine's time; `history` None: nothing is known of earlier calls.
    """
    found = []
    moment = (now or datetime.now(UTC)).astimezone()
    for rule in rules:
        if not rule.checkable or rule.when is None:
            continue
        try:
            broken = _broken(rule, view, moment, history)
        except (RequestError, ValueError, TypeError, RecursionError) as error:
            _tell_damaged(rule.id, str(error)[:300])
            continue  # its text still stands in the prompt
        if broken is not None:
            found.append(of_rule(rule, broken.action, mode, broken.why, first=broken.first))
    return found


@lru_cache(maxsize=1000)
def _tell_damaged(rule_id: str, problem: str) -> None:
    """Once for each rule."""
    logger.warning("the condition of rule %r cannot be checked: it only reminds (%s)", rule_id, problem)


class _Broken(NamedTuple):
    """What a rule says to a call."""

    action: Action
    why: str = ""  # what of it is not certain
    first: str = ""  # what is to be done before it


def _broken(rule: CheckedRule, view: View, now: datetime, history: History | None) -> _Broken | None:
    """None where it does not apply."""
    when: Condition = rule.when if rule.when is not None else False
    effect: Action = "deny" if rule.effect == "deny" else "ask"
    if rule.holds(view, now, history):
        first = _missing(rule, history) if rule.needs_history else ""
        guessed = effect == "deny" and _only_by_guess(rule, view, now, history)
        return _Broken("ask" if guessed else effect, first=first)
    if when is True:
        return None
    if any(each.hides for each in view.argv) and _names_it(when, view):
        return _Broken("ask")
    if (
        view.open
        and (filled := with_literals(view, _literals(when)))
        and rule.holds(_filled(view, filled), now, history)
    ):
        return _Broken("ask")
    if view.unread and (view.unread == TOO_DEEP or may_bind(when)):
        return _Broken("ask", f"Whether this call breaks it cannot be told: it is {view.unread}.")
    return None


def _filled(view: View, fields: Mapping[str, Any]) -> View:
    """The view with other commands in it."""
    handed = [Argv(tuple(words)) for words in fields["commands"]]
    return replace(view, fields={**view.fields, **fields}, handed=handed, in_units={})


def _missing(rule: CheckedRule, history: History | None) -> str:
    """Which earlier call would let this one through."""
    from toolmem.guard.alternatives_in_words import missing_in_words

    compiled = rule.compiled
    return missing_in_words(compiled.conditions, history) if compiled is not None else ""


def _only_by_guess(rule: CheckedRule, view: View, now: datetime, history: History | None) -> bool:
    """Does it hold only because of a word that the shell alone knows?"""
    known = [words for words in view.fields["commands"] if UNKNOWN not in words]
    if len(known) == len(view.fields["commands"]) or isinstance(rule.when, bool):
        return False
    fields = {**view.fields, "commands": known, "programs": sorted({words[0] for words in known if words})}
    handed = [replace(each, words=tuple(word for word in each.words if word != UNKNOWN)) for each in view.handed]
    return not rule.holds(replace(view, fields=fields, handed=handed, in_units={}), now, history)


def _names_it(when: Condition, view: View) -> bool:
    """Does a call that runs hidden text hold a literal of the condition?"""
    text = "\n".join(view.fields["values"])
    patterns = {each.words[0] for each in view.argv if is_glob(each.words[0][:100])}
    return any(
        literal in text or any(fnmatchcase(literal, pattern) for pattern in patterns) for literal in _literals(when)
    )


def _literals(schema: Any) -> Iterable[str]:
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            if name in {"command", "word", "path", "target", "text"} and isinstance(value, str):
                yield from _literals({"pattern": value})
            elif name == "const" and isinstance(value, str):
                yield value
            elif name == "enum" and isinstance(value, list):
                yield from (each for each in value if isinstance(each, str) and len(each) > 1 and each != UNKNOWN)
            elif name == "pattern" and isinstance(value, str):
                yield from (re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"(?:\\.|[\w@/-]){3,}", value))
            elif name not in {"required", "type", "earlier"}:
                yield from _literals(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _literals(each)


def of_rule(rule: CheckedRule, action: Action, mode: Mode, why: str = "", *, first: str = "") -> Finding:
    """What stands against a call by a rule. `why`: a sentence beside the rule's own; `first`: what lets it through."""
    who = "The user said" if rule.by == "user" else "A rule says"
    when = f" on {rule.said_at.date().isoformat()}" if rule.said_at is not None else ""
    # The user's own sentence is the only one that stands unquoted.
    sentence = f"{who}{when}: {plain(rule.text, 500).removesuffix('.')}."
    text = " ".join(filter(None, (sentence, why, first)))
    remedy = "Get their consent, or leave it out." if rule.effect == "ask" else "" if first else _LEAVE
    return Finding("rule", action, text, mode, rule_id=rule.id, remedy=remedy)


def against_repeat(
    held: Held | None, mode: Mode, *, only_advise: bool = False, force: bool | None = False
) -> list[Finding]:
    """The exact call that failed before. `force` None: the host cannot say it."""
    if held is None:
        return []
    failure = held.failure
    line = quoted(failure.line)
    if held.wait is not None:
        text = (
            f"This call failed {_times(failure.times)} with {line}; wait {held.wait:g} s and send it unchanged at most "
            f"{_times(held.left, 'more ')}."
        )
        return [
            Finding("repeat", "advise", text, mode, "", failure.times, failure.times, failure.call_ids, is_wait=True)
        ]
    last = f", last at step {failure.step}" if failure.step else ""
    action: Action = "advise" if only_advise else "deny"
    since = "It may fail again" if only_advise else "Nothing that could change the outcome has changed since"
    text = (
        f"This exact call failed {_times(failure.times)} in this conversation{last}: {line}. "
        f"{since}: change the input or what it depends on"
    )
    if action == "deny" and mode == "enforce" and not (force is None and failure.forced):
        text += ", or repeat it with force" if force is not None else ", or send it once more as it is"
    text += "."
    return [Finding("repeat", action, text, mode, k=failure.times, n=failure.times, call_ids=failure.call_ids)]


def against_names(missing: Sequence[Missing], mode: Mode) -> list[Finding]:
    """Names that are known not to exist."""
    found = []
    for each in missing[:3]:
        what = quoted(each.name)
        of = f" of {quoted(', '.join(each.tables))}" if each.tables else ""
        told = f"{_times(each.times)} an error said so" if each.times else "a complete list does not hold it"
        there = f" There are: {quoted(', '.join(each.listed))}." if each.listed else ""
        text = f"There is no {each.kind} {what}{of} here: {told}, and nothing has used it since.{there}"
        found.append(Finding("known_name", "deny", text, mode, k=each.times, n=each.times))
    return found


def _times(number: int, more: str = "") -> str:
    if more:
        return f"{number} {more}time{'s' * (number != 1)}"
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def quoted(text: str) -> str:
    """Text that came from a call, as data: one line, bounded, in quotation marks that it cannot close."""
    return f"“{plain(text.replace('“', chr(34)).replace('”', chr(34)), _QUOTED)}”"
