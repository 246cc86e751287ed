"""The guard: decide on a call before it runs, and record how it ended."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from toolmem.flow.services import Memory
from toolmem.models.decisions import Decision
from toolmem.operations.operation import AgentTool, Conversation, operation
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.rules.turn import Speaker, is_guest

Arguments = Annotated[Any, "The arguments of the call."]


@operation(
    rpc="memory.tool_call_check",
    agent=AgentTool(
        "check_tool_call",
        "Whether a call may run: allow, advise, ask (the user first) or deny, and why.",
        ("tools", "folder", "speaker"),
    ),
)
def check_tool_call(
    memory: Memory,
    tool_name: Annotated[str, "The tool that is to be called."],
    input: Arguments = None,
    *,
    conversation_id: Conversation = None,
    tools: Annotated[list[Any] | None, "Schemas of the tools, to check the arguments by."] = None,
    folder: Annotated[str | None, "The folder in which commands run."] = None,
    force: Annotated[bool, "Let it run although the same call failed before."] = False,
    speaker: Speaker = None,
) -> Decision:
    """Decide on a call before it runs: allow, advise, ask (the user first) or deny, and why.

    Run the call where `may_run` of the decision is true, then say how it ended with
    `tool_call_ended`.
    """
    schemas = {folded_name(schema.name): schema for schema in schemas_of(tools)}
    decision = memory.services.guard(memory.workspace_id).before(
        tool_name,
        {} if input is None else input,
        conversation=conversation_id or "",
        schema=schemas.get(folded_name(tool_name)),
        folder=folder or "",
        force=force,
    )
    if speaker is not None and is_guest(speaker, "owner"):
        return replace(decision, notice="")
    return decision


@operation(rpc="memory.tool_call_ended")
def tool_call_ended(
    memory: Memory,
    decision: Annotated[Decision, "What `check_tool_call` decided."],
    input: Arguments = None,
    *,
    output: Annotated[str, "What the call answered."] = "",
    success: Annotated[bool | None, "Whether it worked. Left out: unknown."] = None,
    call_id: Annotated[str | None, "The host's own id of the call."] = None,
) -> bool:
    """Say how a call ended that was let through: later calls are compared with it. Always True."""
    memory.services.guard(memory.workspace_id).after(
        decision,
        {} if input is None else input,
        output=output,
        failed=None if success is None else not success,
        call_id=call_id or "",
    )
    return True


@operation(rpc="memory.decisions", reads_only=True)
def decisions(
    memory: Memory,
    *,
    conversation_id: Annotated[str | None, "Those of this conversation only."] = None,
    tool_name: Annotated[str | None, "Those on this tool only."] = None,
    limit: Annotated[int, Meta(ge=1, le=1_000), "So many of the newest decisions."] = 100,
) -> list[Decision]:
    """The newest decisions that were more than a plain allow, oldest first."""
    store = memory.services.store()
    return store.decisions(
        memory.workspace_id, conversation=conversation_id, tool=tool_name, limit=limit
    )
