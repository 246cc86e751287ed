"""How a call ended, for guidance: a tool that answers with an error did not work, whatever its flag says.

And which calls belong together: what is told of one call and the next (repairs, repeats, what was done before) is told
inside one conversation alone, and only where the calls name theirs (`ToolCallResult.conversation_id`). Failing that, a
task, a run or what the agent was asked groups calls that are not independent of one another; such a group is never
evidence that one call followed another.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from toolmem.models import ToolCallResult


@dataclass(frozen=True, slots=True)
class Repeats:
    """Positions of the calls that repeat a failed one, by how they ended."""

    failed: tuple[int, ...]
    succeeded: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.failed) + len(self.succeeded)


def repeats_of_failures(
    outcomes: Sequence[bool | None], groups: Sequence[Sequence[int]], identity: Sequence[Hashable]
) -> Repeats:
    """`outcomes`: True = the call did not fail; `identity`: equal for calls with the same input."""
    failed: list[int] = []
    succeeded: list[int] = []
    for group in groups:
        failed_before: set[Hashable] = set()
        for position in group:
            outcome, given = outcomes[position], identity[position]
            if given in failed_before and outcome is not None:
                (succeeded if outcome else failed).append(position)
            if outcome is False:
                failed_before.add(given)
    return Repeats(tuple(sorted(failed)), tuple(sorted(succeeded)))


# Error classes of failures that the same call may not meet again: they say nothing about its input.
PASSING = frozenset({"server_error", "rate_limited", "connection_error"})

# Of these, those that no input can have caused: what was changed before the next success repaired nothing.
_BLAMELESS = frozenset({"rate_limited", "connection_error"})


def went_wrong(call: ToolCallResult) -> bool | None:
    """Whether the call failed by its recorded flag or by what the judge saw in its output; None: neither is known.

    `ToolCallResult.failed`, and with it every success rate, takes the recorded flag as the last word. Many tools report
    success and answer `{"error": ...}` or an HTTP body with status 404: guidance has to tell such calls apart.
    """
    return True if call.execution_failed else call.failed


def passing(call: ToolCallResult) -> bool:
    """Whether a call failed for a reason that lies with the service, not with what it was given."""
    return bool(went_wrong(call)) and call.error_class in PASSING


def blameless(call: ToolCallResult) -> bool:
    """Whether a call failed for a reason that no other input would have changed."""
    return bool(went_wrong(call)) and call.error_class in _BLAMELESS


def flag_is_wrong(call: ToolCallResult) -> bool:
    """Whether the recorded flag calls a call a success although the judge saw it fail."""
    return call.success is True and call.execution_failed is True


# ---------------------------------------------------------------- which calls belong together


_TASK_KEYS = ("run", "task_id", "trial")
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Conversations:
    """Calls by conversation."""

    groups: list[list[int]]  # positions of the calls that belong together, in the order given
    numbers: list[int]  # of each call's group; UNKNOWN where nothing tells it
    told: list[list[int]]  # positions of the calls of each conversation that the calls name, in the order made


def conversations(calls: Sequence[ToolCallResult]) -> Conversations:
    """Group `calls` by conversation.

    A call without any sign of its conversation belongs with its neighbours: all such calls form one group, whose
    number is UNKNOWN, because they may come from many conversations.
    """
    groups: dict[Hashable, list[int]] = {}
    for position, call in enumerate(calls):
        groups.setdefault(_group_of(call), []).append(position)
    numbers = [UNKNOWN] * len(calls)
    for number, (key, group) in enumerate(groups.items()):
        if key is not None:
            for position in group:
                numbers[position] = number
    told = [_in_order(group, calls) for group in groups.values() if calls[group[0]].conversation_id]
    return Conversations(list(groups.values()), numbers, told)


def _group_of(call: ToolCallResult) -> Hashable:
    if call.conversation_id:
        return ("conversation", call.conversation_id)
    known = call.metadata
    if known.get("task_id") not in (None, ""):
        return ("task", *(str(known.get(key)) for key in _TASK_KEYS))
    if call.context:
        return ("context", call.context)
    return None


def _in_order(group: Sequence[int], calls: Sequence[ToolCallResult]) -> list[int]:
    """By time; where times tie by `step`, then as they came."""
    return sorted(group, key=lambda position: (*place_in_conversation(calls[position]), position))


def place_in_conversation(call: ToolCallResult) -> tuple[datetime, float]:
    """By which the calls of one conversation are sorted; where it ties, they stay as they came."""
    step = call.metadata.get("step")
    return call.create_time, float(step) if isinstance(step, int | float) and abs(step) < 1e15 else 0.0
