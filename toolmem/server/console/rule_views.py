"""What the pages of rules and decisions show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from toolmem.errors import RequestError
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.rules import UNSCOPED, ToolMemoryRule
from toolmem.pages.html import dumped
from toolmem.rules.capture import read_new_rule
from toolmem.rules.changes import loosens
from toolmem.rules.identity import folded_name, text_key
from toolmem.server.access import Refused
from toolmem.server.console.paging import Query, cut
from toolmem.view.conditions import Match, read_conditions
from toolmem.view.view import CallView

MAX_REPLAYED = 2_000  # calls that a rule is tried against
FIELDS = ("tool_name", "rule", "priority", "effect", "when", "unless")


class RuleRow(Struct):
    """A rule, and how often it stopped a call or asked about one, by the newest decisions."""

    rule: ToolMemoryRule
    state: str  # holds, waiting, ended
    stopped: int = 0
    stopped_at: datetime | None = None


class Trial(Struct):
    """What a rule would have done to recorded calls."""

    calls: int = 0
    stopped: list[ToolCallResult] = field(default_factory=list)
    worked: int = 0  # of the stopped ones
    is_partial: bool = False  # tests of earlier calls found none


def rules(memory: Workspace, query: Query) -> dict[str, Any]:
    """The rules in one state: those that hold, wait for the user, or have ended."""
    decisions, now = memory.decisions(limit=1_000), memory.services.clock.now()
    every = rule_rows(memory.rules.every_rule(), decisions, now)
    state = query.get("state", "")
    state = state if state in IN_STATE else "holds"
    wanted = query.get("q", "").casefold()
    counts = {name: sum(map(IN_STATE[name], every)) for name in IN_STATE}
    rows = [
        row
        for row in filter(IN_STATE[state], every)
        if wanted in f"{row.rule.rule}\n{row.rule.tool_name}".casefold()
        and query.get("effect", "") in ("", row.rule.effect)
    ]
    rows.sort(key=lambda row: (-row.stopped, row.rule.tool_name.lower(), row.rule.rule))
    return {"counts": counts, "state": state, **cut(rows, query)}


IN_STATE: dict[str, Callable[[RuleRow], bool]] = {
    "holds": lambda row: row.state == "holds",
    "waiting": lambda row: row.state == "waiting" or row.rule.request is not None,
    "ended": lambda row: row.state == "ended",
}


def rule_rows(
    rules: Iterable[ToolMemoryRule], decisions: Iterable[Decision], now: datetime
) -> list[RuleRow]:
    """Add to each rule what `decisions` say of it. They are in the order of their times."""
    rows = {}
    for each in rules:
        state = "holds" if each.holds_at(now) else "ended"
        if each.status == "request":
            state = "waiting"
        rows[each.id] = RuleRow(each, state)
    for decision in decisions:
        if decision.action not in ("ask", "deny"):
            continue
        for rule_id in {source.rule_id for source in decision.sources}:
            if row := rows.get(rule_id):
                row.stopped += 1
                row.stopped_at = decision.time
    return list(rows.values())


def rule(memory: Workspace, query: Query) -> dict[str, Any]:
    """One rule: what it means, where it comes from, what it stopped, and trials of it."""
    found = rule_of(memory, query.get("id", ""))
    decisions, now = memory.decisions(limit=1_000), memory.rules.local_time()
    about = [d for d in decisions if any(s.rule_id == found.id for s in d.sources)]
    asked = found.request.after if found.request else {}
    then = msgspec.convert({**msgspec.to_builtins(found), **asked}, ToolMemoryRule)
    return {
        "row": rule_rows([found], decisions, now)[0],
        "rule": found,
        "seen": content_digest(found),
        "then": then,
        "is_looser": loosens(found, then, now),
        "about": about[::-1][:10],
        "trial": replay(memory, then) if "replay" in query else None,
        "answer": try_call(then, query, now) if query.get("call") else None,
    }


def draft(memory: Workspace, query: Query) -> dict[str, Any]:
    """A rule that is being written, or edited: how it is understood, and what it would stop."""
    known = rule_of(memory, query["id"]) if query.get("id") else None
    given = {name: query.get(name, "") for name in FIELDS}
    if known is not None and "rule" not in query:
        given = {name: getattr(known, name) for name in FIELDS}
        for name in ("when", "unless"):
            given[name] = dumped(given[name]) if given[name] else ""
    problem = ""
    then: ToolMemoryRule | None = None
    if given["rule"] and given["tool_name"]:
        try:
            then = drafted(memory, given, known)
        except RequestError as error:
            problem = str(error)
    others = memory.tool_rule_list(given["tool_name"]) if then else []
    text, own = text_key(given["rule"]), query.get("id")
    return {
        "known": known,
        "seen": content_digest(known) if known else "",
        "given": given,
        "then": then,
        "problem": problem,
        "trial": replay(memory, then) if then is not None and then.is_checked else None,
        "same": [each for each in others if text_key(each.rule) == text and each.id != own],
    }


def drafted(memory: Workspace, given: Query, known: ToolMemoryRule | None) -> ToolMemoryRule:
    """The rule of a form. Without an effect its text is read as a sentence. Raises RequestError."""
    fields = rule_fields(given)
    if not fields.keys() & {"effect", "when", "unless"}:
        fields |= read_new_rule(memory.rules, given["tool_name"], given["rule"])
    now = memory.services.clock.now()
    base = known or ToolMemoryRule(id="", tool_name="", rule="", created_at=now, updated_at=now)
    try:
        made = msgspec.convert({**msgspec.to_builtins(base), **fields}, ToolMemoryRule)
    except msgspec.ValidationError as error:
        raise RequestError(str(error)) from None
    if made.when:
        read_conditions(made.when, made.unless)
    return made


def rule_fields(given: Query) -> dict[str, Any]:
    """The fields of a form as a rule has them; empty ones are left out. Raises RequestError."""
    fields: dict[str, Any] = {name: given[name] for name in FIELDS if given.get(name)}
    for name in ("when", "unless"):
        if name in fields:
            try:
                fields[name] = json.loads(fields[name])
            except (ValueError, RecursionError) as error:
                raise RequestError(f"{name}: no JSON: {error}", name) from None
    return fields


def content_digest(rule: ToolMemoryRule) -> str:
    """A digest of all that a page shows of a rule: what is approved is what was read."""
    return hashlib.sha256(msgspec.json.encode(rule)).hexdigest()[:32]


def rule_of(memory: Workspace, rule_id: str) -> ToolMemoryRule:
    """Raises Refused."""
    for each in memory.rules.every_rule():
        if each.id == rule_id:
            return each
    raise Refused(404, "there is no such rule any more")


def try_call(rule: ToolMemoryRule, query: Query, now: datetime) -> str:
    """What a rule makes of a call that a person wrote. `now`: in the user's time zone."""
    if not rule.when:
        return "It only reminds: no call is held against it."
    arguments: Any = {"command": query["call"]}
    if query["call"].lstrip().startswith("{"):
        try:
            arguments = json.loads(query["call"])
        except (ValueError, RecursionError) as error:
            return f"These arguments are no JSON: {error}."
    conditions = read_conditions(rule.when, rule.unless)
    match = conditions.check(CallView(rule.tool_name, arguments), now)
    effect = "stopped" if rule.effect == "deny" else "asked about"
    told = {Match.NO: "let through", Match.YES: effect, Match.MAYBE: "asked about: it is not sure"}
    return f"This call would be {told[match]}."


