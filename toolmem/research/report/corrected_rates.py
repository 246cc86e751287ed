"""The share of calls that worked, corrected for the judge's errors by the labels that a person gave to some of them.

The judge's verdict is known of every call, the truth only of those that a person labelled. Of these, so many of the
passed ones (the judge saw no failure) worked, and so many of the failed ones worked all the same: with Jeffreys' prior
each share is Beta(k + 1/2, m - k + 1/2), and the rate is their mean weighted by how many calls the judge passed and
failed (post-stratification by verdict). The interval holds the middle 95 % of 2,000 draws. It needs no normal
approximation, and no disagreement has to be among the labels. `benchmarks/corrected_rates.py` measures it.

Labels count as drawn at random over calls, as `draw` does. A label never changes a verdict.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolmem.models import ToolCallResult
from toolmem.research.report.findings import Evaluation

DRAWS = 2_000
OWN_LABELS = 10  # a tool with fewer is corrected by the labels of all tools
ALL_TOOLS = "all tools"

Counts = tuple[int, int]  # (worked, labelled)


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The rate of one tool, or of all of them (`tool` is then ALL_TOOLS).

    `of_passed` and `of_failed` count the labels that the correction rests on: those of this tool, or where `pooled`
    those of all tools. `rate`, `low` and `high` are None where nothing is labelled.
    """

    tool: str
    calls: int  # with a verdict
    passed: int  # of these, the judge saw no failure
    labels: int  # of this tool's calls
    of_passed: Counts
    of_failed: Counts
    pooled: bool
    rate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def by_judge(self) -> float | None:
        return self.passed / self.calls if self.calls else None

    def __str__(self) -> str:
        """`81 % by the judge, 78 % (74 to 82) corrected with 50 labels`."""
        if self.by_judge is None:
            return "no call has a verdict"
        judged = f"{_percent(self.by_judge)} % by the judge"
        if self.rate is None or self.low is None or self.high is None:
            return f"{judged}, not corrected: there are no labels"
        used = self.of_passed[1] + self.of_failed[1]
        whose = " of all tools" if self.pooled else ""
        return (
            f"{judged}, {_percent(self.rate)} % ({_percent(self.low)} to {_percent(self.high)}) corrected with {used} "
            f"{'label' if used == 1 else 'labels'}{whose}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "tool_name": self.tool,
            "calls": self.calls,
            "by_judge": self.by_judge,
            "corrected": self.rate,
            "low": self.low,
            "high": self.high,
            "labels": self.labels,
            "pooled": self.pooled,
            "labelled_passed": {"worked": self.of_passed[0], "labels": self.of_passed[1]},
            "labelled_failed": {"worked": self.of_failed[0], "labels": self.of_failed[1]},
        }


def interval(
    passed: int, calls: int, of_passed: Counts, of_failed: Counts, seed: int = 0
) -> tuple[float, float, float]:
    """(rate, low, high) of `calls` of which the judge passed `passed`; the rate is the mean of what is believed."""
    import numpy as np

    share = passed / calls
    draw = np.random.default_rng(seed)
    (k1, m1), (k0, m0) = of_passed, of_failed
    good, bad = draw.beta(k1 + 0.5, m1 - k1 + 0.5, DRAWS), draw.beta(k0 + 0.5, m0 - k0 + 0.5, DRAWS)
    low, high = np.quantile(share * good + (1 - share) * bad, [0.025, 0.975])
    rate = share * (k1 + 0.5) / (m1 + 1) + (1 - share) * (k0 + 0.5) / (m0 + 1)
    return rate, min(float(low), rate), max(float(high), rate)


def passed_by_judge(call: ToolCallResult) -> bool | None:
    """Neither the recorded flag, where it is known, nor the judge says that the call failed; None: neither knows."""
    if call.success is None and call.execution_failed is None:
        return None
    return call.success is not False and call.execution_failed is not True


def corrected_rates(calls: Iterable[tuple[int, str, bool | None]], labels: Mapping[int, bool]) -> list[CorrectedRate]:
    """Of all tools first, then of each, by number of calls. `calls`: (row, tool, passed by the judge); those without
    a verdict are left out. `labels`: whether the call of a row worked.
    """
    by_tool: dict[str, list[tuple[bool, bool | None]]] = defaultdict(list)  # (passed, label)
    for row, tool, passed in calls:
        if passed is not None:
            by_tool[tool].append((passed, labels.get(row)))
    everything = [one for ones in by_tool.values() for one in ones]
    pool = _labelled(everything, True), _labelled(everything, False)
    tools = sorted(by_tool, key=lambda tool: (-len(by_tool[tool]), tool))
    return [_corrected(ALL_TOOLS, everything, pool), *(_corrected(tool, by_tool[tool], pool) for tool in tools)]


def rates_of(evaluation: Evaluation) -> list[CorrectedRate]:
    """Of all tools, then of each, by the labels of the evaluation; empty where it has none."""
    if not evaluation.labels:
        return []
    numbered = zip(evaluation.row_numbers, evaluation.calls, strict=True)
    hidden = {"success": None} if evaluation.ignore_success else {}
    return corrected_rates(
        ((row, call.tool_name, passed_by_judge(call.model_copy(update=hidden))) for row, call in numbered),
        evaluation.labels,
    )


def corrected_json(rates: Sequence[CorrectedRate]) -> dict[str, Any] | None:
    """`{"all": {...}, "tools": [...]}`; None where there are no rates."""
    return {"all": rates[0].as_json(), "tools": [rate.as_json() for rate in rates[1:]]} if rates else None


def _labelled(calls: Sequence[tuple[bool, bool | None]], verdict: bool) -> Counts:
    told = [label for passed, label in calls if passed is verdict and label is not None]
    return sum(told), len(told)


def _corrected(tool: str, calls: Sequence[tuple[bool, bool | None]], pool: tuple[Counts, Counts]) -> CorrectedRate:
    own = _labelled(calls, True), _labelled(calls, False)
    labels = own[0][1] + own[1][1]
    pooled = tool != ALL_TOOLS and labels < OWN_LABELS
    of_passed, of_failed = pool if pooled else own
    passed = sum(passed for passed, _ in calls)
    found = CorrectedRate(tool, len(calls), passed, labels, of_passed, of_failed, pooled)
    if not calls or not of_passed[1] + of_failed[1]:
        return found
    rate, low, high = interval(passed, len(calls), of_passed, of_failed)
    return CorrectedRate(tool, len(calls), passed, labels, of_passed, of_failed, pooled, rate, low, high)


def draw(rows: Sequence[int], number: int, seed: int, but: Iterable[int] = ()) -> list[int]:
    """`number` rows at random, in the order in which they were drawn, none of `but`; fewer where there are no more.

    At random over calls, whatever their verdicts: half of each verdict is no narrower, and wider where failures are
    rare. A larger number begins with the same rows.
    """
    order = list(rows)
    random.Random(seed).shuffle(order)
    taken = set(but)
    return [row for row in order if row not in taken][: max(0, number)]


def _percent(share: float) -> str:
    """A share as a whole number of percent; never 0 or 100 where it is not."""
    rounded = round(100 * share)
    if rounded in (0, 100) and share not in (0.0, 1.0):
        return "<1" if rounded == 0 else ">99"
    return str(rounded)
