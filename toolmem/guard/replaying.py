"""What the guard would have said to recorded calls: each treated as it ran, and each repeat flagged afresh.

A conversation's own calls in order; other conversations as of those that had ended. Nothing is known at the start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolmem.guard.call_lessons import learn
from toolmem.guard.decision import CheckedRule, Finding, against_names, against_repeat, against_rules
from toolmem.guard.effects import asks_outside, names_text
from toolmem.guard.histories import PASSING
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Forgiveness, StandingFailures, identity
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.view import view_of
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.proportions import wilson_interval

SOURCES = ("rule", "repeat", "known_name", "schema")


class ReplayCall(Protocol):
    """What a replay reads of a recorded call."""

    @property
    def tool_name(self) -> str: ...
    @property
    def input(self) -> Any: ...
    @property
    def output(self) -> str: ...
    @property
    def success(self) -> bool | None: ...
    @property
    def conversation_id(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Flag:
    """One flagged call."""

    index: int  # of the record
    source: Finding
    failed: bool | None  # how the call ended, as recorded


@dataclass(slots=True)
class ReplayResult:
    """What came of it."""

    calls: int = 0
    failures: int = 0
    flags: list[Flag] = field(default_factory=list)

    def of(self, kind: str) -> dict[str, Any]:
        """flagged, wrong, recall, precision of a source, with 95 % intervals (Wilson)."""
        flagged = {flag.index: flag for flag in self.flags if kind in {flag.source.kind, "any"}}
        wrong = sum(flag.failed is False for flag in flagged.values())
        hits = sum(flag.failed is True for flag in flagged.values())
        return {
            "flagged": len(flagged),
            "wrong": wrong,
            "recall": hits / self.failures if self.failures else None,
            "recall_interval": _interval(hits, self.failures),
            "precision": hits / len(flagged) if flagged else None,
            "precision_interval": _interval(hits, len(flagged)),
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "failures": self.failures,
            "sources": {kind: self.of(kind) for kind in SOURCES},
            "flags": [
                {
                    "index": flag.index,
                    "source": flag.source.kind,
                    "action": flag.source.action,
                    "rule_id": flag.source.rule_id,
                    "call_ids": list(flag.source.call_ids),
                }
                for flag in self.flags
            ],
        }


def _interval(k: int, n: int) -> list[float] | None:
    return list(wilson_interval(k, n)) if n else None


@dataclass(slots=True)
class _Context:
    names: KnownNames = field(default_factory=KnownNames)


def replay(
    calls: Iterable[tuple[int, ReplayCall]],
    rules: Mapping[str, Sequence[CheckedRule]] | None = None,
    *,
    context_key: str = "",
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> ReplayResult:
    """Replay calls in order of time. `rules`: by tool ("" for those of every tool); `context_key`: the field of a
    record that names its context, as in `metadata.database`; `parameters`: the declared JSON schemas by tool."""
    done = ReplayResult()
    forgiveness = Forgiveness()
    conversations: dict[str, StandingFailures] = {}
    contexts: dict[str, KnownNames] = defaultdict(KnownNames)
    for index, call in calls:
        if is_denied(call.output):  # it did not run, so it says nothing about what came of it
            continue
        failed = None if call.success is None else not call.success
        done.calls += 1
        done.failures += failed is True
        key = identity(call.tool_name, call.input)
        alone = call.conversation_id or f"\0{index}"
        repeats = conversations.setdefault(alone, StandingFailures(forgiveness))
        names = contexts[_context(call, context_key)] if context_key else None
        statement = names_text(call.input, call.tool_name)
        for source in _sources(call, key, repeats, names, statement, rules or {}, parameters or {}):
            done.flags.append(Flag(index, source, failed))
        learn(repeats, key, call.tool_name, call.input, failed=bool(failed), output=call.output, call_id=str(index))
        if names is not None and statement and failed is not None:
            names.learn(statement, call.output, failed=failed)
    return done


def _sources(
    call: ReplayCall,
    key: str,
    repeats: StandingFailures,
    names: KnownNames | None,
    statement: str,
    rules: Mapping[str, Sequence[CheckedRule]],
    parameters: Mapping[str, Mapping[str, Any]],
) -> list[Finding]:
    found: list[Finding] = []
    places = (call.tool_name, *scopes_of(call.tool_name, parameters.get(call.tool_name), call.input), "")
    bound = [rule for place in dict.fromkeys(places) for rule in rules.get(place, ())]
    if bound:
        given = call.input if isinstance(call.input, Mapping) else {"": call.input}
        view = view_of(call.tool_name, given, parameters.get(call.tool_name))
        found += against_rules(bound, view, "enforce", history=PASSING)  # nothing is claimed of order and counts
    held = repeats.before(key)
    if held is not None and held.wait is None:
        found += against_repeat(
            held,
            "enforce",
            only_advise=repeats.unwatched or held.failure.may_differ or asks_outside(call.tool_name, call.input),
        )
    if names is not None and statement:
        found += against_names(names.against(statement), "enforce")[:1]
    return found


def _context(call: ReplayCall, context_key: str) -> str:
    """The value of a dotted field of a record."""
    value: Any = call
    for part in context_key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return f"{call.tool_name}\0{value}"
