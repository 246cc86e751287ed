"""The bill summed up: per kind of work, tool, policy, reason, run, day or model, as rows, a DataFrame and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from toolmem.config.extras import need_pandas
from toolmem.errors import RequestError
from toolmem.pages.numbers import UNKNOWN, count
from toolmem.readers.plain_text import counted
from toolmem.research.report.bill import Bill, Charge, Known
from toolmem.research.report.summary import Table

if TYPE_CHECKING:
    import pandas as pd

GROUPS = ("kind", "tool", "policy", "reason", "run", "day", "model", "op", "flow", "workspace")
DEFAULT_BY = ("kind", "tool", "policy")
ESTIMATE = "~"  # before a figure that nobody has counted

_ORDER: tuple[str, ...] = ("reply", "tokenizer", "estimate")  # from what is paid to what is supposed


@dataclass(slots=True)
class BillSum:
    """What the charges of one group add up to. `group`: the columns that were asked for, and their values.

    `cost` sums those that have a price; `unpriced` counts the requests without one. The `_by` fields name the least
    certain source of the figure before them; "" where there is nothing.
    """

    group: dict[str, str]
    currency: str  # of the costs; requests without a price are a group of their own, ""
    requests: int = 0  # sent, or counted in a dry run
    not_sent: int = 0  # of these: counted only
    input_tokens: int = 0
    cached_tokens: int = 0  # part of the input
    input_by: str = ""
    output_tokens: int = 0
    output_by: str = ""
    cost: float | None = None
    uncached_cost: float | None = None  # had no prefix been cached
    batch_cost: float | None = None  # had all of it been sent in batches
    unpriced: int = 0
    avoided_requests: int = 0
    avoided_input_tokens: int = 0
    avoided_input_by: str = ""
    avoided_output_tokens: int = 0
    avoided_output_by: str = ""
    avoided_cost: float | None = None

    def row(self) -> dict[str, Any]:
        """One flat row, for a table, JSON or a CSV file."""
        return {**self.group, **{each.name: getattr(self, each.name) for each in fields(self) if each.name != "group"}}


def sum_bill(bill: Bill, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> list[BillSum]:
    """One sum per group, sorted. `by`: any of GROUPS; days are those of `zone` (default UTC). Raises RequestError."""
    unknown = [name for name in by if name not in GROUPS]
    if unknown:
        raise RequestError(f"by: no column is called {unknown[0]!r}; there are {', '.join(GROUPS)}", field="by")
    sums: dict[tuple[str, ...], BillSum] = {}
    for charge in bill.charges:
        group = {name: _column(charge, name, zone) for name in by}
        _add(sums.setdefault((*group.values(), charge.currency), BillSum(group, charge.currency)), charge)
    return [sums[key] for key in sorted(sums)]


def bill_frame(bill: Bill, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> pd.DataFrame:
    """The sums as a DataFrame: the columns of `by`, then those of BillSum. Costs are NaN where none is known."""
    need_pandas()
    import pandas as pd

    rows = [each.row() for each in sum_bill(bill, by, zone=zone)]
    names = [*by, *(each.name for each in fields(BillSum) if each.name != "group")]
    costs = dict.fromkeys(("cost", "uncached_cost", "batch_cost", "avoided_cost"), "float64")
    return pd.DataFrame(rows, columns=names).astype(costs)


def charges_frame(bill: Bill) -> pd.DataFrame:
    """One row per charge, the columns of Charge."""
    need_pandas()
    import pandas as pd

    names = [each.name for each in fields(Charge)]
    rows = [[getattr(charge, name) for name in names] for charge in bill.charges]
    return pd.DataFrame(rows, columns=names)


def bill_table(bill: Bill, by: Sequence[str] = DEFAULT_BY, *, zone: tzinfo | None = None) -> Table:
    """The sums as the command prints them, estimates marked."""
    sums = sum_bill(bill, by, zone=zone)
    total = sum_bill(bill, ()) if len(sums) > 1 else []
    rows = [(*(each.group[name] or UNKNOWN for name in by), *_figures(each)) for each in sums]
    rows += [("total", *[""] * (len(by) - 1), *_figures(each)) for each in total] if by else []
    columns = (*by, *_FIGURES)
    return Table("Spent and avoided", columns, tuple(rows), frozenset(_FIGURES), tuple(notes(bill)))


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


def notes(bill: Bill) -> list[str]:
    """How the figures are known: which were counted, which are estimates, and by what."""
    said = [
        f"Tokens, and money by the configured prices. {ESTIMATE} marks an estimate, the other figures were counted."
    ]
    unsent = len(bill.of(state="counted"))
    if unsent:
        said.append(f"Counted by the tokenizer and not sent: {counted(unsent, 'request')}.")
    stated = sum(charge.input_by == "tokenizer" for charge in bill.of(state="sent"))
    if stated:
        said.append(f"Without a usage of the service, counted by the tokenizer: {counted(stated, 'request')}.")
    said += _avoided_notes(bill)
    unseen = [charge.kind for charge in bill.charges if charge.output_by == "estimate"]
    for kind in dict.fromkeys(kind for kind in unseen if bill.replies.get(kind)):
        seen = bill.replies_seen.get(kind, 0)
        source = f"the mean of {counted(seen, 'booked reply')}" if seen else "an assumption: none was booked"
        said.append(
            f"A reply that nobody has seen ({kind}) is taken to have {counted(bill.replies[kind], 'token')}, {source}."
        )
    if any(charge.cost is None and charge.requests for charge in bill.charges):
        said.append("A dash in place of a cost: no price is configured (prices.<model>.input and .output).")
    return said


def _avoided_notes(bill: Bill) -> list[str]:
    """What the avoided requests are held against, and why they were not needed."""
    avoided = bill.of(state="avoided")
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


# ---------------------------------------------------------------- sums and figures


def _column(charge: Charge, name: str, zone: tzinfo | None) -> str:
    if name == "day":
        return (charge.time if zone is None else charge.time.astimezone(zone)).date().isoformat()
    return str(getattr(charge, name))


def _add(to: BillSum, charge: Charge) -> None:
    if charge.state == "avoided":
        to.avoided_requests += charge.requests
        to.avoided_input_tokens += charge.input_tokens
        to.avoided_output_tokens += charge.output_tokens
        to.avoided_input_by = _less_certain(to.avoided_input_by, charge.input_by, charge.input_tokens)
        to.avoided_output_by = _less_certain(to.avoided_output_by, charge.output_by, charge.output_tokens)
        to.avoided_cost = _plus(to.avoided_cost, charge.cost)
        return
    to.requests += charge.requests
    to.not_sent += charge.requests * (charge.state == "counted")
    to.input_tokens += charge.input_tokens
    to.cached_tokens += charge.cached_tokens
    to.output_tokens += charge.output_tokens
    to.input_by = _less_certain(to.input_by, charge.input_by, charge.input_tokens)
    to.output_by = _less_certain(to.output_by, charge.output_by, charge.output_tokens)
    to.cost = _plus(to.cost, charge.cost)
    to.uncached_cost = _plus(to.uncached_cost, charge.uncached_cost)
    to.batch_cost = _plus(to.batch_cost, charge.batch_cost)
    to.unpriced += charge.requests * (charge.cost is None)


def _plus(sum_: float | None, cost: float | None) -> float | None:
    return sum_ if cost is None else (sum_ or 0.0) + cost


def _less_certain(known: str, other: Known, tokens: int) -> str:
    if not tokens:
        return known
    return other if not known else max(known, other, key=_ORDER.index)


def _figures(each: BillSum) -> tuple[str, ...]:
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
