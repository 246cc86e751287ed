"""What the guard would have said to recorded calls, each treated as it ran.

The calls of a conversation in their order; other conversations as of those that had ended. Nothing
is known at the start, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from toolmem.guard.decision import Finding
from toolmem.guard.known_names import KnownNames, statement_in
from toolmem.guard.repeats import ConversationFailures, check_repeat, ended_as, identity, take
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Action
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.rules.identity import folded_name
from toolmem.text.stopped_calls import was_stopped
from toolmem.view.conditions import History, Match, read_conditions
from toolmem.view.effects import CallEffects
from toolmem.view.view import CallView

SOURCES = ("rule", "repeat", "known_name")


class Flag(Struct):
    """One flagged call. `index`: its position in the recording, from 0."""

    index: int
    source: str
    action: str
    failed: bool | None
    rule_id: str = ""
    call_ids: tuple[str, ...] = ()


class SourceFigures(Struct):
    """Flagged calls of one source; `wrong`: those that worked."""

    flagged: int
    wrong: int
    recall: float | None  # share of all failures that was flagged
    precision: float | None


class Replay(Struct, kw_only=True):
    """What came of it."""

    calls: int = 0
    failures: int = 0
    sources: dict[str, SourceFigures] = {}
    flags: list[Flag] = []


class _Passing(History):
    """No claim is made on order and counts."""

    def happened(self, test: Any, unless: bool) -> bool:
        return unless


def replay(calls: Iterable[ToolCallResult], rules: Sequence[ToolMemoryRule] = ()) -> Replay:
    """Replay calls in order of time."""
    done = Replay()
    checked = [(each, read_conditions(each.when, each.unless)) for each in rules if each.is_checked]
    conversations: dict[str, ConversationFailures] = {}
    names: dict[str, KnownNames] = {}
    forgiven: set[str] = set()
    ordered = sorted(enumerate(calls), key=lambda each: (each[1].create_time, each[0]))
    for index, call in ordered:
        if was_stopped(call.output):
            continue
        failed = None if call.success is None else not call.success
        done.calls += 1
        done.failures += failed is True
        alone = call.conversation_id or f"\0{index}"
        held = conversations.setdefault(alone, ConversationFailures())
        known = names.setdefault(alone, KnownNames())
        given = call.input if isinstance(call.input, dict) else {"": call.input}
        view, effects = CallView(call.tool_name, given), CallEffects(call.tool_name, given)
        key, statement = identity(call.tool_name, call.input, b""), statement_in(call.input)
        found = _broken(checked, view, call)
        if key in held.failures:
            outside = effects.asks_outside()
            repeats = check_repeat(held, key, forgiven, "enforce", outside, True)
            found += [each for each in repeats if "wait" not in each.text or each.action == "deny"]
        found += list(known.check(statement, "enforce"))[:1] if statement else []
        for each in found:
            done.flags.append(
                Flag(index, each.kind, each.action, failed, each.rule_id, each.call_ids)
            )
        ended = ended_as(effects, call.output, failed=bool(failed))
        worked = take(held, key, ended, failed=bool(failed), call_id=str(index))
        if worked and not failed and not worked.startswith("here:"):
            forgiven.add(worked)
        if statement and failed is not None:
            known.learn(statement, call.output, failed=failed)
    done.sources = {source: _figures(done, source) for source in SOURCES}
    return done


def _broken(checked: Sequence[Any], view: CallView, call: ToolCallResult) -> list[Finding]:
    found = []
    places = {folded_name(view.tool), *view.classes, UNSCOPED}
    for rule, conditions in checked:
        if folded_name(rule.tool_name) in places:
            match = conditions.check(view, call.create_time, _Passing())
            if match is not Match.NO:
                action: Action = (
                    "ask" if match is Match.MAYBE else "deny" if rule.effect == "deny" else "ask"
                )
                found.append(Finding(kind="rule", action=action, text=rule.rule, rule_id=rule.id))
    return found


def _figures(done: Replay, source: str) -> SourceFigures:
    flagged = {flag.index: flag.failed for flag in done.flags if flag.source == source}
    wrong = sum(failed is False for failed in flagged.values())
    hits = sum(failed is True for failed in flagged.values())
    return SourceFigures(
        len(flagged),
        wrong,
        hits / done.failures if done.failures else None,
        hits / len(flagged) if flagged else None,
    )
