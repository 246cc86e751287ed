"""How many of the warnings that guidance gives are proved wrong by later calls.

A warning (`naming.warnings_of`) is wrong where some of the later calls that it applies to worked, and they did at least
as often as the other later calls of the tool that it compares them with (those where its `within` holds; all of them
where it has none). Where one of the two sides does not occur later, nothing can be checked, and the warning is counted
apart. The text is cut to a budget first, as for coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.conditions import Condition, Observation, holds
from toolmem.guidance.counted.values import canonical
from toolmem.guidance.outcomes import repeats_of_failures
from toolmem.models import Claim, Guidance, Subject, ToolCallResult
from toolmem.research.backtest.naming import warnings_of
from toolmem.research.backtest.opportunities import observed
from toolmem.research.backtest.paired import Interval, cluster_interval


@dataclass(frozen=True, slots=True)
class Checked:
    """One warning against the later calls. Counts of calls that worked, on both sides."""

    tool_name: str
    text: str
    k: int
    n: int  # later calls that it applies to
    other_k: int
    other_n: int

    @property
    def wrong(self) -> bool | None:
        """None where it could not be checked."""
        if not self.n or not self.other_n:
            return None
        return self.k > 0 and self.k * self.other_n >= self.other_k * self.n


@dataclass(frozen=True, slots=True)
class Warnings:
    """All warnings of some texts."""

    each: tuple[Checked, ...]

    @property
    def told(self) -> int:
        return len(self.each)

    @property
    def checked(self) -> int:
        return sum(one.wrong is not None for one in self.each)

    @property
    def wrong(self) -> int:
        return sum(one.wrong is True for one in self.each)

    @property
    def share(self) -> float | None:
        """Of the warnings that could be checked, the share that was wrong."""
        return self.wrong / self.checked if self.checked else None

    def interval(self, seed: int = 0) -> Interval:
        """95 % bootstrap interval of the share; the warnings of one tool stand together."""
        checked = [one for one in self.each if one.wrong is not None]
        return cluster_interval(
            [float(bool(one.wrong)) for one in checked], [one.tool_name for one in checked], seed=seed
        )


def check_warnings(
    guidance: Mapping[str, Guidance | None], later: Mapping[str, Sequence[ToolCallResult]], budget: int
) -> Warnings:
    """Check the warnings of each tool's guidance, cut to `budget` tokens, on the tool's later calls (oldest first)."""
    return Warnings(
        tuple(
            one
            for name, text in guidance.items()
            if later.get(name)
            for one in _of_tool(name, text, later[name], budget)
        )
    )


def _of_tool(name: str, text: Guidance | None, later: Sequence[ToolCallResult], budget: int) -> list[Checked]:
    outcomes, grouped, seen = observed(later)
    repeats = repeats_of_failures(outcomes, grouped.told, [canonical(call.input) for call in later])
    again = frozenset((*repeats.failed, *repeats.succeeded))
    return [_checked(name, claim, seen, outcomes, again) for claim in warnings_of(text, budget)]


def _checked(
    name: str, claim: Claim, seen: Sequence[Observation], outcomes: Sequence[bool | None], again: frozenset[int]
) -> Checked:
    about = claim.subject or Subject(form="")
    within = about.within and Condition(*about.within)
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for i, (one, outcome) in enumerate(zip(seen, outcomes, strict=True)):
        if outcome is None or (within is not None and not holds(one, within)):
            continue
        applies = i in again if about.form == "repeat" else any(holds(one, Condition(*c)) for c in about.conditions)
        sides[applies].append(outcome)
    return Checked(name, claim.text, sum(sides[True]), len(sides[True]), sum(sides[False]), len(sides[False]))
