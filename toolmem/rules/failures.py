"""Make a rule of failures that repeat in a turn, and give OpenHuman's figures on each tool.

The figures are no rules: they say how calls ended. `recall` has them in a separate namespace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from toolmem.models.protocols import Store
from toolmem.models.records import Record
from toolmem.models.tools import ToolRecord
from toolmem.rules.identity import derived_id, folded_name
from toolmem.rules.store import RuleInput
from toolmem.rules.turn import ToolUse
from toolmem.text.display import plain
from toolmem.text.error_lines import error_class_of, error_line
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped

REPEATED_FAILURE = "repeated-failure"  # the tag of the rules
MIN_FAILURES = 2  # of one tool in one turn
EFFECTIVENESS = "tool_effectiveness"  # a namespace
EFFECTIVENESS_PREFIX = "tool/"  # of its keys
MAX_PATTERNS = 5  # error lines of a tool
_MAX_CHARACTERS = 80  # of an error line
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


def _by_tool(calls: Iterable[ToolUse]) -> dict[str, list[ToolUse]]:
    """Group calls by tool, without those that were stopped before they ran."""
    found: dict[str, list[ToolUse]] = defaultdict(list)
    for call in calls:
        if not was_stopped(call.output_summary):
            found[folded_name(call.name)].append(call)
    return found


def repeated_failures(workspace: str, calls: Iterable[ToolUse]) -> Iterator[RuleInput]:
    """Make one rule for each kind of failure that a tool had at least twice in a turn's calls.

    If all its failures differ in kind, the tool gets one rule that names all kinds.
    """
    for tool, tool_calls in _by_tool(calls).items():
        failed = [call for call in tool_calls if call.success is False]
        counts = Counter(map(_kind_of, failed))
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


def _kind_of(call: ToolUse) -> str:
    """Return the kind of failure of a call, a key of _ADVICE."""
    error_class = error_class_of(call.output_summary)
    kind = _KINDS.get(error_class, error_class)
    return kind if kind in _ADVICE else "error"


class ToolEffectiveness(Struct):
    """Figures on one tool's stored calls, under the names that the agent OpenHuman uses.

    `successes` and `failures` go by the flag that the tool gave or, if it gave none, by the
    judge. A call without a flag counts only in `total_calls` until it is judged.
    """

    total_calls: int = 0
    successes: int = 0
    failures: int = 0
    avg_duration_ms: float = 0.0
    common_error_patterns: list[str] = []  # of the kept calls: the newest five, each once


def tool_effectiveness(store: Store, workspace: str) -> list[Record]:
    """Make a record of ToolEffectiveness for each tool, from its statistics; none is stored.

    Older versions stored such records. A stored one is used only for a tool without stored calls.
    """
    found = {each.key: each for each in store.list_records(workspace, EFFECTIVENESS)}
    tools: dict[str, list[ToolRecord]] = defaultdict(list)
    for record in store.records(workspace, guidance=False):
        tools[EFFECTIVENESS_PREFIX + folded_name(record.tool_name)].append(record)
    for key, records in tools.items():
        figures = _figures(store, workspace, records)
        body = msgspec.Raw(msgspec.json.encode(figures))
        created = min(record.time_created for record in records)
        modified = max(record.time_modified for record in records)
        found[key] = Record(EFFECTIVENESS, key, body, records[0].version, created, modified)
    return [found[key] for key in sorted(found)]


def _figures(store: Store, workspace: str, records: Sequence[ToolRecord]) -> ToolEffectiveness:
    """Add up the figures on one tool. `records`: one for each casing of its name."""
    sums = [record.counters for record in records]
    timed = sum(each.time_calls for each in sums)
    failed = [record.tool_name for record in records if record.window.failures]
    return ToolEffectiveness(
        total_calls=sum(each.calls for each in sums),
        successes=sum(each.successes for each in sums),
        failures=sum(each.failures for each in sums),
        avg_duration_ms=1000 * sum(each.time_sum for each in sums) / timed if timed else 0.0,
        common_error_patterns=_error_lines(store, workspace, failed) if failed else [],
    )


def _error_lines(store: Store, workspace: str, tools: Sequence[str]) -> list[str]:
    """Return the newest error lines of the tools, each once, the newest last."""
    masker = Masker(store.secret_key())
    lines: dict[str, None] = {}
    calls = [call for window in store.windows(workspace, tools) for call in window.calls]
    for call in sorted(calls, key=lambda call: call.create_time):
        if call.failed_by_flag:
            line = plain(error_line(masker.text(call.output)), _MAX_CHARACTERS)
            lines.pop(line, None)  # it moves to the end
            lines[line] = None
    return list(lines)[-MAX_PATTERNS:]
