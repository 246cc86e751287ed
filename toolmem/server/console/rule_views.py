"""Read the values of the pages of rules and decisions."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, get_args

from msgspec.structs import replace

from toolmem.errors import RequestError, wrong
from toolmem.guard.trial import RuleTrial
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import OUTCOMES
from toolmem.models.decisions import Action, Decision, SourceKind
from toolmem.models.rules import RANK, Effect, ToolMemoryRule
from toolmem.operations.rules import RuleOverview
from toolmem.pages.html import dumped
from toolmem.rules.changes import ONLY_ASKS, loosens
from toolmem.rules.identity import text_key
from toolmem.server.access import Refused
from toolmem.server.console.paging import Query, cut
from toolmem.text.display import zone_name

MAX_DECISIONS = 1_000  # of a list
NEWEST = 10  # decisions on the page of a rule
FIELDS = ("tool_name", "rule", "priority", "effect", "when", "unless", "expires_at")
EFFECTS = get_args(Effect)
ACTIONS = get_args(Action)
KINDS = get_args(SourceKind)


def rules(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of rules in the state that the query names: holds, waiting or ended."""
    found = rules_by_state(memory, query)
    state = query.get("state", "")
    state = state if state in found else "holds"
    counts = {name: len(rows) for name, rows in found.items()}
    return {"counts": counts, "state": state, **cut(found[state], query)}


def rules_by_state(memory: Workspace, query: Query) -> dict[str, list[RuleOverview]]:
    """Rules that match the query, by state. A rule whose change waits is in two lists."""
    effect: Any = query.get("effect") if query.get("effect") in EFFECTS else None
    every = memory.tool_rules(effect=effect, text=query.get("q") or None)
    return {
        "holds": [each for each in every if each.state == "holds"],
        "waiting": [each for each in every if each.state == "waiting" or each.rule.request],
        "ended": [each for each in every if each.state == "ended"],
    }


