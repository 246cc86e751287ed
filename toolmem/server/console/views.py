"""The pages by name. A view reads a workspace and returns the values of its template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolmem.memory.toolmem import Workspace
from toolmem.server.console.call_views import call, calls, find_calls
from toolmem.server.console.paging import Query
from toolmem.server.console.rule_views import decision, decisions, draft, rule, rules
from toolmem.server.console.tool_views import find_tools, home, tool, tool_row, tools

View = Callable[[Workspace, Query], dict[str, Any]]


def search(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the search page: tools, rules and calls that contain the text `q`."""
    if not query.get("q"):
        return {"tools": [], "rules": [], "found": [], "more": None}
    found = find_calls(memory, {"q": query["q"]}, limit=20)
    return {
        "tools": [tool_row(each) for each in find_tools(memory, {"q": query["q"]})[:10]],
        "rules": rules(memory, {"q": query["q"]})["rows"][:10],
        "found": found[::-1],
        "more": found.next,
    }


VIEWS: dict[str, View] = {
    "": home,
    "tools": tools,
    "tool": tool,
    "calls": calls,
    "call": call,
    "rules": rules,
    "rule": rule,
    "draft": draft,
    "decisions": decisions,
    "decision": decision,
    "search": search,
}
