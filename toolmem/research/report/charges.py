"""The cost report: what judging and summarizing spent, what was avoided, and how well each figure is known.

A charge is one request, or what a skip or a known verdict made unnecessary. Requests come from two places: the usage
log, and the run reports, which hold the same entries and more (the prompts of a dry run, the policy of each summary);
an entry that both hold counts once. What was avoided stands in the run reports alone.

How a number of tokens is known:

* `reply`: the service stated it; that is what is paid;
* `tokenizer`: counted on the prompt or the text, before or after the request;
* `estimate`: nobody has seen the text. The reply of a request that was not sent is taken to be as long as the mean of
  the replies that were booked for the same kind of work, or as ASSUMED_REPLY says where there are none. The prompt of
  an avoided request is taken to be that of the window's last summary, or the tool's mean evaluation prompt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from toolmem.config.extras import missing
from toolmem.flow.report import RunReport
from toolmem.protocols import LedgerEntry
from toolmem.providers.prices import PriceTable
from toolmem.research.report.run_reports import Row, run_name, told

JUDGING: Final = "judging"
SUMMARIZING: Final = "summarizing"
OTHER: Final = "other"
Kind = Literal["judging", "summarizing", "other"]
State = Literal["sent", "counted", "avoided"]
Known = Literal["reply", "tokenizer", "estimate"]

NOT_SENT = "not_sent"  # the outcome of a dry run's entry
ASSUMED_REPLY: Mapping[str, int] = {
    JUDGING: 90,  # tokens: JSON with three sentences, as the prompt asks
    SUMMARIZING: 270,  # tokens: at most 200 words, as the prompt asks
    OTHER: 0,  # embeddings have no reply
}
# The ops of the configuration that comes along. Other keys are named by whoever knows their classes.
KINDS: Mapping[str, Kind] = {
    "parse_tool_call_result_op": JUDGING,
    "rejudge_op": JUDGING,
    "retry_evaluations_op": JUDGING,
    "judge_only_op": JUDGING,
    "summary_tool_memory_op": SUMMARIZING,
}


@dataclass(frozen=True, slots=True)
class Charge:
    """One request, or what made some unnecessary. Costs are None where no price is known."""

    time: datetime
    kind: Kind
    state: State
    workspace: str
    flow: str
    op: str
    tool: str
    policy: str  # of the summary; "" where no run report tells it
    reason: str  # why a summary was written or skipped, or a verdict not asked for; "" where no run report tells it
    run: str  # of the run report; "" where there is none
    model: str
    requests: int
    input_tokens: int  # all of the prompt, cached ones among them
    cached_tokens: int
    output_tokens: int
    input_by: Known
    output_by: Known
    cost: float | None = None  # with the cached prefix at its price
    uncached_cost: float | None = None  # the same without a cache
    batch_cost: float | None = None  # the same in a batch, where the cache gives no discount
    currency: str = ""


@dataclass(frozen=True)
class CostReport:
    """Charges in the order of their times, and what an unseen reply was taken to be."""

    charges: tuple[Charge, ...] = ()
    replies: Mapping[str, float] = field(default_factory=dict)  # kind -> tokens of an unseen reply
    replies_seen: Mapping[str, int] = field(default_factory=dict)  # kind -> booked replies that the mean is of

    def of(self, *, kind: str | None = None, state: str | None = None) -> list[Charge]:
        return [c for c in self.charges if (kind is None or c.kind == kind) and (state is None or c.state == state)]


def cost_report(
    entries: Iterable[LedgerEntry] = (),
    reports: Sequence[RunReport] = (),
    *,
    prices: PriceTable | None = None,
    kinds: Mapping[str, Kind] = KINDS,
) -> CostReport:
    """The charges of these requests and runs.

    `entries`: of the usage log; `reports`: the runs of the same workspace and time. `kinds`: what the ops do, by their
    keys; a key that is missing is "other", unless a report's rows tell it. `prices`: without them only booked
    costs are known.
    """
    known = {**kinds, **_told_kinds(reports)}
    booked = _each_once(entries, reports)
    seen, lengths = _reply_lengths([entry for entry, _ in booked], known)
    rating = _Rating(prices, lengths)
    charges = [_booked(entry, told_of, known, rating) for entry, told_of in booked]
    prompts = _mean_prompts(charges)
    for report in reports:
        charges += _avoided(report, rating, prompts)
    return CostReport(tuple(sorted(charges, key=lambda charge: charge.time)), lengths, seen)


# ---------------------------------------------------------------- what was booked


def _told_kinds(reports: Sequence[RunReport]) -> dict[str, Kind]:
    """Ops whose rows in a report say what they do."""
    return {op: _kind(row) for report in reports for op, row in told(report)}


def _kind(row: Row) -> Kind:
    return SUMMARIZING if row["kind"] == "summary" else JUDGING


@dataclass(frozen=True, slots=True)
class _Told:
    """What a run report knows of a request; nothing where there is none."""

    run: str = ""
    policy: str = ""
    reason: str = ""


def _each_once(entries: Iterable[LedgerEntry], reports: Sequence[RunReport]) -> list[tuple[LedgerEntry, _Told]]:
    """Requests, and what is told of them. Entries that a report holds as well are taken from the report."""
    found: list[tuple[LedgerEntry, _Told]] = []
    held: Counter[LedgerEntry] = Counter()
    for report in reports:
        name = run_name(report)
        summaries = {
            (op, row["tool_name"]): _Told(name, str(row.get("policy", "")), str(row.get("reason", "")))
            for op, row in told(report)
            if row["kind"] == "summary"
        }
        for entry in report.entries:
            held[entry] += 1
            found.append((entry, summaries.get((entry.op, entry.tool), _Told(name))))
    for entry in entries:
        if held[entry]:
            held[entry] -= 1
        else:
            found.append((entry, _Told()))
    return found


def _reply_lengths(
    entries: Sequence[LedgerEntry], kinds: Mapping[str, Kind]
) -> tuple[dict[str, int], dict[str, float]]:
    """Replies per kind, and their mean length in tokens, or what is assumed where there are none."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.outcome == "ok" and entry.completion_tokens:
            sizes[kinds.get(entry.op, OTHER)].append(entry.completion_tokens)
    seen = {kind: len(sizes[kind]) for kind in ASSUMED_REPLY}
    return seen, {k: sum(sizes[k]) / len(sizes[k]) if sizes[k] else float(n) for k, n in ASSUMED_REPLY.items()}


