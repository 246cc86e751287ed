"""Read the values of the pages of calls."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

from toolmem.guard.rule_cache import RuleSet
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import OUTCOMES, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.guidance import Line
from toolmem.models.tools import LoggedCall
from toolmem.operations.guidance import records_shown
from toolmem.operations.results import Calls
from toolmem.server.access import Refused
from toolmem.server.console.paging import PAGE, Query, whole_number
from toolmem.store.base import CALLS_AT_ONCE
from toolmem.text.display import bounded, marked
from toolmem.view.conditions import Match
from toolmem.view.view import CallView

MAX_SCANNED = 5_000  # calls that one page reads to find calls with an outcome
MAX_SHOWN = 20_000  # characters of an input or output
NEIGHBOURS = 15  # calls of the conversation before this one, and after it
LIST_FIELDS = ("of", "conversation", "outcome", "q", "line", "all")  # of a list's address


def calls(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of calls: the newest that match the filters of the query.

    `more`: the value of `before` with which a query gets the next older calls; None at the end.
    """
    listed = _listed({**query, "of": query.get("tool", "")})
    found = find_calls(memory, listed, before=whole_number(query.get("before")), limit=PAGE)
    return {
        "line": _line_of(memory, listed),
        "listed": listed if any(listed.values()) else {"all": "1"},
        "found": found[::-1],
        "more": found.next,
        "scanned": MAX_SCANNED,
    }


def _listed(query: Query) -> dict[str, str]:
    return {name: query.get(name, "") for name in LIST_FIELDS}


def find_calls(memory: Workspace, query: Query, **page: Any) -> Calls:
    """Find the newest calls that match, oldest first. `page`: `before`, `limit`. Raises Refused."""
    line = _line_of(memory, query)
    given: dict[str, Any] = {
        "tool_names": [query["of"]] if query.get("of") else None,
        "conversation_id": query.get("conversation") or None,
        "outcome": query.get("outcome") or None,
        "text": query.get("q") or None,
        "ids": line.call_ids if line else None,
    }
    return memory.calls(**given, **page)


def _line_of(memory: Workspace, query: Query) -> Line | None:
    """Find the line of guidance whose calls the query lists; None if it names no line."""
    index = whole_number(query.get("line"))
    if index is None:
        return None
    records = records_shown(memory, [query.get("of", "")])
    lines = records[0].guidance.lines if records and records[0].guidance else []
    if index >= len(lines):
        raise Refused(404, "the card has changed since: open it again")
    return lines[index]


def call(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of a call: its decisions, and the rules of today that match it.

    `older`, `newer`: the calls beside it in the list it was opened from, else in its tool's.
    """
    logged = logged_call(memory, query)
    store = memory.services.store()
    shown = logged.call
    conversation = shown.conversation_id
    listed = _listed(query)
    is_list = any(listed.values())
    if not is_list:
        listed["of"] = shown.tool_name
    around: list[LoggedCall] = []
    decided: list[Decision] = []
    if conversation:
        read = partial(store.call_log, memory.workspace_name, conversation_id=conversation)
        around = read(before=logged.position, newest=True, limit=NEIGHBOURS)
        around += read(after=logged.position - 1, limit=NEIGHBOURS + 1)
        decided = memory.decisions(conversation_id=conversation, tool_name=shown.tool_name)
    output = _readable(shown.output)
    return {
        "call": shown,
        "listed": listed,
        "is_list": is_list,
        "back": {**listed, "tool": listed["of"], "of": "", "all": ""},
        "older": _neighbour(memory, listed, {"before": logged.position, "newest": True}),
        "newer": _neighbour(memory, listed, {"after": logged.position}),
        "input": marked(bounded(_readable(shown.input), MAX_SHOWN)),
        "output": marked(bounded(output, MAX_SHOWN)),
        "around": [each.call for each in around],
        "decided": decided,
        "against": _rules_against(memory, shown),
        "is_cut": len(output) > MAX_SHOWN,
    }


def _neighbour(memory: Workspace, listed: Query, place: dict[str, Any]) -> ToolCallResult | None:
    """Find the next older (`{"before": position}`) or newer (`"after"`) call of a list."""
    line = _line_of(memory, listed)
    fits = OUTCOMES.get(listed["outcome"])
    read = partial(
        memory.services.store().call_log,
        memory.workspace_name,
        tool_names=listed["of"] or None,
        conversation_id=listed["conversation"] or None,
        contains=listed["q"],
        ids=line.call_ids if line else None,
        limit=CALLS_AT_ONCE if fits else 1,
    )
    is_older = "before" in place
    scanned = 0
    while scanned < MAX_SCANNED and (page := read(**place)):
        for each in reversed(page) if is_older else page:
            if fits is None or fits(each.call):
                return each.call
        scanned += len(page)
        place |= {"before": page[0].position} if is_older else {"after": page[-1].position}
    return None


def _rules_against(memory: Workspace, call: ToolCallResult) -> list[Any]:
    view = CallView(call.tool_name, call.input)
    now = memory.rules.local_time()
    listed = RuleSet(memory.rules, "").rules_for(view, call.conversation_id)
    return [rule for each, rule, tests in listed if tests.check(each, now) is not Match.NO]


def logged_call(memory: Workspace, query: Query) -> LoggedCall:
    """Find the call with the query's `tool` and `id`. Raises Refused if it is not kept."""
    found = memory.services.store().call_log(
        memory.workspace_name, tool_names=query.get("tool", ""), ids=[query.get("id", "")]
    )
    if not found:
        raise Refused(404, "this call is not kept any more")
    return found[0]


def _readable(value: Any) -> str:
    """JSON, indented; other texts as they are."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    if text[:1] in "[{":
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text
