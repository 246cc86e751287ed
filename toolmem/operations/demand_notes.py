"""The user's demands, as the model that reads the user's words writes them down, and takes them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolmem.demands.contract import contract, listed_contract
from toolmem.light_models import Effect, ToolMemoryRule
from toolmem.operations.operation import DEFAULT_WORKSPACE, AgentTool, rpc_operation
from toolmem.protocols import Services

if TYPE_CHECKING:
    from toolmem.rules.noted_demands import NotedDemand

Alternatives = Sequence[Mapping[str, Any]]
Examples = Sequence[Mapping[str, Any]]
_ROAD = ("user_message", "conversation_id", "tools_available", "noted_by")


class NoteProblem(BaseModel):
    """What a model is to change in a note."""

    field: str  # the place in the note
    problem: str


class DemandNoted(BaseModel):
    """What became of a note."""

    outcome: Literal["kept", "proposed", "refused"]
    told: str = ""  # what to tell the user, in one line
    rules: list[ToolMemoryRule] = Field(default_factory=list)  # as stored, one for each tool or class of tools
    why: str = ""  # it only waits, or does less than the note says
    problems: list[NoteProblem] = Field(default_factory=list)

    def __str__(self) -> str:
        return self.told or "; ".join(f"{each.field}: {each.problem}" for each in self.problems)


@rpc_operation(
    "memory.demand_note",
    flow="note_demand",
    agent=AgentTool("note_demand", contract(), without=_ROAD, tells_arguments=True, listed=listed_contract()),
)
async def note_demand(
    services: Services,
    /,
    quote: Annotated[str, "The user's words, verbatim."],
    effect: Annotated[Effect, "What becomes of such calls."],
    *,
    lasting: Annotated[Literal["always", "session"], "How long it binds."] = "always",
    tools: Annotated[Sequence[str] | None, "Tools that could break it, by name or class."] = None,
    rule: Annotated[str | None, "The demand in the model's words; shown where people look, never to a model."] = None,
    when: Annotated[Alternatives | None, "Which calls are meant: alternatives of tests."] = None,
    unless: Annotated[Alternatives | None, "Which of them are let through."] = None,
    stops: Annotated[Examples | None, "Example calls that must be stopped."] = None,
    passes: Annotated[Examples | None, "Near example calls that must pass."] = None,
    where: Annotated[Literal["here", "everywhere"], "In this workspace, or in all."] = "here",
    until: Annotated[str | None, "A date on which it ends."] = None,
    replaces: Annotated[str | None, "An earlier demand that this one changes."] = None,
    user_message: Annotated[str | None, "What the user said in this turn; the quote must stand in it."] = None,
    conversation_id: Annotated[str | None, "Where a demand of this session binds."] = None,
    tools_available: Annotated[Sequence[Any] | None, "All tools of the agent, as names or JSON schemas."] = None,
    noted_by: Annotated[str | None, "The model or agent that wrote the note."] = None,
    workspace_id: str | None = None,
) -> DemandNoted:
    """Keep what the user demands as rules that calls are held against; the note is checked against the user's words.

    Nothing that the user did not say binds: without `user_message`, and where agents are held to the store, the note
    waits for the user's approval.
    """
    from toolmem.ops import NoteDemandOp
    from toolmem.ops.note_demand import noted_demand

    named: dict[str, Any] = {"quote": quote, "effect": effect, "lasting": lasting, "tools": tools, "rule": rule}
    named |= {"when": when, "unless": unless, "stops": stops, "passes": passes}
    named |= {"where": where, "until": until, "replaces": replaces}
    named |= {"user_message": user_message, "conversation_id": conversation_id}
    named |= {"tools_available": tools_available, "noted_by": noted_by}
    given = {name: value for name, value in named.items() if value is not None}
    return as_told(await noted_demand(services, NoteDemandOp(), workspace_id or DEFAULT_WORKSPACE, given))


@rpc_operation(
    "memory.demand_lift",
    flow="lift_demand",
    agent=AgentTool(
        "lift_demand",
        "The user takes an earlier demand back. What is not sure of their words is proposed to them.",
        without=("user_message", "conversation_id"),
    ),
)
async def lift_demand(
    services: Services,
    /,
    quote: Annotated[str, "Their words."],
    lifted: Annotated[str, "The earlier demand in a few words, or its id."],
    *,
    user_message: Annotated[str | None, "What the user said in this turn; the quote must stand in it."] = None,
    conversation_id: Annotated[str | None, "Of the conversation in which it was said."] = None,
    workspace_id: str | None = None,
) -> DemandNoted:
    """Let a rule hold no longer where the user's own words surely say so; else propose it to the user."""
    from toolmem.ops import LiftDemandOp
    from toolmem.ops.lift_demand import lifted_demand

    named = {"quote": quote, "lifted": lifted, "user_message": user_message, "conversation_id": conversation_id}
    given = {name: value for name, value in named.items() if value is not None}
    return as_told(await lifted_demand(services, LiftDemandOp(), workspace_id or DEFAULT_WORKSPACE, given))


def as_told(noted: NotedDemand) -> DemandNoted:
    """What became of a note, as it is answered."""
    return DemandNoted(
        outcome=noted.outcome,
        told=noted.told,
        rules=noted.rules,
        why=noted.why,
        problems=[NoteProblem(field=place, problem=told) for place, told in noted.problems],
    )
