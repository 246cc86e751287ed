"""Tools that fail again and again within one turn: what a rule says about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from toolmem.rules.drafts import REPEATED_FAILURE, RuleDraft
from toolmem.rules.identity import failure_id, namespace_of
from toolmem.rules.turns import ToolUse

MIN_FAILURES = 2  # of one tool in one turn
_SCANNED = 2000  # characters of an output


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# In this order: "tool not found" is no missing file, and a time-out of a connection is a time-out.
_CLASSES: dict[str, re.Pattern[str]] = {
    "unknown_tool": _any(
        r"(?:unknown|no such|invalid|unsupported|unrecognized) (?:tool|function)\b",
        r"\b(?:tool|function)\b.{0,60}\b(?:not found|does(?: not|n't) exist|not (?:registered|available))",
        r"-32601|未知工具",
    ),
    "timeout": _any(r"timed?[ -]?out|deadline exceeded|took too long|\b(?:408|504)\b|ETIMEDOUT|超时"),
    "permission_denied": _any(
        r"permission|denied|forbidden|unauthori[sz]ed|not (?:allowed|permitted|authori[sz]ed)",
        r"\b40[13]\b|EACCES|EPERM|权限|拒绝访问",
    ),
    "connection_error": _any(
        r"connection|unreachable|network|(?:could not|cannot|failed to) (?:connect|resolve)|name resolution|\bdns\b",
        r"broken pipe|ECONN\w+|ENOTFOUND|\b50[23]\b|连接|网络",
    ),
    "parse_error": _any(
        r"pars(?:e|ing)|syntax|decod|malformed|invalid (?:json|xml|yaml)",
        r"unexpected (?:token|end|eof|character)|解析|语法",
    ),
    "not_found": _any(r"not found|no such|does(?: not|n't) exist|cannot find|\b404\b|ENOENT|未找到|不存在|找不到"),
}

_SCHEMA = "Check the format of the input against the tool's schema before calling it."
_NAMES = "Check that what it is asked for exists, e.g. by listing or searching first."
_ELSEWHERE = "The service may be down: wait before the next attempt, or take another way."
# By class: those above, and those of a judge that say more.
_ADVICE = {
    "timeout": "Ask for less at once, or allow more time, before trying it again.",
    "rate_limited": "Wait before the next attempt, and call it less often.",
    "permission_denied": "Do not repeat the call; ask the user for access or take another way.",
    "unknown_tool": "Call only tools that are in the list of tools, by their exact names.",
    "conflict": "Look at what is there before changing it.",
    **dict.fromkeys(("not_found", "unknown_table", "unknown_column", "command_not_found"), _NAMES),
    **dict.fromkeys(("connection_error", "server_error"), _ELSEWHERE),
    **dict.fromkeys(
        ("parse_error", "syntax_error", "missing_parameter", "unknown_parameter", "invalid_value"),
        _SCHEMA,
    ),
}
_ADVICE_OF_ANY = "Read the error and change the input before calling it again."
MIXED = "mixed"  # of failures that have nothing in common: what their rule is known by


def failure_class(output: str) -> str:
    """The class of a failure that no judge has looked at, by the words of its output.

    timeout, not_found, permission_denied, connection_error, parse_error, unknown_tool, or error.
    """
    head = output[:_SCANNED]
    return next((name for name, pattern in _CLASSES.items() if pattern.search(head)), "error")


def class_of(use: ToolUse) -> str:
    """As a judge named it, else as its output reads."""
    return use.error_class or failure_class(use.output_summary)


def repeated_failures(workspace: str, uses: Sequence[ToolUse]) -> list[RuleDraft]:
    """One rule for each class that a tool failed with twice or more. A tool whose failures are each of another class
    has one rule that names them all."""
    failed: dict[str, list[ToolUse]] = {}
    for use in uses:
        if use.success is False:
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
        rule=f"Tool failed {count} times in one turn ({kind}). {_ADVICE.get(kind, _ADVICE_OF_ANY)}",
        priority="normal",
        source="post_turn",
        tags=[REPEATED_FAILURE],
        id=rule_id,
    )
