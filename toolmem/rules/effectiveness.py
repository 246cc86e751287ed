"""Counters of how each tool's calls ended, kept as `tool_effectiveness`; what to do about it is said in the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from pydantic import BaseModel, Field, ValidationError

from toolmem.protocols import MemoryStore
from toolmem.readers.denied_calls import is_denied
from toolmem.readers.plain_text import shown
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.turns import ToolUse
from toolmem.stored import Record

NAMESPACE = "tool_effectiveness"
KEY_PREFIX = "tool/"
PATTERNS_KEPT = 5
PATTERN_CHARACTERS = 80


class ToolEffectiveness(BaseModel):
    """Counters of one tool."""

    tool_name: str
    total_calls: int = 0
    successes: int = 0
    failures: int = 0  # calls whose outcome is unknown are in `total_calls` alone
    timed_calls: int = 0
    avg_duration_ms: float | None = None  # over the timed calls
    common_error_patterns: list[str] = Field(default_factory=list)  # the last distinct ones, newest last

    def counted(self, use: ToolUse) -> ToolEffectiveness:
        """The same with one more call."""
        timed, average, patterns = self.timed_calls, self.avg_duration_ms, self.common_error_patterns
        if use.duration_ms is not None:
            timed += 1
            average = ((average or 0.0) * (timed - 1) + use.duration_ms) / timed
        pattern = shown(use.output_summary)[:PATTERN_CHARACTERS].rstrip()
        if use.success is False and pattern:
            patterns = [*(each for each in patterns if each != pattern), pattern][-PATTERNS_KEPT:]
        return ToolEffectiveness(
            tool_name=self.tool_name,
            total_calls=self.total_calls + 1,
            successes=self.successes + (use.success is True),
            failures=self.failures + (use.success is False),
            timed_calls=timed,
            avg_duration_ms=average,
            common_error_patterns=patterns,
        )


class ToolEffectivenessTracker:
    """Counts the calls of turns in one workspace; several processes may count at once."""

    def __init__(self, store: MemoryStore, workspace: str = "default") -> None:
        self._store = store
        self._workspace = workspace

    async def record(self, uses: Iterable[ToolUse]) -> None:
        """Count these calls: one write per tool. Raises StoreError."""
        by_tool: dict[str, list[ToolUse]] = {}
        for use in uses:
            if not is_denied(use.output_summary):
                by_tool.setdefault(use.name.strip(), []).append(use)
        for tool, own in by_tool.items():
            await until_written(f"the counters of {tool!r}", partial(self._count, tool, own), asyncio.sleep)

    async def _count(self, tool: str, uses: list[ToolUse]) -> None:
        record = await self._store.get(self._workspace, NAMESPACE, KEY_PREFIX + tool)
        counters = _read(record) or ToolEffectiveness(tool_name=tool)
        for use in uses:
            counters = counters.counted(use)
        value, version = counters.model_dump(mode="json"), 0 if record is None else record.version
        await self._store.put(self._workspace, NAMESPACE, KEY_PREFIX + tool, value, expected_version=version)

    async def of(self, tool: str) -> ToolEffectiveness | None:
        """None where no call of this tool was counted."""
        return _read(await self._store.get(self._workspace, NAMESPACE, KEY_PREFIX + tool.strip()))

    async def all(self) -> list[ToolEffectiveness]:
        """By name."""
        records = await self._store.list(self._workspace, NAMESPACE)
        return [counters for record in records if (counters := _read(record)) is not None]


def _read(record: Record | None) -> ToolEffectiveness | None:
    """None where there is none, or one that is none: counting begins anew.

    A row of the source system is counted on: the tool stands in its key, and its average is over all calls.
    """
    if record is None:
        return None
    value = {name: each for name, each in record.value.items() if each is not None}
    value.setdefault("tool_name", record.key.removeprefix(KEY_PREFIX))
    if "timed_calls" not in value and "avg_duration_ms" in value:
        value["timed_calls"] = value.get("total_calls", 0)
    try:
        return ToolEffectiveness.model_validate(value)
    except ValidationError:
        return None
