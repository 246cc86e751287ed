"""Failures that guidance could have helped to repair: the tool worked again within three calls, and how is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.conditions import Observation, TextKind, observe_all, text_kinds
from toolmem.guidance.counted.repairs import Repair, recoveries
from toolmem.guidance.counted.values import parameters
from toolmem.guidance.outcomes import Conversations, blameless, conversations, went_wrong
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import mask, telling_line
from toolmem.research.backtest.splitting import task_of


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A failed call that was followed by a success of its tool within three calls of the tool in its conversation.

    `position` and `repaired_at` are positions in the calls that were asked about. `repairs` holds every difference
    between the two inputs (`guidance.counted.repairs`): a parameter added, dropped, renamed or changed, by name; a
    statement kind, program or action before -> after; identifiers (tables, columns, paths) replaced; clauses and flags
    added or dropped; the same call again.
    """

    position: int
    repaired_at: int
    tool_name: str
    error_class: str  # the judge's; "no_output" where the failed call printed nothing; "" where nobody judged
    message: str  # the telling line of the failed call's output, particulars masked
    repairs: frozenset[Repair]
    conversation: str  # calls of one conversation are not independent of one another
    task: str  # "" where the recording does not say

    @property
    def cluster(self) -> str:
        """What an interval draws as a whole: the task, else the conversation."""
        return self.task or self.conversation


def opportunities(calls: Sequence[ToolCallResult]) -> list[Opportunity]:
    """Every repaired failure in `calls` (oldest first, of one tool or of many), in order of the failure.

    Only calls that name their conversation: nothing else tells which call followed which.

    A call failed where its flag or its judge says so. Calls that are not known to have failed or worked count among the
    three and repair nothing.
    """
    by_tool: dict[str, list[int]] = {}
    for position, call in enumerate(calls):
        by_tool.setdefault(call.tool_name, []).append(position)
    found = [one for name, places in by_tool.items() for one in _of_tool(name, places, calls)]
    return sorted(found, key=lambda one: one.position)


def _of_tool(name: str, places: Sequence[int], calls: Sequence[ToolCallResult]) -> list[Opportunity]:
    own = [calls[place] for place in places]
    outcomes, grouped, seen = observed(own)
    found = []
    without_blame = {i for i, call in enumerate(own) if blameless(call)}
    for recovery in recoveries(outcomes, grouped.told, seen, without_blame):
        failed = own[recovery.failure]
        line = telling_line(failed.output)
        found.append(
            Opportunity(
                position=places[recovery.failure],
                repaired_at=places[recovery.success],
                tool_name=name,
                error_class=failed.error_class if line else "no_output",
                message=mask(line),
                repairs=recovery.repairs,
                conversation=failed.conversation_id,
                task=task_of(failed),
            )
        )
    return found


def observed(
    calls: Sequence[ToolCallResult], kinds: Mapping[str, TextKind] | None = None
) -> tuple[list[bool | None], Conversations, list[Observation]]:
    """(whether each call of a tool worked, which calls are of one conversation, what stands in each call).

    `kinds`: of its texts (SQL, a shell command); where none are given, those of these calls.
    """
    wrong = [went_wrong(call) for call in calls]
    outcomes = [None if failed is None else not failed for failed in wrong]
    grouped = conversations(calls)
    if kinds is None:
        kinds = text_kinds(calls[0].tool_name, [parameters(call.input) for call in calls]) if calls else {}
    return outcomes, grouped, observe_all(calls, kinds)
