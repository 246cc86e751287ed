"""Evaluations to report on: synthetic ones, and ones made of recorded calls with the recorded flag as the verdict."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolmem.models import Claim, FlowResponse, JudgeIdentity, ToolCallResult, ToolMemory
from toolmem.research.report.findings import Evaluation, SummaryRun, ToolUsage

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
JUDGE = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="0123456789ab")
MEANING = "1.0 means that the call ran and answered; usefulness was not judged."
RECORDED = Path(__file__).parents[3].parent / "shared" / "data" / "recorded_calls"
KEEP, RECENT = 100, 30


def judged(call: ToolCallResult, *, failed: bool | None, score: float | None, error_class: str = "") -> ToolCallResult:
    if score is None:
        return call.unjudged("the model answered nothing that could be read")
    verdict = {"score": score, "execution_failed": failed, "error_class": error_class, "judge": JUDGE}
    return call.model_copy(update=verdict | {"evaluation_status": "ok", "evaluation": "ran" if score else "failed: x"})


def synthetic_calls(tools: Sequence[str], per_tool: int, seed: int = 1) -> list[ToolCallResult]:
    """Calls with every kind of outcome, cost and flag."""
    chance = random.Random(seed)
    calls = []
    for number in range(per_tool * len(tools)):
        name = tools[number % len(tools)]
        failed = chance.random() < 0.1 + 0.5 * (tools.index(name) / len(tools))
        call = ToolCallResult(
            tool_name=name,
            input={"query": f"select {number}", "limit": chance.randint(1, 50)},
            output="Error: no such table" if failed else f"[{number}]",
            success=None if chance.random() < 0.2 else not failed,
            create_time=START + timedelta(seconds=40 * number),
            time_cost=None if chance.random() < 0.1 else chance.lognormvariate(-2, 1.5),
            token_cost=None if chance.random() < 0.3 else chance.randint(20, 900),
            id=f"row-{number}",
        )
        unread = chance.random() < 0.03
        score = None if unread else 0.0 if failed or chance.random() < 0.05 else 1.0
        calls.append(judged(call, failed=failed, score=score, error_class="not_found" if failed and not unread else ""))
    return calls


def evaluation_of(calls: Sequence[ToolCallResult], **given: Any) -> Evaluation:
    """An evaluation of these calls: the newest 100 of each tool kept, claims counted over the newest 30."""
    by_tool: dict[str, list[ToolCallResult]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool_name].append(call)
    values: dict[str, Any] = {
        "toolmem_version": "0.1.0",
        "inputs": ["calls.jsonl.gz"],
        "input_format": "calls",
        "workspace": "evaluate",
        "store": "sqlite",
        "judge": str(JUDGE),
        "judge_meaning": MEANING,
        "writer": "offline/data_driven",
        "embedder": "hashing (char n-grams, 384 dimensions)",
        "settings": {"max_history_tool_call_cnt": KEEP, "recent_call_count": RECENT, "force": False},
        "started": START,
        "phases": {"judge and store": 0.61, "summarize (all new)": 0.2, "retrieve": 0.01},
        "calls": list(calls),
        "memories": [memory_of(name, group) for name, group in sorted(by_tool.items())],
        "summaries": summaries_of(sorted(by_tool)),
    }
    return Evaluation(**(values | given))


def memory_of(name: str, calls: Sequence[ToolCallResult]) -> ToolMemory:
    kept = list(calls[-KEEP:])
    recent = kept[-RECENT:]
    failed = [call for call in recent if call.failed]
    claims = [
        Claim(
            text=f"{len(failed)} of {len(recent)} calls failed.",
            k=len(failed),
            n=len(recent),
            call_ids=tuple(str(call.id) for call in failed),
            kind="overall",
        )
    ]
    known = [call.failed for call in recent if call.failed is not None]
    scores = [call.score for call in recent if call.score is not None]
    return ToolMemory(
        workspace_id="evaluate",
        memory_id=f"tool:{name}",
        when_to_use=name,
        content=f"Core function\n{name} answers queries.\n\nCommon issues\n{claims[0].text}",
        score=sum(scores) / len(scores) if scores else None,
        time_created=START,
        time_modified=START,
        author="offline/data_driven",
        tool_call_results=kept,
        metadata={
            "claims": [claim.model_dump(mode="json") for claim in claims],
            "guidance_statistics": {
                "calls": len(recent),
                "success_rate": 1 - sum(known) / len(known) if known else None,
                "avg_score": sum(scores) / len(scores) if scores else None,
            },
            "lifetime": {"calls": len(calls)},
        },
    )


def summaries_of(tools: Sequence[str]) -> list[SummaryRun]:
    def run(label: str, summarized: Sequence[str]) -> SummaryRun:
        uses = [
            ToolUsage(tool=tool, action="summarized", reason="new_calls", estimated=True)
            if tool in summarized
            else ToolUsage(
                tool=tool,
                action="skipped",
                reason="up_to_date",
                saved_requests=1,
                saved_prompt_tokens=655,
                estimated=True,
            )
            for tool in tools
        ]
        skipped = len(tools) - len(summarized)
        answer = f"Successfully processed {len(tools)} tool memories: {len(summarized)} summarized, {skipped} skipped"
        response = FlowResponse(answer=answer, metadata={"not_analyzed": dict.fromkeys(summarized[:1], 12)})
        return SummaryRun(label=label, response=response, seconds=0.12, tools=uses)

    return [run("all new", tools), run("nothing new", []), run("newest 5 %", tools)]


def recorded_evaluation(dataset: str) -> Evaluation:
    """Recorded calls with the flag as the verdict. Skips where the recordings are absent."""
    path = RECORDED / f"{dataset}.calls.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no recorded calls at {path}")
    calls = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row, line in enumerate(file):
            record = json.loads(line)
            failed = not record["success"]
            call = ToolCallResult.model_validate(record | {"id": f"row-{row}"})
            error_class = ("not_found" if "not" in call.output else "other_error") if failed else ""
            calls.append(judged(call, failed=failed, score=float(not failed), error_class=error_class))
    return evaluation_of(calls, inputs=[path.name])


@pytest.fixture(scope="session")
def build() -> Callable[..., Evaluation]:
    """build(tools=[...], per_tool=20, **fields): a synthetic evaluation; or build(calls=[...], **fields)."""

    def make(tools: Sequence[str] = ("search", "shell", "sql"), per_tool: int = 20, **given: Any) -> Evaluation:
        calls = given.pop("calls") if "calls" in given else synthetic_calls(tools, per_tool)
        return evaluation_of(calls, **given)

    return make


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Evaluation]:
    return recorded_evaluation
