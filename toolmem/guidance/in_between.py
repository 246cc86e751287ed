"""Which other tools a conversation called between a call that failed and the same call again.

A summary reads the calls of one tool. Where it read such a pair, the calls are told what came between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from toolmem.guidance.outcomes import blameless, conversations, place_in_conversation, went_wrong
from toolmem.models import ToolCallResult

CALLED_BETWEEN = "called_between"  # key of a call's metadata: other tools since the same call of this tool failed
MOST = 2  # different tools; among more of them nobody knows which one mattered
_LONGEST = 8  # calls between

Trail = Mapping[str, Sequence[tuple[Any, str]]]  # by conversation: place and tool of each call, in the order made


def repeated_pairs(calls: Sequence[ToolCallResult], new: Iterable[int]) -> list[tuple[int, int]]:
    """Positions of a call that failed and of the same call next time this tool was called, its seq among `new`.

    Nothing of failures that no input and no other call would have changed.
    """
    fresh = frozenset(new)
    return [
        (a, b)
        for group in conversations(calls).told
        for a, b in pairwise(group)
        if calls[b].seq in fresh
        and calls[a].input == calls[b].input
        and went_wrong(calls[a])
        and not blameless(calls[a])
    ]


def trail_of(calls: Iterable[ToolCallResult]) -> Trail:
    """The calls of all tools by conversation, those that failed left out: they changed nothing."""
    found: dict[str, list[tuple[Any, str]]] = {}
    for call in calls:
        if call.conversation_id and not went_wrong(call):
            found.setdefault(call.conversation_id, []).append((place_in_conversation(call), call.tool_name))
    for made in found.values():
        made.sort(key=lambda one: one[0])
    return found


def with_calls_between(
    calls: Sequence[ToolCallResult], pairs: Iterable[tuple[int, int]], trail: Trail
) -> list[ToolCallResult]:
    """`calls`, the second of each pair with the names of other tools in CALLED_BETWEEN where those are few."""
    told = list(calls)
    for a, b in pairs:
        first, last = place_in_conversation(calls[a]), place_in_conversation(calls[b])
        made = trail.get(calls[a].conversation_id or "", ())
        between = [tool for place, tool in made if first < place < last and tool != calls[a].tool_name]
        names = list(dict.fromkeys(between))
        if names and len(names) <= MOST and len(between) <= _LONGEST:
            told[b] = calls[b].model_copy(update={"metadata": {**calls[b].metadata, CALLED_BETWEEN: names}})
    return told


def called_between(call: ToolCallResult) -> tuple[str, ...]:
    """What `with_calls_between` told of a call."""
    names = call.metadata.get(CALLED_BETWEEN)
    return tuple(str(name) for name in names[:MOST]) if isinstance(names, list) else ()
