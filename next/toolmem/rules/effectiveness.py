"""How often each tool was called and failed, as turns told it. Statistics are never rules."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from toolmem.models.protocols import Store
from toolmem.rules.identity import folded_name
from toolmem.rules.store import retry_on_conflict
from toolmem.rules.turn import ToolUse
from toolmem.text.display import plain
from toolmem.text.error_lines import error_line
from toolmem.text.masking import Masker
from toolmem.text.stopped_calls import was_stopped

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
