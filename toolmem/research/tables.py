"""The tables of an evaluation: rows for CSV files, the page and `frames`. None means unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from toolmem.guidance.shown import statistics, sums_of
from toolmem.llm.usage import LedgerRow
from toolmem.models.calls import ToolCallResult
from toolmem.models.rules import RANK
from toolmem.models.tools import ToolRecord
from toolmem.pages.figures import wilson_interval
from toolmem.research.evaluation import EvaluatedCall, Evaluation


class CallRow(Struct, kw_only=True):
    """One recorded call."""

    row: int  # in the recording, from 0
    tool_name: str
    success: bool | None  # the recorded flag
    execution_failed: bool | None  # what the judge saw
    score: float | None
    evaluation_status: str
    judge: str
    evaluation: str
    summary: str
    error_class: str
    create_time: str
    time_cost: float | None  # seconds
    token_cost: int | None
    conversation_id: str
    id: str
    input: str  # JSON, where it is no text
    output: str


class ToolRow(Struct, kw_only=True):
    """One tool: figures of its recorded calls, then of its memory."""

    tool_name: str
    calls: int
    failures: int
    success_rate: float | None  # of the calls whose outcome is known
    low: float  # 95 % interval of the success rate
    high: float
    avg_score: float | None
    avg_time_cost: float | None  # seconds
    avg_token_cost: float | None
    unscored: int
    flag_wrong: int  # calls that the recorded flag calls a success and the judge saw fail
    kept_calls: int
    lifetime_calls: int
    guidance_lines: int
    author: str


class ErrorRow(Struct):
    """Failed calls of one error class and tool, with the first of them."""

    error_class: str
    tool_name: str
    calls: int
    not_flagged: int  # of these: the recorded flag calls them a success
    row: int
    input: str
    output: str


class LineRow(Struct):
    """One line of guidance."""

    tool_name: str
    kind: str
    text: str
    k: int
    n: int
    calls: str  # ids, separated by blanks


class SkipRow(Struct, kw_only=True):
    """What one of the two summaries did with one tool."""

    run: str  # "first", or "second": asked for with nothing new
    tool_name: str
    action: str
    reason: str
    new_calls: int
    not_analyzed: int
    prompt_tokens: int
    error: str


class RuleRow(Struct):
    """One rule, beside the figures of its tool."""

    tool_name: str
    success_rate: float | None
    avg_score: float | None
    saved_prompt_tokens: int  # by the second summary, which skipped the tool
    priority: str
    effect: str
    source: str
    rule: str


class CostRow(Struct, kw_only=True):
    """The requests of one op to one model."""

    op: str
    model: str
    requests: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # None: the model has no price
    currency: str


def call_rows(found: Evaluation) -> list[CallRow]:
    """In the order of the recording."""
    return [_call_row(each) for each in found.calls]


def _call_row(each: EvaluatedCall) -> CallRow:
    call = each.call
    given = call.input
    fields: dict[str, Any] = {name: getattr(call, name, None) for name in CallRow.__struct_fields__}
    fields |= {
        "row": each.row,
        "judge": str(call.judge or ""),
        "create_time": call.create_time.isoformat(),
        "id": call.id or "",
        "input": given if isinstance(given, str) else msgspec.json.encode(given).decode(),
    }
    return CallRow(**fields)


def tool_rows(found: Evaluation) -> list[ToolRow]:
    """The most failures first, flagged or not."""
    tools: defaultdict[str, list[ToolCallResult]] = defaultdict(list)
    for each in found.calls:
        tools[each.call.tool_name].append(each.call)
    records = {record.tool_name: record for record in found.tools}
    rows = [_tool_row(name, calls, records.get(name)) for name, calls in tools.items()]
    return sorted(rows, key=lambda row: (-row.failures - row.flag_wrong, row.tool_name))


def _tool_row(name: str, calls: Sequence[ToolCallResult], record: ToolRecord | None) -> ToolRow:
    guidance = record.guidance if record else None
    return ToolRow(
        tool_name=name,
        **_figures(calls),
        unscored=sum(call.score is None for call in calls),
        kept_calls=record.kept if record else 0,
        lifetime_calls=record.counters.calls if record else 0,
        guidance_lines=len(guidance.lines) if guidance else 0,
        author=guidance.author if guidance else "",
    )


def _figures(calls: Sequence[ToolCallResult]) -> dict[str, Any]:
    """The figures of one tool's calls, or of all calls."""
    sums = sums_of(calls)
    low, high = wilson_interval(sums.successes, sums.successes + sums.failures)
    wrong = sum(call.success is True and call.execution_failed is True for call in calls)
    more = {"failures": sums.failures, "flag_wrong": wrong, "low": low, "high": high}
    return asdict(statistics(sums)) | more


