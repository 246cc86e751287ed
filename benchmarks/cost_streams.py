"""Streams of judged calls for the cost benchmark: recordings as they are, and recordings spread over many tools."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal

from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "toolmem" / "data" / "recording.calls.jsonl.gz"
DATA = ROOT.parent / "shared" / "data" / "recorded_calls"
DATASETS = ("sample", "intercode", "tau_bench", "toolbench", "tau2_airline", "openhands")

Pattern = Literal["steady", "bursty", "one hot tool"]
PATTERNS: tuple[Pattern, ...] = ("steady", "bursty", "one hot tool")
BURST = 12  # calls of a burst, on average
HOT = 0.8  # share of the calls that the hot tool gets


def present() -> list[str]:
    """Recordings that are here; the public ones are not part of the project."""
    return [name for name in DATASETS if _path(name).exists()]


def recorded(dataset: str, *, tool: str = "", limit: int | None = None) -> list[ToolCallResult]:
    """The first `limit` calls of a recording (of one `tool`) in order of time, judged by the offline check."""
    judge = RuleBasedCheck()
    return [call.judged(judge.check(call)) for call in _read(dataset, tool)[:limit]]


@cache
def _read(dataset: str, tool: str) -> list[ToolCallResult]:
    with gzip.open(_path(dataset), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    calls = [
        ToolCallResult(**{"id": f"{dataset}-{place}", **row})
        for place, row in enumerate(rows)
        if not tool or row["tool_name"] == tool
    ]
    return sorted(calls, key=lambda call: call.create_time.astimezone(UTC))


def _path(dataset: str) -> Path:
    return SAMPLE if dataset == "sample" else DATA / f"{dataset}.calls.jsonl.gz"


def arrivals(pattern: Pattern, tools: int, calls: int, seed: int = 0) -> list[int]:
    """Which tool is called at each of `calls` arrivals.

    steady: one after the other; bursty: one tool for about BURST calls (geometric), then another at random; one hot
    tool: tool 0 gets HOT of the calls, the others the rest at random.
    """
    chance = random.Random(seed)
    if pattern == "steady":
        return [place % tools for place in range(calls)]
    if pattern == "one hot tool":
        return [0 if tools == 1 or chance.random() < HOT else chance.randrange(1, tools) for _ in range(calls)]
    found: list[int] = []
    tool = 0
    while len(found) < calls:
        found.append(tool)
        if chance.random() < 1 / BURST:
            tool = chance.randrange(tools)
    return found


def spread(calls: Sequence[ToolCallResult], tools: int, pattern: Pattern, seed: int = 0) -> list[ToolCallResult]:
    """`calls` as if they were of `tools` tools, a minute apart: texts, inputs and verdicts stay, names do not."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        call.model_copy(
            update={
                "tool_name": f"tool_{tool:04}",
                "id": f"{place}",
                "create_time": start + timedelta(minutes=place),
                "metadata": {},
            }
        )
        for place, (call, tool) in enumerate(zip(calls, arrivals(pattern, tools, len(calls), seed), strict=True))
    ]
