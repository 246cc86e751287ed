"""Tools that fail again and again within one turn: what a normal rule says about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from toolmem.rules.identity import folded_name, made_id
from toolmem.rules.store import RuleInput
from toolmem.rules.turn import ToolUse
from toolmem.text.error_classes import error_class_of
from toolmem.text.stopped_calls import was_stopped

REPEATED_FAILURE = "repeated-failure"  # the tag of such rules
MIN_FAILURES = 2  # of one tool in one turn
_CLASSES = {  # of errors, by the classes of `text/error_classes.py`
    "timeout": ("timeout",),
    "not_found": ("not_found", "unknown_table", "unknown_column", "command_not_found"),
    "permission_denied": ("permission_denied",),
    "connection_error": ("connection_error", "server_error", "rate_limited"),
    "parse_error": ("parse_error", "syntax_error", "missing_parameter", "invalid_value"),
    "unknown_tool": ("unknown_tool",),
}
_ADVICE = {
    "timeout": "Ask for less at once, or allow more time, before trying it again.",
    "not_found": "Check that what it is asked for exists, e.g. by listing or searching first.",
    "permission_denied": "Do not repeat the call; ask the user for access or take another way.",
    "connection_error": "Wait before the next attempt, or take another way.",
    "parse_error": "Check the format of the input against the tool's schema before calling it.",
    "unknown_tool": "Call only tools that are in the list of tools, by their exact names.",
    "error": "Read the error and change the input before calling it again.",
}


def repeated_failures(workspace: str, uses: Sequence[ToolUse]) -> list[RuleInput]:
    """One rule for each class of errors that a tool met twice or more in the turn.

    A tool whose failures are each of another class has one rule that names them all.
    """
    failed: dict[str, list[ToolUse]] = defaultdict(list)
    for use in uses:
        if use.success is False and not was_stopped(use.output_summary):
            failed[folded_name(use.name)].append(use)
    found = []
    for tool, each in failed.items():
        counts = Counter(_class_of(use) for use in each)
        repeated = {kind: n for kind, n in counts.items() if n >= MIN_FAILURES}
        if not repeated and len(each) >= MIN_FAILURES:
            repeated = {", ".join(sorted(counts)): len(each)}
        for kind, n in repeated.items():
            rule_id = made_id(REPEATED_FAILURE, workspace, tool, kind)
            found.append(_rule(each[0].name, kind, n, rule_id))
    return found


def _class_of(use: ToolUse) -> str:
    found = error_class_of(use.output_summary)
    return next((name for name, classes in _CLASSES.items() if found in classes), "error")


def _rule(tool_name: str, kind: str, count: int, rule_id: str) -> RuleInput:
    advice = _ADVICE.get(kind, _ADVICE["error"])
    return RuleInput(
        tool_name=tool_name,
        rule=f"Tool failed {count} times in one turn ({kind}). {advice}",
        id=rule_id,
        priority="normal",
        source="post_turn",
        tags=[REPEATED_FAILURE],
    )
