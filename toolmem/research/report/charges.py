"""The cost report: what judging and summarizing took, and what skips and known verdicts spared.

Requests come from the usage log and from the run reports, which hold the same entries and the prompts of dry runs; an
entry that both hold counts once. What was avoided stands in the run reports alone and is always an estimate: the prompt
of the window's last summary, or the tool's mean evaluation prompt, and a reply that nobody has seen. Such a reply is
taken to be as long as the mean of those booked for the same kind of work, or as ASSUMED_REPLY says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, Literal

from toolmem.config.extras import missing, need_pandas
from toolmem.errors import RequestError
from toolmem.flow.report import RunReport
from toolmem.protocols import LedgerEntry
from toolmem.providers.prices import PriceTable
from toolmem.readers.plain_text import counted
from toolmem.research.report.run_reports import Row, told
from toolmem.research.report.savings import TOKENS_ESTIMATED
from toolmem.research.report.summary import PrintedTable, frame_table

if TYPE_CHECKING:
    import pandas as pd

JUDGING: Final = "judging"
SUMMARIZING: Final = "summarizing"
OTHER: Final = "other"
Kind = Literal["judging", "summarizing", "other"]

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
GROUPS = ("kind", "tool", "day", "model", "op", "flow", "workspace")
DEFAULT_BY = ("kind", "tool")


@dataclass(frozen=True, slots=True)
class Charge:
    """One request, or the requests of one run and tool that were not needed. Costs are None where no price is known."""

    time: datetime
    workspace: str
    flow: str
    op: str
    kind: Kind
    tool: str
    model: str
    requests: int = 0  # sent, or counted in a dry run
    not_sent: int = 0  # of these: counted
    estimated: int = 0  # of these: with tokens that no reply stated
    input_tokens: int = 0  # all of the prompt, cached ones among them
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # with the cached prefix at its price
    uncached_cost: float | None = None  # the same without a cache
    batch_cost: float | None = None  # the same in a batch, where the cache gives no discount
    avoided_requests: int = 0
    avoided_input_tokens: int = 0
    avoided_output_tokens: int = 0
    avoided_cost: float | None = None
    currency: str = ""


_NAMES = [each.name for each in fields(Charge)]
_FIGURES = dict.fromkeys(_NAMES[_NAMES.index("requests") : -1], "int64")  # column -> dtype
_FIGURES |= {name: "float64" for name in _FIGURES if name.endswith("cost")}


@dataclass(frozen=True)
class CostReport:
    """Charges in the order of their times, and what an unseen reply was taken to be."""

    charges: tuple[Charge, ...] = ()
    replies: Mapping[str, float] = field(default_factory=dict)  # kind -> tokens of an unseen reply
    replies_seen: Mapping[str, int] = field(default_factory=dict)  # kind -> booked replies that the mean is of


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
    known = {**kinds, **{op: _kind(row) for report in reports for op, row in told(report)}}
    held = Counter(entry for report in reports for entry in report.entries)
    booked = [*held.elements(), *(Counter(entries) - held).elements()]
    seen, replies = _reply_lengths(booked, known)
    charges = [_booked(entry, known.get(entry.op, OTHER), replies, prices) for entry in booked]
    prompts = _mean_prompts(charges)
    charges += [charge for report in reports for charge in _avoided(report, prompts, replies, prices)]
    return CostReport(tuple(sorted(charges, key=lambda charge: charge.time)), replies, seen)


def _kind(row: Row) -> Kind:
    return SUMMARIZING if row["kind"] == "summary" else JUDGING


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


def _booked(entry: LedgerEntry, kind: Kind, replies: Mapping[str, float], prices: PriceTable | None) -> Charge:
    counted_only = entry.outcome == NOT_SENT
    into, cached = entry.prompt_tokens, entry.cached_tokens
    out = round(replies[kind]) if counted_only else entry.completion_tokens
    costs: dict[str, Any] = {}
    if prices is not None:
        cost, currency = prices(entry.model, into, out, cached)
        costs = {"cost": cost, "uncached_cost": prices(entry.model, into, out, 0)[0], "currency": currency}
        costs["batch_cost"] = prices.batch(entry.model, into, out)[0]
    if not counted_only:  # what was booked was the price of its day
        costs |= {"cost": entry.cost, "currency": entry.currency or costs.get("currency", "")}
    return Charge(
        **{name: getattr(entry, name) for name in ("time", "workspace", "flow", "op", "tool", "model")},
        kind=kind,
        requests=1,
        not_sent=int(counted_only),
        estimated=int(counted_only or entry.estimated),
        input_tokens=into,
        cached_tokens=cached,
        output_tokens=out,
        **costs,
    )


def _mean_prompts(charges: Iterable[Charge]) -> dict[str, float]:
    """Mean prompt of an evaluation per tool, and of all of them under ""."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for charge in charges:
        if charge.kind == JUDGING and charge.input_tokens:
            sizes[charge.tool].append(charge.input_tokens)
            sizes[""].append(charge.input_tokens)
    return {tool: sum(tokens) / len(tokens) for tool, tokens in sizes.items()}


