"""The guard: decide on a call before it runs, and record how it ended."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.flow.services import Memory
from toolmem.models.decisions import Action, Decision, SourceKind
from toolmem.operations.operation import AgentTool, Conversation, operation
from toolmem.operations.results import Decisions
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.rules.turn import Speaker, is_guest
from toolmem.store.base import DECISIONS_READ
from toolmem.store.storable import change_decision

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
    decision = memory.services.guard(memory.workspace_name).before(
        tool_name,
        {} if input is None else input,
        conversation_id=conversation_id or "",
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
    memory.services.guard(memory.workspace_name).after(
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
    action: Annotated[Action | None, "Those with this action only."] = None,
    kind: Annotated[SourceKind | None, "Those with such a source only."] = None,
    rule_id: Annotated[str | None, "Those that rest on this rule only."] = None,
    ids: Annotated[list[str] | None, "These only."] = None,
    limit: Annotated[int, Meta(ge=1, le=1_000), "So many of the newest."] = 100,
) -> Decisions:
    """The newest decisions that were more than a plain allow, oldest first.

    They are chosen among the newest 2,000. `.to_frame()` makes a pandas DataFrame of them.
    """
    found = memory.services.store().decisions(
        memory.workspace_name,
        ids=ids,
        conversation_id=conversation_id,
        tool_name=tool_name,
        limit=DECISIONS_READ,
    )
    chosen = [
        each
        for each in found
        if action in (None, each.action)
        and (kind is None or any(source.kind == kind for source in each.sources))
        and (rule_id is None or rule_id in each.rule_ids)
    ]
    return Decisions(chosen[-limit:])


@operation(rpc="memory.decision_mark")
def mark_decision(
    memory: Memory,
    id: Annotated[str, "The id of the decision."],
    wrong: Annotated[bool, "False: it is not wrong after all."] = True,
) -> Decision:
    """Keep with a decision that the user finds it wrong. That changes nothing by itself."""
    store = memory.services.store()
    found = store.decisions(memory.workspace_name, ids=[id])
    if not found:
        raise RequestError(f"id: there is no decision {id[:80]!r} among the newest 2,000", "id")
    mark = partial(replace, is_wrong=wrong)
    return change_decision(store, memory.workspace_name, found[0], mark)
