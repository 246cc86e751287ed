"""Demands: list them, note new ones, and lift those that the user takes back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.flow.services import Memory
from toolmem.guard.conversation import rule_stops
from toolmem.guard.guard import MESSAGE_WAIT
from toolmem.models.calls import Moment
from toolmem.models.rules import Effect
from toolmem.operations.operation import AgentTool, ConversationId, operation
from toolmem.operations.rules import Unless, When, schemas_of
from toolmem.rules.changes import Actor
from toolmem.rules.identity import text_key
from toolmem.rules.notes import contract, keep
from toolmem.rules.notes.keep import NoteResult
from toolmem.rules.notes.verify import REPLAYED, NoteContext
from toolmem.rules.notes.width import Call
from toolmem.rules.turn import Speaker, is_guest, tell_operator
from toolmem.text.forms import word_tuple

Quote = Annotated[str, "The user's words, copied exactly from one message."]
UserMessages = Annotated[
    str | list[str] | None,
    "The messages that the user typed. Without them, the user must approve the demand first.",
]
SaidAt = Annotated[list[Moment] | None, "When each message in `user_message` was typed."]
_HIDDEN = word_tuple(  # from agents: the host knows these
    "user_message said_at tools_available conversation_id turn noted_by speaker"
)


@operation(rpc="memory.demand_note", agent=AgentTool("note_demand", contract(), _HIDDEN))
def note_demand(
    memory: Memory,
    quote: Quote,
    effect: Annotated[Effect, "deny the call, ask the user first, or only remind the agent."],
    *,
    lasting: Annotated[str | None, "always, or session: only in this conversation."] = None,
    until: Annotated[str | None, "The last day it holds: today, or a date (2026-12-24)."] = None,
    tools: Annotated[list[str] | None, "The tools that could break the demand."] = None,
    replaces: Annotated[
        str | None, "The id or the words of the demand that this one replaces."
    ] = None,
    rule: Annotated[str | None, "The demand in other words, if the quote alone is unclear."] = None,
    when: When = None,
    unless: Unless = None,
    stops: Annotated[
        list[Any] | None, '1 to 3 calls that the demand stops: {"tool": ..., "arguments": {...}}.'
    ] = None,
    passes: Annotated[list[Any] | None, "1 to 3 similar calls that the demand allows."] = None,
    user_message: UserMessages = None,
    tools_available: Annotated[list[Any] | None, "Names or schemas of the agent's tools."] = None,
    conversation_id: ConversationId = None,
    turn: Annotated[str | None, "The id of the turn in which the user said this."] = None,
    noted_by: Annotated[str | None, "The name of the agent or model that writes the note."] = None,
    said_at: SaidAt = None,
    speaker: Speaker = None,
) -> NoteResult:
    """Keep a demand that an agent noted, if it agrees with what the user typed.

    `outcome` is kept, request (it waits for the user) or refused; `problems` say what to change.
    """
    note = {
        "quote": quote,
        "effect": effect,
        "lasting": lasting,
        "until": until,
        "tools": tools,
        "replaces": replaces,
        "rule": rule,
        "when": when,
        "unless": unless,
        "stops": stops,
        "passes": passes,
    }
    schemas = schemas_of(tools_available)
    context = _context(memory, user_message, said_at, conversation_id, noted_by, speaker)
    context.turn = turn or ""
    context.tools = schemas
    names = [*(tools or ()), *(schema.name for schema in schemas)]
    context.kept_calls = _kept_calls(memory, names[:20])
    rules = memory.services.rules(memory.workspace_name)
    with rules.store.transaction(MESSAGE_WAIT):
        result = keep.note_demand(rules, note, context)
    if context.is_guests:
        tell_operator(context.session, [result.told])
        result.told = ""
    return result


@operation(
    rpc="memory.demand_lift",
    agent=AgentTool("lift_demand", "Lift an earlier demand that the user takes back.", _HIDDEN),
)
def lift_demand(
    memory: Memory,
    quote: Quote,
    lifted: Annotated[str, "The demand that is taken back, in a few words or by its id."],
    *,
    user_message: UserMessages = None,
    conversation_id: ConversationId = None,
    noted_by: Annotated[str | None, "The name of the agent or model that writes the note."] = None,
    said_at: SaidAt = None,
    speaker: Speaker = None,
) -> NoteResult:
    """Lift a demand if the user's words clearly take it back. If not, the user is asked.

    `outcome`: kept (the demand is lifted), request (it waits for the user) or refused.
    """
    context = _context(memory, user_message, said_at, conversation_id, noted_by, speaker)
    if context.session:
        guard = memory.services.guard(memory.workspace_name)
        context.stopped_by = guard.stopped_before(context.session)
    actor = Actor("user", memory.actor.evidence, quote, context.session, context.noted_by)
    rules = memory.services.rules(memory.workspace_name)
    with rules.store.transaction(MESSAGE_WAIT):
        return keep.lift_demand(rules, quote, lifted, context, actor)


class BindingDemand(Struct, kw_only=True):
    """A demand that holds now, and what it stopped."""

    rule: str  # in the user's words
    tools: list[str]
    effect: Effect
    ids: list[str]  # of its rules, one for each tool
    session: str = ""  # the only conversation in which it holds; "": in all
    expires_at: Moment | None = None
    stopped: int = 0  # calls that it stopped or asked about
    last_stopped: Moment | None = None
    question: str = ""  # what the user typed that may take it back


@operation(rpc="memory.demands", reads_only=True)
def demands(
    memory: Memory,
    *,
    conversation_id: Annotated[
        str | None, "Include the demands that hold only in this conversation."
    ] = None,
) -> list[BindingDemand]:
    """Return what the user demands now, in their words, and what each demand stopped."""
    rules = memory.services.rules(memory.workspace_name)
    stops = rule_stops(rules.store, memory.workspace_name)
    found: dict[str, BindingDemand] = {}
    for rule in rules.all_rules(conversation_id or "").rules:
        if not rule.is_users:
            continue
        new = BindingDemand(rule=rule.rule, tools=[], effect=rule.effect, ids=[])
        demand = found.setdefault(text_key(rule.rule), new)
        demand.tools.append(rule.tool_name)
        demand.ids.append(rule.id)
        demand.session = rule.session
        demand.expires_at = rule.expires_at
        demand.question = rule.request.words if rule.request is not None else ""
        if (stop := stops.get(rule.id)) is not None and stop.last is not None:
            demand.stopped += stop.number
            demand.last_stopped = max(stop.last, demand.last_stopped or stop.last)
    return list(found.values())


def _context(
    memory: Memory,
    user_message: str | list[str] | None,
    said_at: list[datetime] | None,
    conversation_id: str | None,
    noted_by: str | None,
    speaker: Speaker,
) -> NoteContext:
    messages = [user_message] if isinstance(user_message, str) else user_message
    if said_at and len(said_at) != len(messages or ()):
        raise RequestError("said_at: expected one time for each user_message", "said_at")
    return NoteContext(
        user_messages=None if memory.actor.kind == "agent" else messages,
        said_at=said_at or (),
        session=conversation_id or memory.actor.session,
        noted_by=noted_by or "",
        is_guests=is_guest(speaker, memory.services.settings.session.speaker),
        evidence=memory.actor.evidence,
    )


def _kept_calls(memory: Memory, names: list[str]) -> list[Call]:
    """Calls of these tools that worked, newest first, without imported ones."""
    store = memory.services.store()
    windows = store.windows(memory.workspace_name, list(dict.fromkeys(names)))
    calls = [call for window in windows for call in window.calls]
    worked = [call for call in calls if call.failed is False and not call.imported]
    worked.sort(key=lambda call: call.create_time, reverse=True)
    return [(c.tool_name, c.input) for c in worked[:REPLAYED] if isinstance(c.input, dict)]
