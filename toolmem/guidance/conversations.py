"""Which calls belong together: the order in which one agent made them.

Conversation ids (and, failing those, task and run ids, or what the agent was asked) only group calls; they are never
evidence for anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from toolmem.schema import ToolCallResult

_TASK_KEYS = ("run", "task_id", "trial")
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Conversations:
    """Calls by conversation."""

    groups: list[list[int]]  # positions of the calls of each, in the order given
    numbers: list[int]  # of each call's conversation; UNKNOWN where nothing tells it


def conversations(calls: Sequence[ToolCallResult]) -> Conversations:
    """Group `calls` by conversation.

    A call without any sign of its conversation belongs with its neighbours: all such calls form one group, whose
    number is UNKNOWN, because they may come from many conversations.
    """
    groups: dict[Hashable, list[int]] = {}
    for position, call in enumerate(calls):
        groups.setdefault(_conversation_of(call), []).append(position)
    numbers = [UNKNOWN] * len(calls)
    for number, (conversation, group) in enumerate(groups.items()):
        if conversation is not None:
            for position in group:
                numbers[position] = number
    return Conversations(list(groups.values()), numbers)


def _conversation_of(call: ToolCallResult) -> Hashable:
    known = call.metadata
    if (conversation := known.get("conversation_id")) not in (None, ""):
        return ("conversation", str(conversation))
    if known.get("task_id") not in (None, ""):
        return ("task", *(str(known.get(key)) for key in _TASK_KEYS))
    if call.context:
        return ("context", call.context)
    return None