def _avoided(
    report: RunReport, prompts: Mapping[str, float], replies: Mapping[str, float], prices: PriceTable | None
) -> Iterable[Charge]:
    rows = told(report)
    spared = [(op, row, _kind(row), *_spared(row, prompts)) for op, row in rows]
    in_rows = {op for op, _ in rows}
    spared += [  # of a report from before the rows, the sums of all tools are known
        (op.op, {}, SUMMARIZING, op.usage.saved_requests, op.usage.saved_prompt_tokens)
        for op in report.ops
        if op.op not in in_rows
    ]
    for key, row, kind, requests, tokens in spared:
        if not requests:
            continue
        model, out = str(row.get("model", "")), round(replies[kind] * requests)
        cost, currency = prices(model, tokens, out, 0) if prices is not None else (None, "")
        yield Charge(
            time=report.started,
            workspace=report.workspace,
            flow=report.flow,
            op=key,
            kind=kind,
            tool=str(row.get("tool_name", "")),
            model=model,
            avoided_requests=requests,
            avoided_input_tokens=tokens,
            avoided_output_tokens=out,
            avoided_cost=cost,
            currency=currency,
        )


def _spared(row: Row, prompts: Mapping[str, float]) -> tuple[int, int]:
    """(requests that were not needed, tokens of their prompts).

    A skip spares the request for its window, where the last summary of it counted a prompt; a known verdict, and a call
    that was sent twice, spare an evaluation each where the judge asks a model.
    """
    if row["kind"] == "summary":
        tokens = row["prompt_tokens"] if row.get("action") == "skipped" else 0
        return (1, tokens) if tokens else (0, 0)
    if not row.get("asks_model"):
        return 0, 0
    mean = prompts.get(row["tool_name"], prompts.get("", 0.0))
    return row["reused"] + row["duplicates"], round(mean * row["reused"]) + round(mean * row["duplicates"])


# ---------------------------------------------------------------- sums


def charges_frame(report: CostReport, zone: tzinfo | None = None) -> pd.DataFrame:
    """One row per charge: the columns of Charge, and its `day` in the `zone` (default UTC)."""
    need_pandas()
    import pandas as pd

    frame = pd.DataFrame([astuple(charge) for charge in report.charges], columns=_NAMES).astype(_FIGURES)
    return frame.assign(day=[charge.time.astimezone(zone or UTC).date().isoformat() for charge in report.charges])