def rule(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of a rule: its decisions, and trials of it on calls."""
    row = rule_of(memory, query.get("id", ""))
    found = row.rule
    waits = found.status == "request" or found.request is not None
    trial: RuleTrial | None = None
    freed: RuleTrial | None = None
    answer = ""
    problem = ""
    try:
        if waits or "replay" in query:
            trial = memory.tool_rule_try(id=found.id)
            freed = _freed(memory, found, trial)
        if query.get("call"):
            answer = _answer(memory, found, query["call"])
    except RequestError as error:
        problem = str(error)
    return {
        "row": row,
        "rule": found,
        "waits": waits,
        "is_question": found.request is not None and found.request.evidence == "typed",
        "is_looser": loosens(found, found.as_asked, memory.rules.local_time()),
        "is_weak": not found.is_checked or ONLY_ASKS in found.tags,
        "about": memory.decisions(rule_id=found.id, limit=NEWEST)[::-1],
        "trial": trial,
        "freed": freed,
        "answer": answer,
        "problem": problem,
    }


def rule_of(memory: Workspace, rule_id: str) -> RuleOverview:
    """Find a rule in any state by its id. Raises Refused if there is none."""
    found = memory.tool_rules(ids=[rule_id])
    if not found:
        raise Refused(404, "there is no such rule any more")
    return found[0]


def _freed(memory: Workspace, rule: ToolMemoryRule, trial: RuleTrial) -> RuleTrial | None:
    """Find recorded calls that the rule stops today but no longer after its requested change."""
    if rule.request is None or not rule.is_checked:
        return None
    fields: Any = {"effect": rule.effect, "when": rule.when, "unless": rule.unless}
    today = memory.tool_rule_try(tool_name=rule.tool_name, rule=rule.rule, **fields)
    ends = not trial.rule.holds_at(memory.services.clock.now())
    stopped = set() if ends else {(call.tool_name, call.id) for call in trial.stopped}
    calls = [call for call in today.stopped if (call.tool_name, call.id) not in stopped]
    worked = sum(OUTCOMES["worked"](call) for call in calls)
    return replace(today, stopped=calls, worked=worked)


def _answer(memory: Workspace, rule: ToolMemoryRule, call: str) -> str:
    """The answer of a rule to a call that a person wrote. Raises RequestError.

    It is `deny`, `ask`, `remind`, `allow`, or `maybe` where the match is unclear.
    """
    given: Any = call
    if call.lstrip().startswith("{"):
        try:
            given = json.loads(call)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"These arguments are no JSON: {error}.") from None
    tried = memory.tool_rule_try(id=rule.id, call=given)
    effect = tried.rule.effect if tried.rule.is_checked else "remind"
    if effect == "remind" or tried.match == "yes":
        return effect
    return "maybe" if tried.match == "maybe" else "allow"


def draft(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of a draft: how the rule is understood, and what it would stop."""
    row = editable(memory, query["id"]) if query.get("id") else None
    known = row.rule if row else None
    given = {name: query.get(name, "") for name in FIELDS}
    if known is not None and "rule" not in query:
        given = _as_form(memory, known)
    elif known is not None and text_key(given["rule"]) != text_key(known.rule):
        stored = _as_form(memory, known)
        conditions = ("effect", "when", "unless")
        if all(given[name] == stored[name] for name in conditions):
            given |= dict.fromkeys(conditions, "")  # read the new sentence
    problem = ""
    trial: RuleTrial | None = None
    if given["rule"] and given["tool_name"]:
        try:
            trial = _tried(memory, given, query.get("words", ""), known)
        except RequestError as error:
            problem = str(error)
    others = memory.tool_rule_list(given["tool_name"]) if trial else []
    text = text_key(given["rule"])
    own = query.get("id")
    now = memory.rules.local_time()
    return {
        "known": known,
        "seen": row.digest if row else "",
        "given": given,
        "saved": _previewed(given, trial.rule) if trial else {},
        "trial": trial,
        "problem": problem,
        "zone": zone_name(memory.rules.zone, now),
        "same": [each for each in others if text_key(each.rule) == text and each.id != own],
    }


def editable(memory: Workspace, rule_id: str) -> RuleOverview:
    """Find a rule by id. Raises RequestError if it cannot be edited, Refused if it is gone."""
    found = rule_of(memory, rule_id)
    if found.rule.session:
        raise RequestError("this rule holds in one conversation: it can only be withdrawn", "id")
    if found.rule.status == "request":
        raise RequestError("this rule waits: approve or reject it first", "id")
    return found


def _as_form(memory: Workspace, rule: ToolMemoryRule) -> dict[str, str]:
    """Return a rule's fields for its form. An end that has passed is left out."""
    texts: dict[str, str] = {name: getattr(rule, name) for name in FIELDS[:4]}
    for name in ("when", "unless"):
        texts[name] = dumped(getattr(rule, name)) if getattr(rule, name) else ""
    ends = rule.expires_at
    is_open = ends is not None and ends > memory.services.clock.now()
    texts["expires_at"] = _local(ends, memory.rules.zone) if ends and is_open else ""
    return texts


def _local(moment: datetime, zone: Any) -> str:
    """Write a time for a form's field, such as 2027-05-03T14:30."""
    return f"{moment.astimezone(zone):%Y-%m-%dT%H:%M}"


def _tried(memory: Workspace, given: Query, words: str, known: ToolMemoryRule | None) -> RuleTrial:
    """Try the rule of a form on recorded calls. Raises RequestError.

    Effect and conditions are read from `words` if given, else from the form, else the sentence.
    """
    fields = rule_fields(memory, given, known)
    tool = fields["tool_name"]
    text = fields["rule"]
    conditions = {name: fields[name] for name in ("effect", "when", "unless") if name in fields}
    if words:
        read = memory.tool_rule_try(tool_name=tool, rule=words, recorded=1).rule
        if not read.is_checked:
            unread = f": {', '.join(read.unread)}" if read.unread else ""
            raise RequestError(f"These words were not understood{unread}. Use other words.")
        conditions = {"effect": read.effect, "when": read.when, "unless": read.unless}
    trial = memory.tool_rule_try(tool_name=tool, rule=text, **conditions)
    if trial.rule.effect != "remind" and not trial.rule.when:
        problem = "The sentence was not understood. Write its conditions, or let it remind."
        raise RequestError(problem, "when")
    return trial


def _previewed(given: Query, rule: ToolMemoryRule) -> dict[str, str]:
    """Return the form's fields with the effect and conditions that were read from the rule."""
    read = {"effect": rule.effect, "when": dumped(rule.when), "unless": dumped(rule.unless)}
    is_read = given["effect"] or rule.is_checked  # a reminder keeps its unread words
    return {**given, **(read if is_read else {})}


def rule_fields(memory: Workspace, given: Query, known: ToolMemoryRule | None) -> dict[str, Any]:
    """Convert a form's fields to arguments of `tool_rule_put`. Raises RequestError.

    `known`: the edited rule. If `effect` is given, an empty `when` or `unless` removes the old one.
    """
    fields: dict[str, Any] = {name: given[name] for name in FIELDS if given.get(name)}
    if fields.get("priority", "normal") not in RANK:
        raise RequestError(f"priority: expected one of {', '.join(RANK)}", "priority")
    for name in ("when", "unless"):
        if name in fields:
            try:
                fields[name] = json.loads(fields[name])
            except (ValueError, RecursionError) as error:
                raise RequestError(f"{name}: no JSON: {error}", name) from None
        elif known is not None and "effect" in fields:
            fields[name] = []
    ends = fields.pop("expires_at", "")
    before = known.expires_at if known else None
    if not ends:
        fields["expires_at"] = "never"
    elif before is None or ends != _local(before, memory.rules.zone):
        fields["expires_at"] = _read_end(memory, ends)
    return fields


def _read_end(memory: Workspace, text: str) -> datetime:
    """Read a future time in the user's time zone. Raises RequestError."""
    zone = memory.rules.zone
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=zone) if zone and not moment.tzinfo else moment.astimezone()
        is_past = moment <= memory.services.clock.now()
    except (ValueError, OverflowError, OSError):
        raise wrong("expires_at", "expected a date and a time, such as 2026-12-01T18:00") from None
    if is_past:
        raise RequestError("expires_at: this time is past: give a future one", "expires_at")
    return moment


