"""Everything that the calls of one tool say about it, as counts and positions, before a word is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolmem.guidance.counted.conditions import Observation, TextKind, observe_all, text_kinds
from toolmem.guidance.counted.error_groups import ErrorGroup, error_groups
from toolmem.guidance.counted.patterns import Search, find_patterns
from toolmem.guidance.counted.refusals import RefusedValues, refusals
from toolmem.guidance.counted.repairs import Recovery, recoveries, repaired, restless, worked_after
from toolmem.guidance.counted.user_values import users_own
from toolmem.guidance.counted.values import canonical, parameters
from toolmem.guidance.outcomes import Repeats, blameless, conversations, passing, repeats_of_failures, went_wrong
from toolmem.guidance.statistics import statistics_of
from toolmem.models import ToolCallResult, ToolStatistics
from toolmem.readers.error_messages import telling_line


@dataclass(frozen=True)
class Analysis:
    """What was found in `calls` (oldest first). Positions are those of `calls`."""

    tool_name: str
    calls: Sequence[ToolCallResult]
    ids: Sequence[str]  # of each call; one without an id is named by its place, `#1` being the oldest
    statistics: ToolStatistics
    seen: Sequence[Observation]
    text_kinds: dict[str, TextKind]
    outcomes: Sequence[bool | None]  # True = worked: neither its flag nor the judge says that it failed
    useful: Sequence[bool | None]  # of the calls that worked: True = the judge found the answer useful
    failures: Search  # what goes with failing and with working
    empty: Search  # what goes with an answer that was worth nothing, among calls that worked
    messages: Mapping[int, str]  # the telling line of each failure
    errors: tuple[ErrorGroup, ...]
    refusals: tuple[RefusedValues, ...]
    recoveries: tuple[Recovery, ...]
    restless: frozenset[str]  # parameters that change with nearly every call, whatever came of the one before
    followed: frozenset[int]  # calls after which the tool was called again in the same conversation
    worked_after: frozenset[int]  # failures after which one of the next calls worked, whatever it was about
    repeats: Repeats

    @cached_property
    def repaired(self) -> tuple[Recovery, ...]:
        """The recoveries by which repairs are counted: one for each success."""
        return tuple(repaired(self.recoveries))

    @cached_property
    def users_own(self) -> frozenset[str]:
        """Paths of parameters whose values are the user's: never to be traded for others."""
        return users_own(self.seen)

    @cached_property
    def names(self) -> frozenset[str]:
        """Parameters that any of the calls gives."""
        return frozenset(str(name) for one in self.seen for name in one.params)

    def where(self, outcome: bool) -> list[int]:
        """Positions of the calls that worked (True) or failed (False)."""
        return [i for i, one in enumerate(self.outcomes) if one is outcome]

    @property
    def worthless(self) -> list[int]:
        """Positions of the calls that ran and answered nothing useful."""
        return [i for i, one in enumerate(self.useful) if one is False]


def analyze(tool_name: str, calls: Sequence[ToolCallResult]) -> Analysis:
    """Look at everything that `calls` of one tool say. Never raises on what a call may hold."""
    kinds = text_kinds(tool_name, [parameters(call.input) for call in calls])
    grouped = conversations(calls)
    told, conversation_of = grouped.told, grouped.numbers
    wrong = [went_wrong(call) for call in calls]
    outcomes = [None if failed is None else not failed for failed in wrong]
    useful = [
        None if failed or call.score is None else call.score > 0.0 for call, failed in zip(calls, wrong, strict=True)
    ]
    seen = observe_all(calls, outcomes, told, kinds)
    identity = [canonical(call.input) for call in calls]
    messages = {i: telling_line(calls[i].output) for i, outcome in enumerate(outcomes) if outcome is False}
    actions = {one.action.path for one in seen if one.action is not None}
    passed = [i for i, call in enumerate(calls) if passing(call)]
    without_blame = {i for i, call in enumerate(calls) if blameless(call)}
    return Analysis(
        tool_name=tool_name,
        calls=calls,
        ids=[call.id or f"#{place}" for place, call in enumerate(calls, 1)],
        statistics=statistics_of(calls),
        seen=seen,
        text_kinds=kinds,
        outcomes=outcomes,
        useful=useful,
        failures=find_patterns(seen, outcomes, conversation_of, identity, passed),
        empty=find_patterns(seen, useful, conversation_of, identity),
        messages=messages,
        errors=tuple(error_groups(calls, messages)),
        refusals=tuple(refusals(seen, outcomes, messages, {*kinds, *actions}, users_own(seen))),
        recoveries=tuple(recoveries(outcomes, told, seen, without_blame)),
        restless=restless(outcomes, told, seen),
        followed=frozenset(position for group in told for position in group[:-1]),
        worked_after=frozenset(worked_after(outcomes, told)),
        repeats=repeats_of_failures(outcomes, told, identity),
    )
