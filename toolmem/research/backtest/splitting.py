"""Earlier and later calls of a tool: guidance may learn from the one part and is measured on the other.

The cut is a moment: every earlier call was made before it, every later call after it. No task stands on both sides: a
task whose conversations lie on both sides of the cut goes where it has more of them (where they are equal, the first
such task to the earlier part, the next to the later one, and so on), and its other conversations are left out. Where
every task was run several times that leaves half of the calls out; a second fold gives the tasks with equal numbers to
the other side and asks about those alone, so that over both folds each of them is asked about once.

What a recording does not say is made up for, and `Split.by` says how: without tasks, by conversation; without
conversations, by time alone (half of the calls).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.guidance.outcomes import UNKNOWN, conversations
from toolmem.models import ToolCallResult

SplitBy = Literal["task", "conversation", "time"]

_TASK_NAMESPACE = ("dataset", "domain")  # a task id is unique within these; trials and runs repeat a task


@dataclass(frozen=True, slots=True)
class Split:
    """Two parts of one tool's calls, each in the order given."""

    tool_name: str
    earlier: list[ToolCallResult]
    later: list[ToolCallResult]
    left_out: int  # calls of tasks that stand on the other side, or that run across the cut
    by: SplitBy


def task_of(call: ToolCallResult) -> str:
    """The task that a call belongs to, whatever run or trial it is of; "" where its metadata has no task_id."""
    task = call.metadata.get("task_id")
    if task in (None, ""):
        return ""
    return "/".join(str(part) for part in (*(call.metadata.get(key) or "" for key in _TASK_NAMESPACE), task))


def split_tools(tools: Mapping[str, Sequence[ToolCallResult]], share: float = 0.5, fold: int = 0) -> dict[str, Split]:
    """`split_calls` for each tool; tools that cannot be split (a single conversation, a single call) are left out."""
    made = {name: split_calls(calls, share, fold) for name, calls in tools.items()}
    return {name: split for name, split in made.items() if split.earlier and split.later}


def split_calls(calls: Sequence[ToolCallResult], share: float = 0.5, fold: int = 0) -> Split:
    """Split `calls` of one tool; `share` of its conversations (by their first call) lie before the cut.

    `fold`: 0, or 1 for the tasks that fold 0 learns from although they lie on both sides as well. One of the parts is
    empty where there is too little to split. Raises ValueError unless 0 < share < 1 and the fold is 0 or 1.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"the earlier part's share lies between 0 and 1, got {share}")
    if fold not in (0, 1):
        raise ValueError(f"there are the folds 0 and 1, got {fold}")
    name = calls[0].tool_name if calls else ""
    grouped = conversations(calls)
    if UNKNOWN in grouped.numbers:
        ordered = sorted(calls, key=lambda call: call.create_time)
        cut = int(len(ordered) * share)
        return Split(name, ordered[:cut], [] if fold else ordered[cut:], 0, "time")
    groups = sorted(grouped.groups, key=lambda group: (calls[group[0]].create_time, group[0]))
    cut = int(len(groups) * share)
    tasks = [task_of(calls[group[0]]) for group in groups]
    by: SplitBy = "task" if all(tasks) and len(set(tasks)) > 1 else "conversation"
    side, equal = _sides(tasks, cut, fold) if by == "task" else ({}, frozenset())
    before = [i for i in range(cut) if side.get(tasks[i], "earlier") == "earlier"]
    after = [
        i for i in range(cut, len(groups)) if side.get(tasks[i], "later") == "later" and (not fold or tasks[i] in equal)
    ]
    begin = min((calls[groups[i][0]].create_time for i in after), default=None)
    earlier = [
        position
        for i in before
        for position in groups[i]
        if begin is None or calls[position].create_time < begin or _shared_time(calls, groups[i], begin)
    ]
    later = [position for i in after for position in groups[i]]
    return Split(
        name,
        [calls[i] for i in sorted(earlier)],
        [calls[i] for i in sorted(later)],
        len(calls) - len(earlier) - len(later),
        by,
    )


def _shared_time(calls: Sequence[ToolCallResult], group: Sequence[int], begin: object) -> bool:
    """Times that tell no order (all calls carry the same one) cut nothing off."""
    return all(calls[i].create_time == begin for i in group)


def _sides(tasks: Sequence[str], cut: int, fold: int) -> tuple[dict[str, str], frozenset[str]]:
    """Each task's side of the cut, and the tasks that have as many conversations on the one as on the other."""
    first, second = Counter(tasks[:cut]), Counter(tasks[cut:])
    equal = [task for task in dict.fromkeys(tasks) if first[task] == second[task]]
    sides = {task: "earlier" if first[task] > second[task] else "later" for task in tasks}
    sides |= {task: "later" if (place + fold) % 2 else "earlier" for place, task in enumerate(equal)}
    return sides, frozenset(equal)
