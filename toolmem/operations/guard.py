"""The guard: decide on a call before it runs, and record how it ended."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.flow.services import Memory
from toolmem.models.decisions import Action, Decision, SourceKind
from toolmem.operations.operation import AgentTool, ConversationId, operation
from toolmem.operations.results import Decisions
from toolmem.operations.rules import schemas_of
from toolmem.rules.identity import folded_name
from toolmem.rules.turn import Speaker, is_guest
from toolmem.store.base import DECISIONS_READ
from toolmem.store.storable import change_decision

Arguments = Annotated[Any, "The arguments of the call."]


@operation(
    rpc="memory.tool_call_check",
    flow="check_tool_call",
    agent=AgentTool(
        "check_tool_call",
        "Ask whether a call may run: allow, advise, ask (the user first) or deny, with the reason.",
        ("tools", "folder", "speaker"),
    ),
)
def check_tool_call(
    memory: Memory,
    tool_name: Annotated[str, "The tool that is about to be called."],
    input: Arguments = None,
    *,
    conversation_id: ConversationId = None,
    tools: Annotated[list[Any] | None, "The schemas of the tools, to check the arguments."] = None,
    folder: Annotated[str | None, "The folder in which the call would run a command."] = None,
    force: Annotated[bool, "Let the call run even if the same call failed before."] = False,
    speaker: Speaker = None,
) -> Decision:
    """Decide on a call before it runs: allow, advise, ask (the user first) or deny, and why.

    If `may_run` of the decision is true, run the call, and report its end with `tool_call_ended`.
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
    decision: Annotated[Decision, "The decision that `check_tool_call` returned."],
    input: Arguments = None,
    *,
    output: Annotated[str, "The output of the call."] = "",
    success: Annotated[bool | None, "Whether the call worked, if that is known."] = None,
    call_id: Annotated[str | None, "The id that the agent's program gave the call."] = None,
) -> bool:
    """Record how an allowed call ended, for later decisions of the guard. Returns True."""
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
    conversation_id: Annotated[str | None, "Return only decisions in this conversation."] = None,
    tool_name: Annotated[str | None, "Return only decisions about this tool."] = None,
    action: Annotated[Action | None, "Return only decisions with this action."] = None,
    kind: Annotated[
        SourceKind | None,
        "Return only decisions with this reason. rule: a rule; repeat: the same call failed; "
        "known_name: a table or column does not exist; schema: wrong arguments; self: the call may "
        "change toolmem, or the call or the rules cannot be read.",
    ] = None,
    rule_id: Annotated[str | None, "Return only decisions that this rule caused."] = None,
    ids: Annotated[list[str] | None, "Return only the decisions with these ids."] = None,
    limit: Annotated[int, Meta(ge=1, le=1_000), "Return this many of the newest decisions."] = 100,
) -> Decisions:
    """Return the newest decisions other than a plain allow, oldest first.

    Only the newest 2,000 are searched. `.to_frame()` makes a pandas DataFrame of the result.
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
    wrong: Annotated[bool, "Whether the decision is wrong. False removes an earlier mark."] = True,
) -> Decision:
    """Mark a decision that the user finds wrong. The mark changes no rule and no later decision."""
    store = memory.services.store()
    found = store.decisions(memory.workspace_name, ids=[id])
    if not found:
        raise RequestError(f"id: there is no decision {id[:80]!r} among the newest 2,000", "id")
    mark = partial(replace, is_wrong=wrong)
    return change_decision(store, memory.workspace_name, found[0], mark)
