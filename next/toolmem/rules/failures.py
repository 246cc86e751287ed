"""What turns told of tools: how often each was called and failed, and a rule for repeated failures.

Statistics are never rules: they stand in records of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct

from toolmem.models.protocols import Store
from toolmem.rules.identity import folded_name, made_id
from toolmem.rules.store import RuleInput, retry_on_conflict
from toolmem.rules.turn import ToolUse
from toolmem.text.display import plain
from toolmem.text.error_lines import error_class_of, error_line
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped

REPEATED_FAILURE = "repeated-failure"  # the tag of such rules
MIN_FAILURES = 2  # of one tool in one turn
_CLASSES = {  # of errors, by the classes of `text/error_lines.py`
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


NAMESPACE = "tool_effectiveness"
MAX_PATTERNS = 5
_MAX_CHARACTERS = 80


class ToolEffectiveness(Struct):
    """One tool's calls. `total_calls` also counts those of unknown outcome."""

    total_calls: int = 0
    successes: int = 0
    failures: int = 0
    avg_duration_ms: float = 0.0
    common_error_patterns: list[str] = []  # the last five that differ
    timed_calls: int = 0  # behind the average


def count_uses(store: Store, workspace: str, uses: Iterable[ToolUse]) -> None:
    """Count the calls of a turn; those that were stopped before they ran are left out."""
    by_tool: dict[str, list[ToolUse]] = {}
    for use in uses:
        if not was_stopped(use.output_summary):
            by_tool.setdefault(folded_name(use.name), []).append(use)
    for tool, of_tool in by_tool.items():
        retry_on_conflict(partial(_count, store, workspace, tool, of_tool))


def _count(store: Store, workspace: str, tool: str, uses: list[ToolUse]) -> None:
    key = f"tool/{tool}"
    record = store.get(workspace, NAMESPACE, key)
    found = ToolEffectiveness() if record is None else record.read(ToolEffectiveness)
    for use in uses:
        found.total_calls += 1
        found.successes += use.success is True
        found.failures += use.success is False
        if use.duration_ms is not None:
            found.timed_calls += 1
            more = (use.duration_ms - found.avg_duration_ms) / found.timed_calls
            found.avg_duration_ms += more
        if use.success is False:
            masked = Masker(store.secret_key()).text(use.output_summary)
            line = plain(error_line(masked), _MAX_CHARACTERS)
            others = [each for each in found.common_error_patterns if each != line]
            found.common_error_patterns = [*others, line][-MAX_PATTERNS:]
    version = 0 if record is None else record.version
    store.put(workspace, NAMESPACE, key, found, expected_version=version)


def effectiveness(store: Store, workspace: str, tool_name: str) -> ToolEffectiveness | None:
    """None where no turn told of the tool."""
    record = store.get(workspace, NAMESPACE, f"tool/{folded_name(tool_name)}")
    return None if record is None else record.read(ToolEffectiveness)
