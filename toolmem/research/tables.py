"""The tables of an evaluation: rows for CSV files, the page and `frames`. None means unknown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from toolmem.formats.recording import BadRecord
from toolmem.guidance.shown import statistics, sums_of
from toolmem.llm.usage import LedgerRow
from toolmem.models.calls import Moment
from toolmem.models.rules import RANK
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.research.evaluation import EvaluatedCall, Evaluation, agreement, agreement_of_worked
from toolmem.research.rates import Errors, Outcome, errors_of, percentile, rate_of, rate_of_part

MAX_DISPUTE = 0.03  # share of calls in dispute; above it the flag is in doubt
MAX_DISPUTED = 10  # calls in dispute that are shown


class CallRow(Struct, kw_only=True):
    """One recorded call."""

    row: int  # in the recording, from 0
    tool_name: str
    success: bool | None  # the recorded flag
    execution_failed: bool | None  # by the judge
    worked: bool | None  # no flag that the judge saw, and no answer, shows a failure
    label: bool | None  # whether it worked, by its label
    score: float | None
    evaluation_status: str
    judge: str
    evaluation: str
    summary: str
    error_class: str
    create_time: Moment
    time_cost: float | None  # seconds
    token_cost: int | None
    conversation_id: str
    id: str
    input: str  # JSON, where it is no text
    output: str


class Figures(Struct, kw_only=True):
    """The figures of some recorded calls. None: no call has the value."""

    calls: int
    failures: int  # by the label of the call, else by its flag or its answer
    success_rate: float | None  # share of the calls with a known outcome that worked
    low: float  # 95 % interval of the success rate
    high: float
    interval: str  # the errors that it counts: "sampling only", or also the judge's
    flagged_success_rate: float | None  # by the recorded flag alone
    silent_failures: int  # calls whose flag says success, and whose answer shows a failure
    no_use: int  # calls that did not fail, and whose score is 0.0
    in_dispute: int  # calls on which flag and judge disagree
    avg_score: float | None
    avg_time_cost: float | None  # seconds
    median_time_cost: float | None
    p95_time_cost: float | None  # 95 of 100 calls do not exceed it
    avg_token_cost: float | None
    median_token_cost: float | None
    p95_token_cost: float | None
    unscored: int


class GroupRow(Figures, kw_only=True):
    """One group's calls of all tools, or of one tool."""

    group: str  # "": calls without the field
    tool_name: str  # "": all tools


class ToolRow(Figures, kw_only=True):
    """One tool: figures of its recorded calls, then what the memory has of it."""

    tool_name: str
    bad_records: int  # records that name this tool; they are in no figure
    kept_calls: int
    lifetime_calls: int
    guidance_lines: int
    author: str


class ErrorRow(Struct):
    """The failed calls of one error class and tool, and the first of them."""

    error_class: str
    tool_name: str
    calls: int
    silent_failures: int  # of these calls
    row: int  # of the first call, like the fields below
    input: str
    output: str


class LineRow(Struct):
    """One line of guidance, and the calls behind it: `k` of `n`."""

    tool_name: str
    kind: str
    text: str
    k: int
    n: int
    calls: str  # ids, separated by blanks


class SkipRow(Struct, kw_only=True):
    """What the first or the second summary of a tool did, and the tokens it sent or saved."""

    run: str  # "first", or "second", without new calls
    tool_name: str
    action: str
    reason: str
    new_calls: int
    not_analyzed: int
    sent_prompt_tokens: int  # of the summary's prompt
    saved_prompt_tokens: int  # of the prompt that was not sent, because nothing is new
    estimated: bool  # True: no model was asked
    error: str


class RuleRow(Struct):
    """One rule with figures of its tool."""

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


def call_rows(evaluation: Evaluation) -> list[CallRow]:
    """A row for each call, in the order of the recording."""
    return [_call_row(each) for each in evaluation.calls]


def _call_row(each: EvaluatedCall) -> CallRow:
    call = each.call
    given = call.input
    fields: dict[str, Any] = {name: getattr(call, name, None) for name in CallRow.__struct_fields__}
    fields |= {
        "row": each.row,
        "success": each.flag,
        "worked": each.worked,
        "label": each.label,
        "judge": str(call.judge or ""),
        "id": call.id or "",
        "input": given if isinstance(given, str) else msgspec.json.encode(given).decode(),
    }
    return CallRow(**fields)


def tool_rows(evaluation: Evaluation) -> list[ToolRow]:
    """A row for each tool, the one with the most failures first."""
    tools: defaultdict[str, list[EvaluatedCall]] = defaultdict(list)
    for each in evaluation.calls:
        tools[each.call.tool_name].append(each)
    records = {record.tool_name: record for record in evaluation.tools}
    bad = Counter(e.tool_name for e in evaluation.bad_records)
    errors = errors_of(_outcomes(evaluation.calls))
    tools |= {name: [] for name in bad if name and name not in tools}
    rows = []
    for name, calls in tools.items():
        record = records.get(name)
        guidance = record.guidance if record else None
        row = ToolRow(
            tool_name=name,
            **_figures(calls, errors),
            bad_records=bad[name],
            kept_calls=record.kept if record else 0,
            lifetime_calls=record.counters.calls if record else 0,
            guidance_lines=len(guidance.lines) if guidance else 0,
            author=guidance.author if guidance else "",
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (-row.failures, row.tool_name))


