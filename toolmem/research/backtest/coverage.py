"""Repair coverage: of the failures that the tool's next calls repaired, the share whose kind of repair was named.

*Strict* coverage gives no credit for claims about any failure: naming the commonest repair for everything is not
knowing what repairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.repairs import Repair
from toolmem.models import Guidance, ToolCallResult
from toolmem.research.backtest.naming import named
from toolmem.research.backtest.opportunities import Opportunity, opportunities
from toolmem.research.backtest.paired import Interval, cluster_interval

BUDGETS = (200, 500, 1000)  # tokens of guidance per tool

Text = Guidance | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which repaired failures were named, one by one, at one budget."""

    budget: int  # tokens per tool
    asked: tuple[Opportunity, ...]
    hits: tuple[bool, ...]

    @property
    def n(self) -> int:
        return len(self.hits)

    @property
    def share(self) -> float | None:
        """None where no failure was repaired."""
        return sum(self.hits) / len(self.hits) if self.hits else None

    def interval(self, seed: int = 0) -> Interval:
        """95 % bootstrap interval of the share, tasks (else conversations) as clusters; (0, 1) where n is 0."""
        return cluster_interval([float(hit) for hit in self.hits], [one.cluster for one in self.asked], seed=seed)


def coverage(
    guidance: Mapping[str, Text], later: Sequence[ToolCallResult], budget: int, *, strict: bool = False
) -> Coverage:
    """Coverage of `later` calls by one guidance per tool (a tool without one is not covered)."""
    asked = opportunities(later)
    hits = tuple(named(one, guidance.get(one.tool_name), budget, strict=strict) for one in asked)
    return Coverage(budget, tuple(asked), hits)


def replayed_coverage(
    in_force: Sequence[Text], calls: Sequence[ToolCallResult], budget: int, *, strict: bool = False
) -> Coverage:
    """Coverage in a replay: `in_force[i]` is the guidance of `calls[i].tool_name` that the agent had after that call.

    It is asked for at every failure that was repaired; what was written later has no say in it. Raises ValueError
    where the two differ in length.
    """
    if len(in_force) != len(calls):
        raise ValueError(f"{len(calls)} calls, but guidance for {len(in_force)} of them")
    asked = opportunities(calls)
    return Coverage(
        budget, tuple(asked), tuple(named(one, in_force[one.position], budget, strict=strict) for one in asked)
    )


def pooled(parts: Sequence[Coverage]) -> Coverage:
    """Several parts, such as folds or tools, as one. Raises ValueError for none, or for different budgets."""
    if len({part.budget for part in parts}) != 1:
        raise ValueError(
            "coverages of one budget are pooled, got " + (", ".join(str(p.budget) for p in parts) or "none")
        )
    return Coverage(
        parts[0].budget,
        tuple(one for part in parts for one in part.asked),
        tuple(hit for part in parts for hit in part.hits),
    )


def ceiling(earlier: Sequence[Opportunity], later: Sequence[Opportunity]) -> list[bool]:
    """Per later failure: was one of its kinds of repair seen earlier, for its tool and its class of error or message?

    What no writer that learns from `earlier` alone can name without guessing.
    """
    seen = {(one.tool_name, key, repair) for one in earlier for key in _keys(one) for repair in map(_kind, one.repairs)}
    return [
        any((one.tool_name, key, _kind(repair)) in seen for key in _keys(one) for repair in one.repairs)
        for one in later
    ]


def _keys(one: Opportunity) -> set[str]:
    return {one.error_class, one.message} - {""} if one.error_class != "error" else {one.message}


def _kind(repair: Repair) -> Repair:
    """A repair without what it was changed from, and without the shapes of a changed value."""
    return repair._replace(before="", after="" if repair.kind == "changed" else repair.after)
