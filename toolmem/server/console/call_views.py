"""What the pages of calls show."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from toolmem.guard.rule_cache import RuleSet
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.guidance import Line
from toolmem.models.tools import LoggedCall
from toolmem.operations.guidance import records_shown
from toolmem.server.access import Refused
from toolmem.server.console.paging import PAGE, Query, whole_number
from toolmem.text.display import bounded, marked
from toolmem.view.conditions import Match
from toolmem.view.view import CallView

MAX_SCANNED = 5_000  # calls that one page reads to find those with an outcome
MAX_SHOWN = 20_000  # characters of an input or output
NEIGHBOURS = 15  # calls of the conversation before this one, and after it
OUTCOMES: dict[str, Callable[[ToolCallResult], bool]] = {
    "failed": lambda call: call.failed is True,
    "silent": lambda call: call.failed_silently,
    "worked": lambda call: call.failed is False,
    "useless": lambda call: call.failed is False and call.score == 0,
    "unjudged": lambda call: call.score is None,
}


def find_calls(memory: Workspace, query: Query, limit: int = PAGE) -> dict[str, Any]:
    """The newest calls: of a tool, a conversation, a card's line, an outcome, with a text.

    `more`: the position before which the next page begins, None at the end; `line`: the card's.
    """
    line, keep = _line_of(memory, query), OUTCOMES.get(query.get("outcome", ""))
    before = whole_number(query.get("before"))
    found: list[LoggedCall] = []
    scanned, is_end = 0, False
    while len(found) <= limit and scanned < MAX_SCANNED and not is_end:
        page = memory.services.store().call_log(
            memory.workspace_id,
            conversation=query.get("conversation") or None,
            tool=query.get("tool") or None,
            contains=query.get("q", ""),
            ids=line.call_ids if line else None,
            before=before,
            limit=1_000 if keep else limit + 1,
            newest=True,
        )
        scanned, is_end = scanned + max(1, len(page)), not page
        before = page[0].position if page else before
        found += [each for each in reversed(page) if keep is None or keep(each.call)]
    more = None if is_end else before
    if len(found) > limit:
        more = found[limit - 1].position
    return {"line": line, "found": found[:limit], "more": more, "scanned": scanned}


def _line_of(memory: Workspace, query: Query) -> Line | None:
    """The line of a tool's card whose calls are asked for."""
    index = whole_number(query.get("line"))
    if index is None:
        return None
    records = records_shown(memory, [query.get("tool", "")])
    lines = records[0].guidance.lines if records and records[0].guidance else []
    if index >= len(lines):
        raise Refused(404, "the card was written anew since: open it again")
    return lines[index]


def call(memory: Workspace, query: Query) -> dict[str, Any]:
    """One call, what was decided in its conversation, and what today's rules say of it."""
    store = memory.services.store()
    logged = logged_call(memory, query)
    position, shown, name = logged.position, logged.call, logged.call.tool_name
    log_of_tool = partial(store.call_log, memory.workspace_id, tool=name, limit=1)
    conversation = shown.conversation_id
    around: list[LoggedCall] = []
    decided: list[Decision] = []
    if conversation:
        log = partial(store.call_log, memory.workspace_id, conversation=conversation)
        around = log(before=position, newest=True, limit=NEIGHBOURS)
        around += log(after=position - 1, limit=NEIGHBOURS + 1)
        decided = memory.decisions(conversation_id=conversation, tool_name=name)
    view, now = CallView(name, shown.input), memory.rules.local_time()
    listed = RuleSet(memory.rules, "").rules_for(view, conversation)
    output = _readable(shown.output)
    return {
        "call": shown,
        "older": log_of_tool(before=position, newest=True),
        "newer": log_of_tool(after=position),
        "input": marked(bounded(_readable(shown.input), MAX_SHOWN)),
        "output": marked(bounded(output, MAX_SHOWN)),
        "around": around,
        "decided": decided,
        "against": [rule for each, rule, tests in listed if tests.check(each, now) is not Match.NO],
        "is_cut": len(output) > MAX_SHOWN,
    }


def logged_call(memory: Workspace, query: Query) -> LoggedCall:
    """The call of this tool and id. Raises Refused."""
    found = memory.services.store().call_log(
        memory.workspace_id, tool=query.get("tool", ""), ids=[query.get("id", "")]
    )
    if not found:
        raise Refused(404, "this call is not kept any more")
    return found[0]


def _readable(value: Any) -> str:
    """JSON with an element on each line; other texts as they are."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    if text[:1] in "[{":
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text
