"""Calls, verdicts and guidance of the tool `t`, which the tests of the protocol use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from toolmem.models.calls import JudgeIdentity, ToolCallResult, Verdict
from toolmem.models.guidance import Guidance
from toolmem.models.records import Document

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JUDGE = JudgeIdentity("offline", "x", "1")


def calls_of(ids: Iterable[str], number: int = 0) -> list[ToolCallResult]:
    return [
        ToolCallResult(tool_name="t", create_time=NOW, id=each, output=f"{each} of {number}.{n}")
        for n, each in enumerate(ids)
    ]


def judged(scores: Mapping[int, float]) -> dict[int, ToolCallResult]:
    call = ToolCallResult(tool_name="t", create_time=NOW)
    return {
        seq: call.judged(Verdict("s", "e", int(score), not score, JUDGE))  # type: ignore[arg-type]
        for seq, score in scores.items()
    }


def guidance_of(text: str, covered: Collection[int]) -> tuple[Guidance, Document]:
    return Guidance(text=text, author="x", covered=sorted(covered)), Document(text)