def decisions(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of decisions, newest first. `is_cut`: there may be older ones."""
    found = find_decisions(memory, query)
    return {"is_cut": len(found) == MAX_DECISIONS, **cut(found, query)}


def find_decisions(memory: Workspace, query: Query) -> list[Decision]:
    """The decisions that match the query, newest first, at most 1,000."""
    asked: dict[str, Any] = {
        "conversation_id": query.get("conversation") or None,
        "tool_name": query.get("tool") or None,
        "action": query.get("action") if query.get("action") in ACTIONS else None,
        "kind": query.get("kind") if query.get("kind") in KINDS else None,
    }
    return memory.decisions(**asked, limit=MAX_DECISIONS)[::-1]


def decision(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of a decision, with the rules and calls that it is based on."""
    found = decision_of(memory, query.get("id", ""))
    calls = [each for source in found.sources for each in source.call_ids]
    return {
        "decision": found,
        "rules": memory.tool_rules(ids=found.rule_ids),
        "evidence": memory.calls([found.tool_name], ids=calls)[::-1] if calls else [],
    }


def decision_of(memory: Workspace, decision_id: str) -> Decision:
    """Find a decision by its id. Raises Refused if it is not kept."""
    found = memory.decisions(ids=[decision_id])
    if not found:
        raise Refused(404, "this decision is not kept any more")
    return found[0]