@dataclass(frozen=True)
class _Rating:
    """Prices, and the length of replies that nobody has seen."""

    prices: PriceTable | None
    replies: Mapping[str, float]

    def reply(self, kind: str, requests: int) -> int:
        return round(self.replies.get(kind, 0.0) * requests)

    def costs(self, model: str, into: int, cached: int, out: int) -> dict[str, Any]:
        if self.prices is None:
            return {}
        cost, currency = self.prices(model, into, out, cached)
        return {
            "cost": cost,
            "uncached_cost": self.prices(model, into, out, 0)[0],
            "batch_cost": self.prices.batch(model, into, out)[0],
            "currency": currency,
        }


def counted_here() -> Known:
    """How tokens that no reply stated are counted: without its vocabulary the tokenizer estimates."""
    return "estimate" if missing("dashscope") else "tokenizer"


def _booked(entry: LedgerEntry, told_of: _Told, kinds: Mapping[str, Kind], rating: _Rating) -> Charge:
    kind = kinds.get(entry.op, OTHER)
    sent = entry.outcome != NOT_SENT
    out = entry.completion_tokens if sent else rating.reply(kind, 1)
    costs = rating.costs(entry.model, entry.prompt_tokens, entry.cached_tokens, out)
    if sent:  # what was booked was the price of its day
        costs |= {"cost": entry.cost, "currency": entry.currency or costs.get("currency", "")}
    by: Known = counted_here() if entry.estimated else "reply"
    return Charge(
        **{name: getattr(entry, name) for name in ("time", "workspace", "flow", "op", "tool", "model")},
        **asdict(told_of),
        kind=kind,
        state="sent" if sent else "counted",
        requests=1,
        input_tokens=entry.prompt_tokens,
        cached_tokens=entry.cached_tokens,
        output_tokens=out,
        input_by=by,
        output_by=by if sent else "estimate",
        **costs,
    )


# ---------------------------------------------------------------- what was avoided


def _mean_prompts(charges: Sequence[Charge]) -> dict[str, float]:
    """Mean prompt of an evaluation per tool, and of all of them under ""."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for charge in charges:
        if charge.kind == JUDGING and charge.input_tokens:
            sizes[charge.tool].append(charge.input_tokens)
            sizes[""].append(charge.input_tokens)
    return {tool: sum(tokens) / len(tokens) for tool, tokens in sizes.items()}


def _avoided(report: RunReport, rating: _Rating, prompts: Mapping[str, float]) -> list[Charge]:
    rows = told(report)
    charges: list[Charge] = []
    for op, row in rows:
        kind = _kind(row)
        saved = _saved_summary(row) if kind == SUMMARIZING else _saved_verdicts(row, prompts)
        charges += [_spared(report, op, kind, row, each, rating) for each in saved if each.requests]
    in_rows = {op for op, _ in rows}
    for each in report.ops:  # of a report from before the rows, the sums of all tools are known
        usage = each.usage
        if usage.saved_requests and each.op not in in_rows:
            given = _Saved("", usage.saved_requests, usage.saved_prompt_tokens)
            charges.append(_spared(report, each.op, SUMMARIZING, {}, given, rating))
    return charges


@dataclass(frozen=True, slots=True)
class _Saved:
    reason: str
    requests: int
    tokens: int  # of their prompts


def _saved_summary(row: Row) -> list[_Saved]:
    """A skip saves the request for its window, where the last summary of it counted a prompt."""
    tokens = row["prompt_tokens"] if row.get("action") == "skipped" else 0
    return [_Saved(str(row.get("reason", "")), 1, tokens)] if tokens else []


def _saved_verdicts(row: Row, prompts: Mapping[str, float]) -> list[_Saved]:
    """A known verdict, and a call that was sent twice, save a request each; only a judge that asks a model has any."""
    if not row.get("asks_model"):
        return []
    mean = prompts.get(row["tool_name"], prompts.get("", 0.0))
    counts = {"known_verdict": row["reused"], "sent_twice": row["duplicates"]}
    return [_Saved(reason, n, round(mean * n)) for reason, n in counts.items()]


def _spared(report: RunReport, op: str, kind: Kind, row: Row, saved: _Saved, rating: _Rating) -> Charge:
    model = str(row.get("model", ""))
    out = rating.reply(kind, saved.requests)
    return Charge(
        time=report.started,
        workspace=report.workspace,
        flow=report.flow,
        op=op,
        tool=str(row.get("tool_name", "")),
        model=model,
        **asdict(_Told(run_name(report), str(row.get("policy", "")), saved.reason)),
        kind=kind,
        state="avoided",
        requests=saved.requests,
        input_tokens=saved.tokens,
        cached_tokens=0,
        output_tokens=out,
        input_by=counted_here() if kind == SUMMARIZING else "estimate",
        output_by="estimate",
        **rating.costs(model, saved.tokens, 0, out),
    )
