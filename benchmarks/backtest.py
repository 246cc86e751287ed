"""Measure guidance on a recording, tool by tool, within several numbers of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from toolmem.guidance.card import CardWriter
from toolmem.models.guidance import Guidance
from toolmem.models.protocols import GuidanceWriter
from toolmem.research.backtest import (
    Calls,
    Repaired,
    by_tool,
    is_named,
    repaired_failures,
    split,
    written_in_use,
)

BUDGETS = (200, 500, 1_000)  # tokens of guidance per tool


class Coverage(Struct, frozen=True):
    """How many of the repaired failures the guidance names the repair of."""

    budget: int  # tokens of guidance per tool
    named: int
    repaired: int

    @property
    def share(self) -> float | None:
        """None where no failure was repaired."""
        return self.named / self.repaired if self.repaired else None


def backtest(
    calls: Calls, budgets: Sequence[int] = BUDGETS, writer: GuidanceWriter | None = None
) -> list[Coverage]:
    """The coverage of judged calls, oldest first, for each number of tokens.

    Where every task was run several times, a second fold swaps the sides of those tasks, so that
    each task is asked about once. `writer`: one that asks no model; left out: the card writer.
    """
    used = writer or CardWriter(max_tokens=max(budgets))
    pairs: list[tuple[Repaired, Guidance]] = []
    for own in by_tool(calls).values():
        for fold in (0, 1):
            parts = split(own, fold)
            if parts.earlier and parts.later:
                guidance = written_in_use(used, parts.earlier)
                pairs += [(each, guidance) for each in repaired_failures(parts.later)]
    return [
        Coverage(budget, sum(is_named(one, text, budget) for one, text in pairs), len(pairs))
        for budget in budgets
    ]