def replay(memory: Workspace, rule: ToolMemoryRule) -> Trial:
    """Hold the newest calls against a rule; tests of earlier calls find none."""
    done, store = Trial(), memory.services.store()
    if not rule.when:
        return done
    tests, name = read_conditions(rule.when, rule.unless), folded_name(rule.tool_name)
    done.is_partial = any(each.earlier or each.more_than for each in (*tests.when, *tests.unless))
    is_class = name.startswith("@")
    tools: list[str | None] = [None]  # all tools
    if not is_class and name != UNSCOPED:
        known = store.tool_names(memory.workspace_id)
        tools = [each for each in known if folded_name(each) == name]
    for tool in tools:
        log = store.call_log(memory.workspace_id, tool=tool, newest=True, limit=MAX_REPLAYED)
        for call in (logged.call for logged in log):
            view = CallView(call.tool_name, call.input)
            if is_class and name not in view.classes:
                continue
            done.calls += 1
            made_at = call.create_time.astimezone(memory.rules.zone)
            if tests.check(view, made_at) is not Match.NO:
                done.stopped.append(call)
                done.worked += call.failed is False
    return done


def decisions(memory: Workspace, query: Query) -> dict[str, Any]:
    """The guard's log, the newest first."""
    found = memory.decisions(
        conversation_id=query.get("conversation") or None,
        tool_name=query.get("tool") or None,
        limit=1_000,
    )
    action = query.get("action", "")
    kind = query.get("kind", "")
    rows = [
        each
        for each in reversed(found)
        if action in ("", each.action) and (not kind or kind in {s.kind for s in each.sources})
    ]
    return cut(rows, query)


def decision(memory: Workspace, query: Query) -> dict[str, Any]:
    """One decision: why, and the rules and calls that it rests on."""
    store, asked = memory.services.store(), query.get("id", "")
    found = store.decisions(memory.workspace_id, ids=[asked])
    if not found:
        raise Refused(404, "this decision is not kept any more")
    ids = {source.rule_id for source in found[0].sources if source.rule_id}
    calls = [each for source in found[0].sources for each in source.call_ids]
    name = found[0].tool_name
    return {
        "decision": found[0],
        "rules": [each for each in memory.rules.every_rule() if each.id in ids],
        "evidence": store.call_log(memory.workspace_id, tool=name, ids=calls) if calls else [],
    }