def error_rows(found: Evaluation) -> list[ErrorRow]:
    """The most frequent first. A call counts where its flag or the judge says that it failed."""
    groups: defaultdict[tuple[str, str], list[EvaluatedCall]] = defaultdict(list)
    for each in found.calls:
        if each.call.failed or each.call.execution_failed:
            groups[each.call.error_class or "error", each.call.tool_name].append(each)
    rows = []
    for (error_class, tool_name), calls in groups.items():
        not_flagged, first = sum(each.call.success is True for each in calls), _call_row(calls[0])
        example = (first.row, first.input, first.output)
        rows.append(ErrorRow(error_class, tool_name, len(calls), not_flagged, *example))
    return sorted(rows, key=lambda row: (-row.calls, row.error_class, row.tool_name))


def rule_rows(found: Evaluation) -> list[RuleRow]:
    """By tool, the most urgent first."""
    tools = {row.tool_name.lower(): row for row in tool_rows(found)}
    saved = {each.tool_name.lower(): each.prompt_tokens for each in found.second_summary.outcomes}
    rows = []
    for rule in sorted(found.rules, key=lambda r: (r.tool_name.lower(), RANK[r.priority], r.rule)):
        tool = tools.get(rule.tool_name.lower())
        figures = (tool.success_rate, tool.avg_score) if tool else (None, None)
        tokens = saved.get(rule.tool_name.lower(), 0)
        fields = (rule.priority, rule.effect, rule.source, rule.rule)
        rows.append(RuleRow(rule.tool_name, *figures, tokens, *fields))
    return rows


def line_rows(found: Evaluation) -> list[LineRow]:
    """By tool, the most valuable line first."""
    return [
        LineRow(record.tool_name, line.kind, line.text, line.k, line.n, " ".join(line.call_ids))
        for record in found.tools
        if record.guidance
        for line in record.guidance.lines
    ]


def skip_rows(found: Evaluation) -> list[SkipRow]:
    """By summary, then in the order of the tools."""
    return [
        SkipRow(run=run, **asdict(each))
        for run, summary in (("first", found.summary), ("second", found.second_summary))
        for each in summary.outcomes
    ]


def cost_rows(requests: Iterable[LedgerRow]) -> list[CostRow]:
    """By op and model."""
    groups: defaultdict[tuple[str, str, str], list[LedgerRow]] = defaultdict(list)
    for request in requests:
        groups[request.op, f"{request.backend}/{request.model}", request.currency].append(request)
    return [
        CostRow(
            op=op,
            model=model,
            requests=len(rows),
            failed=sum(row.outcome != "ok" for row in rows),
            prompt_tokens=sum(row.prompt_tokens for row in rows),
            completion_tokens=sum(row.completion_tokens for row in rows),
            cost=sum(row.cost or 0.0 for row in rows) if currency else None,
            currency=currency,
        )
        for (op, model, currency), rows in sorted(groups.items())
    ]


class Table(NamedTuple):
    """The type of a row, and the function that makes the rows."""

    kind: type[Struct]
    rows: Callable[[Evaluation], Sequence[Struct]]


TABLES: dict[str, Table] = {
    "calls": Table(CallRow, call_rows),
    "tools": Table(ToolRow, tool_rows),
    "errors": Table(ErrorRow, error_rows),
    "lines": Table(LineRow, line_rows),
    "rules": Table(RuleRow, rule_rows),
    "skips": Table(SkipRow, skip_rows),
    "costs": Table(CostRow, lambda found: cost_rows(found.requests)),
    "ledger": Table(LedgerRow, lambda found: found.requests),
}


def totals(found: Evaluation) -> dict[str, Any]:
    """The figures of the whole evaluation, for summary.json and the head of the page."""
    calls = [each.call for each in found.calls]
    judges = sorted({str(call.judge) for call in calls if call.judge})
    return {
        "source": found.source,
        **_figures(calls),
        "tools": len({call.tool_name for call in calls}),
        "unknown_outcome": sum(call.failed is None for call in calls),
        "duplicates": found.duplicates,
        "bad_records": len(found.bad_records),
        "failed_evaluations": len(found.failed_evaluations),
        "stopped": found.stopped,
        "notes": found.notes,
        "judges": judges,
        "ignore_success": found.ignore_success,
        "requests": len(found.requests),
        "first_summary": found.summary.answer,
        "second_summary": found.second_summary.answer,
        "started_at": found.started_at.isoformat(timespec="seconds"),
        "seconds": round(found.seconds, 3),
    }
