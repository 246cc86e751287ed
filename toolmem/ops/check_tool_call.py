"""CheckToolCallOp: a planned call in, what is to become of it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.engine.ended_calls import with_names
from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op
from toolmem.formats.call_records import MAX_ID, MAX_TOOL_NAME
from toolmem.ops.arguments import read_schemas
from toolmem.readers.json_values import without_surrogates

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision
    from toolmem.models import ToolCallResult
    from toolmem.protocols import MemoryStore, Services
    from toolmem.stored import Appended

DECISION = "decision_id"  # a key of a record, kept in its metadata
_ASKED = ("input", "conversation_id", "context", "tools", "force")


class CheckToolCallOp(Op):
    """Decide on a call before it runs: `allow`, `advise`, `ask` or `deny`, by the user's rules and what failed before.

    The answer is the reason, "" where the call may run; `metadata.decision` holds all of it. Nothing is run.
    """

    reads = ("workspace_id", "tool_name")
    optional = _ASKED
    leaves = ("decision",)

    async def execute(self, context: Context) -> None:
        asked = {key: context[key] for key in ("tool_name", *_ASKED) if key in context}
        decision = await decision_on(context.services, context.workspace, asked)
        context["decision"] = decision
        context.response.answer = decision.reason
        context.response.metadata["decision"] = decision.as_json()


async def decision_on(services: Services, workspace: str, asked: Mapping[str, Any]) -> GuardDecision:
    """What the guard says to a call. `asked`: as the request has it.

    Raises RequestError, and StoreUntrusted where nothing that the default store holds may be put before an agent.
    """
    tools = read_schemas(asked.get("tools"))
    tool_name = text_of_request("tool_name", asked.get("tool_name"), MAX_TOOL_NAME)
    if not tool_name:
        raise RequestError("tool_name: blank; expected the name of the tool that is to be called", field="tool_name")
    conversation = text_of_request("conversation_id", asked.get("conversation_id"), MAX_ID)
    guard = await services.call_guard(workspace)
    given = asked.get("input")
    return await guard.before(
        tool_name,
        {} if given is None else given,
        conversation_id=conversation,
        force=bool(asked.get("force")),
        tools=tuple(tools.values()),
        context=text_of_request("context", asked.get("context"), MAX_ID),
    )


def learns(services: Services) -> bool:
    """Is there a guard that calls teach?"""
    return bool(services.settings.guard.is_on and not services.untrusted())


def told_apart(call: ToolCallResult) -> ToolCallResult:
    """With an id where the guard may speak of it later."""
    named: ToolCallResult = with_names(call, _decision_of(call) or None)
    return named


async def keep_and_learn(
    services: Services, workspace: str, store: MemoryStore, calls: Sequence[ToolCallResult], keep: int
) -> dict[str, Appended]:
    """Keep calls, by tool, with what they teach the guard and what became of the decisions that they name."""
    guard = await services.call_guard(workspace)
    return await guard.keep([(call, _decision_of(call)) for call in calls], keep, store)


def _decision_of(call: ToolCallResult) -> str:
    """The id of the decision that a record names as the one about its call."""
    given = call.metadata.get(DECISION)
    return given if isinstance(given, str) and len(given) <= MAX_ID else ""


def text_of_request(field: str, given: Any, most: int) -> str:
    """As a record's field of this name is read; "" where there is none."""
    if given is None:
        return ""
    if not isinstance(given, str):
        raise RequestError(f"{field}: expected text, got {type(given).__name__}", field=field)
    text = without_surrogates(given).strip() if field == "tool_name" else without_surrogates(given)
    if len(text) > most:
        raise RequestError(f"{field}: {len(text):,} characters; at most {most:,} are allowed", field=field)
    return text
