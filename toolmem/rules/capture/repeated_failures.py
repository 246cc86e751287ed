"""Tools that fail again and again within one turn: what a rule says about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toolmem.readers.denied_calls import is_denied
from toolmem.rules.drafts import REPEATED_FAILURE, RuleDraft
from toolmem.rules.identity import failure_id, namespace_of
from toolmem.rules.turns import ToolUse

MIN_FAILURES = 2  # of one tool in one turn
MIXED = "mixed"  # of failures that have nothing in common: what their rule is known by


_ADVICE = {  # by class (`toolmem/readers/error_classes.py`); `error`: of all others
    "timeout": "Ask for less at once, or allow more time, before trying it again.",
    "rate_limited": "Wait before the next attempt, and call it less often.",
    "permission_denied": "Do not repeat the call; ask the user for access or take another way.",
    "unknown_tool": "Call only tools that are in the list of tools, by their exact names.",
    "conflict": "Look at what is there before changing it.",
    **dict.fromkeys(
        ("not_found", "unknown_table", "unknown_column", "command_not_found"),
        "Check that what it is asked for exists, e.g. by listing or searching first.",
    ),
    **dict.fromkeys(
        ("connection_error", "server_error"),
        "The service may be down: wait before the next attempt, or take another way.",
    ),
    **dict.fromkeys(
        ("parse_error", "syntax_error", "missing_parameter", "unknown_parameter", "invalid_value"),
        "Check the format of the input against the tool's schema before calling it.",
    ),
    "error": "Read the error and change the input before calling it again.",
}


def class_of(use: ToolUse) -> str:
    """The class of a failure as a judge named it, else as its output reads."""
    if use.error_class:
        return use.error_class
    # The patterns of all classes are compiled when this is loaded, which a hook that reads a message does not need.
    from toolmem.readers.error_classes import error_class_of

    return error_class_of(use.output_summary)


def repeated_failures(workspace: str, uses: Sequence[ToolUse]) -> list[RuleDraft]:
    """Make one rule for each class that a tool failed with twice or more.

    A tool whose failures are each of another class has one rule that names them all.
    """
    failed: dict[str, list[ToolUse]] = {}
    for use in uses:
        if use.success is False and not is_denied(use.output_summary):
            failed.setdefault(namespace_of(use.name), []).append(use)
    drafts: list[RuleDraft] = []
    for namespace, each in failed.items():
        if len(each) < MIN_FAILURES:
            continue
        counts = Counter(class_of(use) for use in each)
        repeated = {kind: count for kind, count in counts.items() if count >= MIN_FAILURES}
        name = each[0].name
        if repeated:
            drafts += [
                _draft(name, count, kind, failure_id(workspace, namespace, kind)) for kind, count in repeated.items()
            ]
        else:
            drafts.append(_draft(name, len(each), ", ".join(counts), failure_id(workspace, namespace, MIXED)))
    return drafts


def _draft(tool_name: str, count: int, kind: str, rule_id: str) -> RuleDraft:
    return RuleDraft(
        tool_name=tool_name,
        rule=f"Tool failed {count} times in one turn ({kind}). {_ADVICE.get(kind, _ADVICE['error'])}",
        priority="normal",
        source="post_turn",
        tags=[REPEATED_FAILURE],
        id=rule_id,
    )
