"""How many warnings later calls prove wrong.

A warning (`conditions_read`) is wrong where some of the later calls that it applies to worked, and they did at least as
often as the other later calls of the tool that it compares them with (those where its `within` holds; all of them where
it has none). Where one of the two sides does not occur later, nothing can be checked, and the warning is counted apart,
as is one whose condition cannot be read. The text is cut to a budget first, as for coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolmem.guidance.counted.conditions import Observation, holds, observe_all, text_kinds
from toolmem.guidance.counted.values import canonical, parameters
from toolmem.guidance.outcomes import conversations, repeats_of_failures, went_wrong
from toolmem.models import Guidance, ToolCallResult
from toolmem.research.backtest.conditions_read import REPEATED, Warned, read_warnings
from toolmem.research.backtest.intervals import Interval, cluster_interval
from toolmem.research.backtest.reading import read_within

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Checked:
    """One warning against the later calls. Counts of calls that worked, on both sides."""

    tool_name: str
    text: str
    read: bool  # its condition could be read
    k: int = 0
    n: int = 0  # later calls that it applies to
    other_k: int = 0
    other_n: int = 0

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
    def read(self) -> int:
        return sum(one.read for one in self.each)

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

    def frame(self) -> pd.DataFrame:
        """One row per warning: tool_name, text, read, k, n, other_k, other_n, wrong (None: not checked)."""
        import pandas as pd

        names = ["tool_name", "text", "read", "k", "n", "other_k", "other_n", "wrong"]
        return pd.DataFrame([[getattr(one, name) for name in names] for one in self.each], columns=names)


def check_warnings(
    guidance: Mapping[str, Guidance | str | None], later: Mapping[str, Sequence[ToolCallResult]], budget: int
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


def _of_tool(name: str, text: Guidance | str | None, later: Sequence[ToolCallResult], budget: int) -> list[Checked]:
    wrong = [went_wrong(call) for call in later]
    outcomes = [None if failed is None else not failed for failed in wrong]
    groups = conversations(later).told
    seen = observe_all(later, outcomes, groups, text_kinds(name, [parameters(call.input) for call in later]))
    repeats = repeats_of_failures(outcomes, groups, [canonical(call.input) for call in later])
    again = frozenset((*repeats.failed, *repeats.succeeded))
    return [
        _checked(name, warned, seen, outcomes, again) for warned in read_warnings(read_within(text, budget).text, seen)
    ]


def _checked(
    name: str, warned: Warned, seen: Sequence[Observation], outcomes: Sequence[bool | None], again: frozenset[int]
) -> Checked:
    if not warned.conditions:
        return Checked(name, warned.text, read=False)
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for i, (one, outcome) in enumerate(zip(seen, outcomes, strict=True)):
        if outcome is None or (warned.within is not None and not holds(one, warned.within)):
            continue
        applies = any(i in again if c == REPEATED else holds(one, c) for c in warned.conditions)
        sides[applies].append(outcome)
    return Checked(name, warned.text, True, sum(sides[True]), len(sides[True]), sum(sides[False]), len(sides[False]))
