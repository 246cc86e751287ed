"""What rules would have stopped among the calls that ran: shown to a person before a rule is approved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from toolmem.light_models import ToolMemoryRule
from toolmem.operations.operation import rpc_operation
from toolmem.operations.tool_rules import rule_store
from toolmem.protocols import Services

if TYPE_CHECKING:
    from toolmem.rules.rule_replay import RuleReplay

_EXAMPLES = 5  # calls that are told of each rule, the newest


class ReplayedCall(BaseModel):
    """A call that ran, and that the rule would have stopped."""

    action: str  # deny or ask
    tool_name: str
    input: Any
    create_time: datetime
    conversation_id: str = ""
    failed: bool | None = None


class ReplayedRule(BaseModel):
    """A rule, what it checks in plain words, and what it would have stopped."""

    rule: ToolMemoryRule
    condition: str  # or why nothing is checked
    calls: int  # logged ones of its tool that ran
    stopped: int
    worked: int  # of those stopped
    examples: list[ReplayedCall] = Field(default_factory=list)  # the newest, oldest first


@rpc_operation("memory.tool_rule_replay", reads_only=True)
async def replay_rules(
    services: Services,
    /,
    ids: Annotated[Sequence[str] | None, "Ids of rules, or their beginnings."] = None,
    *,
    workspace_id: str | None = None,
) -> list[ReplayedRule]:
    """What these rules would have stopped among the newest logged calls; without ids, those that do not hold now."""
    from toolmem.rules.rule_replay import replay_rules as replayed

    rules = await rule_store(services, workspace_id)
    every, _ = await rules.all_rules(inactive=True)
    now = services.clock.now()
    if ids is None:
        meant = [rule for rule in every if not rule.holds_at(now)]
    else:
        wanted = [await rules.full_id(each) for each in ids]
        meant = [rule for each in wanted for rule in every if rule.id == each]
    return [_told(each) for each in await replayed(rules.store, rules.workspace, meant)]


def _told(replayed: RuleReplay) -> ReplayedRule:
    from toolmem.guard.condition_words import in_words

    rule = replayed.rule
    return ReplayedRule(
        rule=rule,
        condition=f"{rule.effect}: {in_words(rule.when)}" if rule.checked else rule.unchecked,
        calls=replayed.calls,
        stopped=len(replayed.stopped),
        worked=sum(each.call.failed is False for each in replayed.stopped),
        examples=[
            ReplayedCall(
                action=action,
                tool_name=call.tool_name,
                input=call.input,
                create_time=call.create_time,
                conversation_id=call.conversation_id or "",
                failed=call.failed,
            )
            for action, call in replayed.stopped[-_EXAMPLES:]
        ],
    )
