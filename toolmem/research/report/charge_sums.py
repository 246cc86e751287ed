"""The charges summed up per kind of work, tool, policy, reason, run, day or model: a DataFrame, rows and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, fields
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from toolmem.config.extras import need_pandas
from toolmem.errors import RequestError
from toolmem.pages.numbers import UNKNOWN, count
from toolmem.readers.plain_text import counted
from toolmem.research.report.charges import SUMMARIZING, Charge, CostReport
from toolmem.research.report.summary import PrintedTable

if TYPE_CHECKING:
    import pandas as pd

GROUPS = ("kind", "tool", "policy", "reason", "run", "day", "model", "op", "flow", "workspace")
DEFAULT_BY = ("kind", "tool", "policy")
ESTIMATE = "~"  # before a figure that nobody has counted

_KNOWN_BY = ["", "reply", "tokenizer", "estimate"]  # from what is paid to what is supposed
_SPENT = (
    *("requests", "not_sent", "input_tokens", "cached_tokens", "input_by", "output_tokens", "output_by"),
    *("cost", "uncached_cost", "batch_cost", "unpriced"),
)
_AVOIDED = tuple(
    f"avoided_{name}" for name in ("requests", "input_tokens", "input_by", "output_tokens", "output_by", "cost")
)
_COSTS = ("cost", "uncached_cost", "batch_cost", "avoided_cost")


def charges_frame(report: CostReport, zone: tzinfo | None = None) -> pd.DataFrame:
    """One row per charge, the columns of Charge; with a `zone` its `day` as well."""
    need_pandas()
    import pandas as pd

    names = [each.name for each in fields(Charge)]
    frame = pd.DataFrame([astuple(charge) for charge in report.charges], columns=names)
    if zone is None:
        return frame
    return frame.assign(day=[charge.time.astimezone(zone).date().isoformat() for charge in report.charges])


def cost_frame(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> pd.DataFrame:
    """One row per group, sorted. `by`: any of GROUPS; days are those of `zone` (default UTC). Raises RequestError.

    After the columns of `by` and the `currency` of the costs (requests without a price are a group of their own, ""):

    * requests (sent, or counted in a dry run), of these not_sent; input_tokens, of these cached_tokens; output_tokens;
    * cost, uncached_cost (had no prefix been cached), batch_cost (had all of it been sent in batches): of the requests
      that have a price, NaN where none has one; unpriced: requests without;
    * avoided_requests, avoided_input_tokens, avoided_output_tokens, avoided_cost.

    The `_by` columns name the least certain source of the figure before them; "" where there is nothing.
    """
    check_columns(by)
    wide = _wide(charges_frame(report, zone or UTC))
    groups = wide.groupby([*by, "currency"])
    sums = groups[[*_SPENT, *_AVOIDED]].sum(min_count=1)
    for name in (name for name in (*_SPENT, *_AVOIDED) if name.endswith("_by")):
        sums[name] = groups[name].max().map(_KNOWN_BY.__getitem__)
    return sums.reset_index().astype(dict.fromkeys(_COSTS, "float64"))


def check_columns(by: Sequence[str]) -> None:
    """Raises RequestError."""
    unknown = [name for name in by if name not in GROUPS]
    if unknown:
        raise RequestError(f"by: no column is called {unknown[0]!r}; there are {', '.join(GROUPS)}", field="by")


def _wide(charges: pd.DataFrame) -> pd.DataFrame:
    """What was spent and what was avoided side by side; sources of figures as their places in _KNOWN_BY."""
    avoided = charges["state"] == "avoided"
    wide = charges[[*GROUPS, "currency"]].copy()
    for side, rows in (("", ~avoided), ("avoided_", avoided)):
        wide[f"{side}requests"] = charges["requests"].where(rows, 0)
        wide[f"{side}cost"] = charges["cost"].astype("float64").where(rows)
        for what in ("input", "output"):
            tokens = charges[f"{what}_tokens"].where(rows, 0)
            wide[f"{side}{what}_tokens"] = tokens
            wide[f"{side}{what}_by"] = charges[f"{what}_by"].map(_KNOWN_BY.index).where(tokens > 0, 0).astype("int64")
    wide["cached_tokens"] = charges["cached_tokens"]
    wide["not_sent"] = charges["requests"].where(charges["state"] == "counted", 0)
    wide["unpriced"] = wide["requests"].where(charges["cost"].isna(), 0)
    for name in ("uncached_cost", "batch_cost"):
        wide[name] = charges[name].astype("float64").where(~avoided)
    return wide


def cost_sums(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> list[Any]:
    """The rows of `cost_frame` as named tuples; a cost that is not known is None."""
    frame = cost_frame(report, by, zone=zone)
    return [*frame.astype(object).where(frame.notna(), None).itertuples(index=False, name="CostSum")]


def saved_by_skips(report: CostReport, by: Sequence[str] = (), *, zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """What skipped summaries saved per group, sorted: `runs` that saved something, saved_requests, saved_tokens.

    `by`: names by which a skip is not told apart are passed over.
    """
    names = [name for name in by if name in ("workspace", "flow", "op", "day")]
    charges = charges_frame(report, zone or UTC)
    skips = charges[(charges["state"] == "avoided") & (charges["kind"] == SUMMARIZING)]
    groups = skips.groupby([*names, "kind"])
    sums = groups.agg(runs=("run", "nunique"), saved_requests=("requests", "sum"), saved_tokens=("input_tokens", "sum"))
    return [*sums.reset_index().drop(columns="kind").astype(object).to_dict("records")]  # type: ignore[list-item]


def cost_table(report: CostReport, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> PrintedTable:
    """The sums as the command prints them, estimates marked."""
    sums = cost_sums(report, by, zone=zone)
    total = cost_sums(report, ()) if len(sums) > 1 else []
    rows = [(*(getattr(each, name) or UNKNOWN for name in by), *_figures(each)) for each in sums]
    rows += [("total", *[""] * (len(by) - 1), *_figures(each)) for each in total] if by else []
    columns = (*by, *_FIGURES)
    return PrintedTable("Spent and avoided", columns, tuple(rows), frozenset(_FIGURES), tuple(notes(report)))


_FIGURES = (
    "requests",
    "input",
    "cached",
    "output",
    "cost",
    "in a batch",
    "requests avoided",
    "input avoided",
    "output avoided",
    "cost avoided",
)


def notes(report: CostReport) -> list[str]:
    """How the figures are known: which were counted, which are estimates, and by what."""
    said = [
        f"Tokens, and money by the configured prices. {ESTIMATE} marks an estimate, the other figures were counted."
    ]
    unsent = len(report.of(state="counted"))
    if unsent:
        said.append(f"Counted by the tokenizer and not sent: {counted(unsent, 'request')}.")
    stated = sum(charge.input_by == "tokenizer" for charge in report.of(state="sent"))
    if stated:
        said.append(f"Without a usage of the service, counted by the tokenizer: {counted(stated, 'request')}.")
    said += _avoided_notes(report)
    unseen = [charge.kind for charge in report.charges if charge.output_by == "estimate"]
    for kind in dict.fromkeys(kind for kind in unseen if report.replies.get(kind)):
        seen = report.replies_seen.get(kind, 0)
        source = f"the mean of {counted(seen, 'booked reply')}" if seen else "an assumption: none was booked"
        length = counted(report.replies[kind], "token")
        said.append(f"A reply that nobody has seen ({kind}) is taken to have {length}, {source}.")
    if any(charge.cost is None and charge.requests for charge in report.charges):
        said.append("A dash in place of a cost: no price is configured (prices.<model>.input and .output).")
    return said


def _avoided_notes(report: CostReport) -> list[str]:
    """What the avoided requests are held against, and why they were not needed."""
    avoided = report.of(state="avoided")
    if not avoided:
        return []
    reasons: Counter[str] = Counter()
    for charge in avoided:
        reasons[charge.reason or "no reason recorded"] += charge.requests
    counts = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())
    baseline = (
        "Avoided: what the same runs would have asked, had each of them judged all its calls and summarized all its "
        "tools. More runs avoid more, so policies are compared by what they spent."
    )
    said = [baseline, f"Requests avoided, by reason: {counts}."]
    if any(charge.policy == "incremental" for charge in avoided):
        said.append("Under incremental a skip avoids the small prompt without its calls, which are read later anyway.")
    return said


def _figures(each: Any) -> tuple[str, ...]:
    spent = "estimate" if each.output_by == "estimate" else ""
    avoided = "estimate" if each.avoided_output_by == "estimate" else ""
    return (
        count(each.requests),
        _marked(count(each.input_tokens), each.input_by),
        count(each.cached_tokens),
        _marked(count(each.output_tokens), each.output_by),
        _money(each.cost, each.currency, spent),
        _money(each.batch_cost, each.currency, spent),
        count(each.avoided_requests),
        _marked(count(each.avoided_input_tokens), each.avoided_input_by),
        _marked(count(each.avoided_output_tokens), each.avoided_output_by),
        _money(each.avoided_cost, each.currency, avoided),
    )


def _marked(text: str, by: str) -> str:
    return f"{ESTIMATE}{text}" if by == "estimate" else text


def _money(cost: float | None, currency: str, by: str) -> str:
    return UNKNOWN if cost is None else _marked(f"{cost:,.4f} {currency}", by)
