"""Everything that the calls of one tool say about it, as positions, before a word is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.conditions import Observation, TextKind, observe_all, text_kinds
from toolmem.guidance.counted.repairs import Recovery, recoveries, restless
from toolmem.guidance.counted.values import parameters
from toolmem.guidance.outcomes import blameless, conversations, went_wrong
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import telling_line


@dataclass(frozen=True)
class Analysis:
    """What was found in `calls` (oldest first). Positions are those of `calls`."""

    tool_name: str
    calls: Sequence[ToolCallResult]
    ids: Sequence[str]  # of each call; one without an id is named by its place, `#1` being the oldest
    seen: Sequence[Observation]
    text_kinds: Mapping[str, TextKind]
    told: Sequence[Sequence[int]]  # by conversation that the calls name, in the order made
    outcomes: Sequence[bool | None]  # True = worked: neither its flag nor the judge says that it failed
    useful: Sequence[bool | None]  # of the calls that worked: True = the judge found the answer useful
    messages: Mapping[int, str]  # the telling line of each failure
    recoveries: Sequence[Recovery]  # failures, and the calls that worked after them
    answered: Sequence[Recovery]  # answers that were worth nothing, and the calls that were answered after them
    restless: frozenset[str]  # parameters that change with nearly every call, whatever came of the one before

    def where(self, outcome: bool) -> list[int]:
        """Positions of the calls that worked (True) or failed (False)."""
        return [i for i, one in enumerate(self.outcomes) if one is outcome]


def analyze(tool_name: str, calls: Sequence[ToolCallResult]) -> Analysis:
    """Look at everything that `calls` of one tool say. Never raises on what a call may hold."""
    kinds = text_kinds(tool_name, [parameters(call.input) for call in calls])
    told = conversations(calls).told
    wrong = [went_wrong(call) for call in calls]
    outcomes = [None if failed is None else not failed for failed in wrong]
    useful = [
        None if failed or call.score is None else call.score > 0.0 for call, failed in zip(calls, wrong, strict=True)
    ]
    # An answer that was worth nothing repairs nothing.
    answered = [None if worth is False else outcome for outcome, worth in zip(outcomes, useful, strict=True)]
    seen = observe_all(calls, kinds)
    without_blame = {i for i, call in enumerate(calls) if blameless(call)}
    return Analysis(
        tool_name=tool_name,
        calls=calls,
        ids=[call.id or f"#{place}" for place, call in enumerate(calls, 1)],
        seen=seen,
        text_kinds=kinds,
        told=told,
        outcomes=outcomes,
        useful=useful,
        messages={i: telling_line(calls[i].output) for i, outcome in enumerate(outcomes) if outcome is False},
        recoveries=recoveries(answered, told, seen, without_blame),
        answered=recoveries(useful, told, seen),
        restless=restless(outcomes, told, seen),
    )