def _outcomes(calls: Iterable[EvaluatedCall]) -> Iterator[Outcome]:
    return (Outcome(each.worked, each.label) for each in calls)


def _figures(calls: Sequence[EvaluatedCall], errors: Mapping[bool, Errors]) -> dict[str, Any]:
    """Return the figures of calls. `errors`: the judge's errors, from the labels of all calls."""
    rate = rate_of_part(_outcomes(calls), errors)
    sums = sums_of(each.call for each in calls)
    flags = [each.flag for each in calls if each.flag is not None]
    seconds = [each.call.time_cost for each in calls if each.call.time_cost is not None]
    tokens = [each.call.token_cost for each in calls if each.call.token_cost is not None]
    return asdict(statistics(sums)) | {
        "failures": sum(each.outcome is False for each in calls),
        "success_rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
        "interval": rate.basis,
        "flagged_success_rate": sum(flags) / len(flags) if flags else None,
        "silent_failures": sum(each.failed_silently for each in calls),
        "no_use": sum(each.call.of_no_use and each.outcome is True for each in calls),
        "in_dispute": sum(each.in_dispute for each in calls),
        "median_time_cost": percentile(seconds, 0.5),
        "p95_time_cost": percentile(seconds, 0.95),
        "median_token_cost": percentile(tokens, 0.5),
        "p95_token_cost": percentile(tokens, 0.95),
        "unscored": sum(each.call.score is None for each in calls),
    }


def group_rows(evaluation: Evaluation) -> list[GroupRow]:
    """Rows for each group: one for all its calls, then one by tool, most failures first."""
    groups: defaultdict[tuple[str, str], list[EvaluatedCall]] = defaultdict(list)
    for each in evaluation.calls if evaluation.by else ():
        groups[each.group, ""].append(each)
        groups[each.group, each.call.tool_name].append(each)
    errors = errors_of(_outcomes(evaluation.calls))
    rows = [
        GroupRow(group=group, tool_name=tool, **_figures(calls, errors))
        for (group, tool), calls in groups.items()
    ]
    return sorted(rows, key=lambda row: (row.group, row.tool_name != "", -row.failures))


def error_rows(evaluation: Evaluation) -> list[ErrorRow]:
    """A row for each error class and tool, the most frequent first."""
    groups: defaultdict[tuple[str, str], list[EvaluatedCall]] = defaultdict(list)
    for each in evaluation.calls:
        if each.outcome is False:
            groups[each.call.error_class or "error", each.call.tool_name].append(each)
    rows = []
    for key, calls in groups.items():
        silent = sum(each.failed_silently for each in calls)
        first = _call_row(calls[0])
        rows.append(ErrorRow(*key, len(calls), silent, first.row, first.input, first.output))
    return sorted(rows, key=lambda row: (-row.calls, row.error_class, row.tool_name))


def rule_rows(evaluation: Evaluation) -> list[RuleRow]:
    """A row for each rule, by tool, the most urgent rule first."""
    tools = {row.tool_name.lower(): row for row in tool_rows(evaluation)}
    saved = {each.tool_name.lower(): each.saved_prompt_tokens for each in skip_rows(evaluation)}
    rows = []
    for rule in sorted(
        evaluation.rules, key=lambda r: (r.tool_name.lower(), RANK[r.priority], r.rule)
    ):
        tool = tools.get(rule.tool_name.lower())
        figures = (tool.success_rate, tool.avg_score) if tool else (None, None)
        tokens = saved.get(rule.tool_name.lower(), 0)
        fields = (rule.priority, rule.effect, rule.source, rule.rule)
        rows.append(RuleRow(rule.tool_name, *figures, tokens, *fields))
    return rows


def line_rows(evaluation: Evaluation) -> list[LineRow]:
    """A row for each line of guidance, by tool, the most valuable line first."""
    return [
        LineRow(record.tool_name, line.kind, line.text, line.k, line.n, " ".join(line.call_ids))
        for record in evaluation.tools
        if record.guidance
        for line in record.guidance.lines
    ]


