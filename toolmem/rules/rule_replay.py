"""What a rule would have stopped among the calls that a workspace logged, whether or not the rule holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolmem.guard.decision import CheckedRule, against_rules
from toolmem.guard.histories import PASSING
from toolmem.guard.tool_classes import scopes_of
from toolmem.guard.view import View, view_of
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.denied_calls import is_denied
from toolmem.rules.checked_rules import as_checked
from toolmem.rules.identity import UNSCOPED, folded_name

if TYPE_CHECKING:
    from toolmem.models import ToolCallResult
    from toolmem.protocols import MemoryStore

MOST_CALLS = 5000  # of the log, the newest


class StoppedCall(NamedTuple):
    """A call that ran, and that the rule would have denied or asked about."""

    action: str
    call: ToolCallResult


class RuleReplay(NamedTuple):
    """One rule, and the logged calls that it is about."""

    rule: ToolMemoryRule
    calls: int  # of its tool that ran
    stopped: list[StoppedCall]  # oldest first


async def replay_rules(
    store: MemoryStore, workspace: str, rules: Sequence[ToolMemoryRule], limit: int = MOST_CALLS
) -> list[RuleReplay]:
    """Each rule held against the newest calls of the workspace's log, as they were given.

    Of what ran before each call nothing is claimed: order, flow and counts stop none here.
    """
    logged = await store.call_log(workspace, limit=limit, newest=True) if rules else []
    ran = [each.call for each in logged if not is_denied(each.call.output)]
    seen: dict[int, View] = {}
    return [_replayed(rule, [call for call in ran if _is_about(rule, call)], seen) for rule in rules]


def _is_about(rule: ToolMemoryRule, call: ToolCallResult) -> bool:
    tool = folded_name(rule.tool_name)
    return tool in (UNSCOPED, folded_name(call.tool_name), *scopes_of(call.tool_name, None, call.input))


def _replayed(rule: ToolMemoryRule, calls: list[ToolCallResult], seen: dict[int, View]) -> RuleReplay:
    checked = as_checked(rule)
    found = ((call, _action(checked, call, seen)) for call in calls) if checked.checkable else ()
    return RuleReplay(rule, len(calls), [StoppedCall(action, call) for call, action in found if action])


def _action(rule: CheckedRule, call: ToolCallResult, seen: dict[int, View]) -> str:
    if id(call) not in seen:
        given = call.input if isinstance(call.input, dict) else {"": call.input}
        seen[id(call)] = view_of(call.tool_name, given)
    return next((each.action for each in against_rules([rule], seen[id(call)], "enforce", history=PASSING)), "")