def cost_frame(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> pd.DataFrame:
    """One row per group, sorted: the figures of Charge summed up. Raises RequestError.

    `by`: any of GROUPS; days are those of `zone` (default UTC). The `currency` of the costs is part of each group, ""
    where no price is known; there, costs are NaN.
    """
    check_columns(by)
    return charges_frame(report, zone).groupby([*by, "currency"])[[*_FIGURES]].sum(min_count=1).reset_index()


def check_columns(by: Sequence[str]) -> None:
    """Raises RequestError."""
    unknown = [name for name in by if name not in GROUPS]
    if unknown:
        raise RequestError(f"by: no column is called {unknown[0]!r}; there are {', '.join(GROUPS)}", field="by")


def cost_sums(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> list[Any]:
    """The rows of `cost_frame` as named tuples; a cost that is not known is None."""
    frame = cost_frame(report, by, zone=zone)
    return [*frame.astype(object).where(frame.notna(), None).itertuples(index=False, name="CostSum")]


def saved_by_skips(report: CostReport, by: Sequence[str] = (), *, zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """What skipped summaries saved per group, sorted: `runs` that saved something, saved_requests, saved_tokens.

    `by`: names by which a skip is not told apart are passed over.
    """
    names = [name for name in by if name in ("workspace", "flow", "op", "day")]
    charges = charges_frame(report, zone)
    skips = charges[(charges["avoided_requests"] > 0) & (charges["kind"] == SUMMARIZING)]
    sums = skips.groupby([*names, "kind"]).agg(
        runs=("time", "nunique"),
        saved_requests=("avoided_requests", "sum"),
        saved_tokens=("avoided_input_tokens", "sum"),
    )
    return [*sums.reset_index().drop(columns="kind").astype(object).to_dict("records")]  # type: ignore[list-item]


def cost_table(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> PrintedTable:
    """The sums as the command prints them, with their total."""
    import pandas as pd

    sums = cost_frame(report, by, zone=zone)
    if by and len(sums) > 1:
        sums = pd.concat([sums, cost_frame(report, ()).assign(**{by[0]: "total"})])
    shown = sums[[*by, *_PRINTED]].rename(columns=_PRINTED)
    return frame_table("Spent and avoided", shown, notes(report), decimals=4)


_PRINTED = {
    "requests": "requests",
    "estimated": "estimated",
    "input_tokens": "input",
    "cached_tokens": "cached",
    "output_tokens": "output",
    "cost": "cost",
    "batch_cost": "in a batch",
    "avoided_requests": "requests avoided",
    "avoided_input_tokens": "input avoided",
    "avoided_output_tokens": "output avoided",
    "avoided_cost": "cost avoided",
    "currency": "currency",
}


def notes(report: CostReport) -> list[str]:
    """How the figures are known, and what the avoided requests are held against."""
    by = TOKENS_ESTIMATED if missing("dashscope") else "counted by the tokenizer"
    said = [f"Tokens, and money by the configured prices. Estimated: requests with tokens that no reply stated, {by}."]
    unsent = sum(charge.not_sent for charge in report.charges)
    if unsent:
        said.append(f"Counted and not sent: {counted(unsent, 'request')}.")
    avoided = [charge for charge in report.charges if charge.avoided_requests]
    if avoided:
        said.append(
            "Avoided, an estimate: what the same runs would have asked, had each of them judged all its calls and "
            "summarized all its tools. More runs avoid more, so policies are compared by what they spent."
        )
    unseen = [charge.kind for charge in report.charges if charge.avoided_requests or charge.not_sent]
    for kind in dict.fromkeys(kind for kind in unseen if report.replies.get(kind)):
        seen = report.replies_seen.get(kind, 0)
        source = f"the mean of {counted(seen, 'booked reply')}" if seen else "an assumption: none was booked"
        length = counted(report.replies[kind], "token")
        said.append(f"A reply that nobody has seen ({kind}) is taken to have {length}, {source}.")
    if any(charge.cost is None and charge.avoided_cost is None for charge in report.charges):
        said.append("A dash in place of a cost: no price is configured (prices.<model>.input and .output).")
    return said
