"""The guard: what is to become of a call before it runs, and what was decided about earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.operations.tool_rules import ToolName
from toolmem.protocols import Services
from toolmem.stored import LoggedDecision

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision

MOST_DECISIONS = 10_000  # that one request answers


class DecisionSource(BaseModel):
    """One thing that speaks against a call."""

    kind: Literal["rule", "repeat", "known_name", "schema", "self"]
    rule_id: str = ""
    k: int | None = None  # failures, of `n` times
    n: int | None = None
    call_ids: list[str] = Field(default_factory=list)


class CallDecision(BaseModel):
    """What is to become of a call. `str` of it is the reason."""

    id: str  # as `decision_id` of the call's record it tells how the call ended
    action: Literal["allow", "advise", "ask", "deny"]
    reason: str = ""  # why the call was stopped; "" where it may run
    advice: str = ""  # for the agent, where the call may run
    sources: list[DecisionSource] = Field(default_factory=list)
    mode: str = "enforce"  # shadow: something was found, and nothing is done about it

    @classmethod
    def of(cls, decision: GuardDecision) -> CallDecision:
        """As it travels."""
        return cls.model_validate(decision.as_json())

    @property
    def stops(self) -> bool:
        """The call is not to run: at all, or before the user was asked."""
        return self.action in ("ask", "deny")

    def __str__(self) -> str:
        return self.reason


@rpc_operation("memory.tool_call_check", flow="check_tool_call", reads_only=True)
async def check_tool_call(
    services: Services,
    /,
    tool_name: ToolName,
    input: Annotated[Mapping[str, Any] | Sequence[Any] | str | None, "The planned arguments."] = None,
    *,
    conversation_id: Annotated[str | None, "Without it no failure is known that is about to be repeated."] = None,
    context: Annotated[
        str | None, "What the call runs against, as guidance.context_key reads it from records: a database, say."
    ] = None,
    tools: Annotated[
        Sequence[Mapping[str, Any]] | None, "The tools' JSON schemas, in OpenAI or MCP form; this tool's is enough."
    ] = None,
    force: Annotated[bool | None, "Repeat a failed call all the same. No rule is forced."] = None,
    workspace_id: str | None = None,
) -> CallDecision:
    """Ask before a tool call: allow, advise, ask (the user) or deny, by the user's rules and what failed before.

    A record that is added afterwards names the decision in its `decision_id`, so that it is known how the call ended.
    """
    from toolmem.ops.check_tool_call import decision_on

    asked: dict[str, Any] = {"tool_name": tool_name, "input": input, "conversation_id": conversation_id}
    asked |= {"context": context, "tools": tools, "force": force}
    return CallDecision.of(await decision_on(services, workspace_id or DEFAULT_WORKSPACE, asked))


@rpc_operation("memory.decisions", reads_only=True)
async def decisions(
    services: Services,
    /,
    conversation_id: Annotated[str | None, "Those of one conversation."] = None,
    tool_name: Annotated[str | None, "Those about one tool."] = None,
    *,
    limit: Annotated[int, Field(ge=1, le=MOST_DECISIONS)] = 100,
    workspace_id: str | None = None,
) -> list[LoggedDecision]:
    """What the guard decided, the newest first: all but plain allows, and what became of each call."""
    from toolmem.engine.kept_decisions import as_of
    from toolmem.ops import CheckToolCallOp

    store = await services.store(CheckToolCallOp())
    workspace, now = workspace_id or DEFAULT_WORKSPACE, services.clock.now()
    found = await store.decisions(workspace, conversation=conversation_id, tool=tool_name, limit=limit)
    return [as_of(each, now) for each in found]
