"""Count each tool's calls and failures, and make a rule of failures that repeat in a turn.

The counts are no rules: they are stored in records of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct

from toolmem.models.protocols import Store
from toolmem.rules.identity import derived_id, folded_name
from toolmem.rules.store import RuleInput
from toolmem.rules.turn import ToolUse
from toolmem.store.storable import swap
from toolmem.text.display import plain
from toolmem.text.error_lines import error_class_of, error_line
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped

REPEATED_FAILURE = "repeated-failure"  # the tag of rules made here
MIN_FAILURES = 2  # of one tool in one turn
NAMESPACE = "tool_effectiveness"
MAX_PATTERNS = 5  # error lines stored for a tool
_MAX_CHARACTERS = 80  # of one
_KINDS = {  # classes of `text/error_lines.py` that get the same advice
    **dict.fromkeys(("unknown_table", "unknown_column", "command_not_found"), "not_found"),
    **dict.fromkeys(("server_error", "rate_limited"), "connection_error"),
    **dict.fromkeys(("syntax_error", "missing_parameter", "invalid_value"), "parse_error"),
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


def _by_tool(uses: Iterable[ToolUse]) -> dict[str, list[ToolUse]]:
    """Group calls by tool, without those that were stopped before they ran."""
    found: dict[str, list[ToolUse]] = defaultdict(list)
    for use in uses:
        if not was_stopped(use.output_summary):
            found[folded_name(use.name)].append(use)
    return found


def repeated_failures(workspace: str, uses: Iterable[ToolUse]) -> Iterator[RuleInput]:
    """Make one rule for each kind of failure that a tool had at least twice in the turn.

    If all its failures differ in kind, the tool gets one rule that names them all.
    """
    for tool, tool_uses in _by_tool(uses).items():
        failed = [use for use in tool_uses if use.success is False]
        counts = Counter(_kind_of(use) for use in failed)
        repeated = {kind: n for kind, n in counts.items() if n >= MIN_FAILURES}
        if not repeated and len(failed) >= MIN_FAILURES:
            repeated = {", ".join(sorted(counts)): len(failed)}
        for kind, n in repeated.items():
            advice = _ADVICE.get(kind, _ADVICE["error"])
            yield RuleInput(
                tool_name=failed[0].name,
                rule=f"Tool failed {n} times in one turn ({kind}). {advice}",
                id=derived_id(REPEATED_FAILURE, workspace, tool, kind),
                priority="normal",
                source="post_turn",
                tags=[REPEATED_FAILURE],
            )


def _kind_of(use: ToolUse) -> str:
    error_class = error_class_of(use.output_summary)
    kind = _KINDS.get(error_class, error_class)
    return kind if kind in _ADVICE else "error"


class ToolEffectiveness(Struct):
    """Figures on one tool's calls. `total_calls` includes those of unknown outcome."""

    total_calls: int = 0
    successes: int = 0
    failures: int = 0
    avg_duration_ms: float = 0.0
    common_error_patterns: list[str] = []  # the newest five, each once
    timed_calls: int = 0  # that the average is made of


def count_uses(store: Store, workspace: str, uses: Iterable[ToolUse]) -> None:
    """Add the calls of a turn to the stored figures, without those that were stopped."""
    for tool, tool_uses in _by_tool(uses).items():
        count = partial(_count, tool_uses, Masker(store.secret_key()))
        swap(store, workspace, (NAMESPACE, f"tool/{tool}"), ToolEffectiveness, count)


def _count(uses: list[ToolUse], masker: Masker, figures: ToolEffectiveness) -> None:
    for use in uses:
        figures.total_calls += 1
        figures.successes += use.success is True
        figures.failures += use.success is False
        if use.duration_ms is not None:
            figures.timed_calls += 1
            figures.avg_duration_ms += (
                use.duration_ms - figures.avg_duration_ms
            ) / figures.timed_calls
        if use.success is False:
            line = plain(error_line(masker.text(use.output_summary)), _MAX_CHARACTERS)
            others = [each for each in figures.common_error_patterns if each != line]
            figures.common_error_patterns = [*others, line][-MAX_PATTERNS:]
