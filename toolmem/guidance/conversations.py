"""Which calls belong together: the order in which one agent made them.

What is told of one call and the next (repairs, repeats, what was done before) is told inside one conversation alone,
and only where the calls name theirs (`ToolCallResult.conversation_id`). Failing that, a task, a run or what the agent
was asked groups calls that are not independent of one another; such a group is never evidence that one call followed
another.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from toolmem.models import ToolCallResult

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
    return sorted(group, key=lambda position: (calls[position].create_time, _step(calls[position]), position))


def _step(call: ToolCallResult) -> float:
    step = call.metadata.get("step")
    return float(step) if isinstance(step, int | float) and abs(step) < 1e15 else 0.0