def skip_rows(evaluation: Evaluation) -> list[SkipRow]:
    """What summarizing did for each tool: at first, then once more with no new calls."""
    sent: Counter[str] = Counter()
    for request in _summary_requests(evaluation):
        sent[request.tool] += request.prompt_tokens
    rows = []
    for run, summary in (("first", evaluation.summary), ("second", evaluation.second_summary)):
        for each in summary.outcomes:
            name = each.tool_name
            tokens = evaluation.summary_tokens.get(name, 0)
            row = SkipRow(
                run=run,
                tool_name=name,
                action=each.action,
                reason=each.reason,
                new_calls=each.new_calls,
                not_analyzed=each.not_analyzed,
                sent_prompt_tokens=(sent[name] or tokens) if each.action == "summarized" else 0,
                saved_prompt_tokens=tokens if each.action == "skipped" else 0,
                estimated=not sent,
                error=each.error,
            )
            rows.append(row)
    return rows


def _summary_requests(evaluation: Evaluation) -> list[LedgerRow]:
    return [row for row in evaluation.requests if row.op == SummaryToolMemoryOp.name]


def disputed(evaluation: Evaluation) -> list[CallRow]:
    """Return at most ten calls on which flag and judge disagree, one of each tool in turn."""
    turns: Counter[str] = Counter()
    ordered: list[tuple[int, EvaluatedCall]] = []
    for each in evaluation.calls:
        if each.in_dispute:
            turns[each.call.tool_name] += 1
            ordered.append((turns[each.call.tool_name], each))
    return [_call_row(each) for _, each in sorted(ordered, key=lambda pair: pair[0])[:MAX_DISPUTED]]


def cost_rows(requests: Iterable[LedgerRow]) -> list[CostRow]:
    """Sum up requests: a row for each op, model and currency."""
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
    """The type of a table's rows, and the function that makes them."""

    kind: type[Struct]
    rows: Callable[[Evaluation], Sequence[Struct]]


def columns(kind: type[Struct]) -> list[str]:
    """Return a table's column names. Names of groups and tools come before their figures."""
    fields = kind.__struct_fields__
    if not issubclass(kind, Figures):
        return list(fields)
    return sorted(fields, key=lambda name: name not in ("group", "tool_name"))


TABLES: dict[str, Table] = {
    "calls": Table(CallRow, call_rows),
    "tools": Table(ToolRow, tool_rows),
    "groups": Table(GroupRow, group_rows),
    "errors": Table(ErrorRow, error_rows),
    "lines": Table(LineRow, line_rows),
    "rules": Table(RuleRow, rule_rows),
    "skips": Table(SkipRow, skip_rows),
    "bad_records": Table(BadRecord, lambda evaluation: evaluation.bad_records),
    "costs": Table(CostRow, lambda evaluation: cost_rows(evaluation.requests)),
    "ledger": Table(LedgerRow, lambda evaluation: evaluation.requests),
}


def totals(evaluation: Evaluation) -> dict[str, Any]:
    """The figures of the whole evaluation, for summary.json and the head of the page."""
    calls = [each.call for each in evaluation.calls]
    judges = sorted({str(call.judge) for call in calls if call.judge})
    skips = skip_rows(evaluation)
    has_labels = any(each.label is not None for each in evaluation.calls)
    both = sum(None not in (each.flag, each.worked) for each in evaluation.calls)
    unknown = sum(each.worked is None for each in evaluation.calls)
    errors = errors_of(_outcomes(evaluation.calls))
    figures = _figures(evaluation.calls, errors)
    rate = rate_of(_outcomes(evaluation.calls), errors)
    corrected = {"success_rate": rate.rate, "low": rate.low, "high": rate.high}
    share = figures["in_dispute"] / both if both else None
    return {
        "source": evaluation.source,
        **figures,
        **corrected,
        "uncorrected_success_rate": figures["success_rate"],
        "share_in_dispute": share,  # of the calls with a flag and a verdict
        "flag_is_in_doubt": share is not None and share > MAX_DISPUTE,
        "disputed_rows": [row.row for row in disputed(evaluation)],
        "agreement": asdict(agreement(evaluation)) if has_labels else None,  # of the judge's score
        "agreement_of_worked": asdict(agreement_of_worked(evaluation)) if has_labels else None,
        "tools": len({call.tool_name for call in calls}),
        "unknown_outcome": unknown,
        "duplicates": evaluation.duplicates,
        "bad_records": len(evaluation.bad_records),
        "failed_evaluations": len(evaluation.failed_evaluations),
        "stopped": evaluation.stopped,
        "notes": evaluation.notes,
        "judges": judges,
        "ignore_success": evaluation.ignore_success,
        "by": evaluation.by,
        "later_repairs": {
            "sentence": evaluation.later_repairs.sentence(len(calls) - unknown),
            **asdict(evaluation.later_repairs),
        },
        "sent_prompt_tokens": sum(row.sent_prompt_tokens for row in skips),
        "saved_prompt_tokens": sum(row.saved_prompt_tokens for row in skips),
        "tokens_estimated": not _summary_requests(evaluation),
        "requests": len(evaluation.requests),
        "first_summary": evaluation.summary.answer,
        "second_summary": evaluation.second_summary.answer,
        "started_at": evaluation.started_at.isoformat(timespec="seconds"),
        "seconds": round(evaluation.seconds, 3),
    }
