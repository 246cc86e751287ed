"""What agents tell of a step and what they are answered, in one form for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from toolmem.late_dataclasses import dataclass

EventKind = Literal[
    "session_start", "subagent_start", "prompt", "before_call", "after_call", "turn_end", "compaction", "session_end"
]
Action = Literal["allow", "advise", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One event of an agent. What it does not tell is empty."""

    kind: EventKind
    name: str  # as the agent calls the event
    session_id: str
    cwd: str = ""  # where the call would run
    project: str = ""  # the folder that the agent was started for, where the event or the environment tells it
    transcript: str = ""  # path of the session's recording
    key: str = ""  # what the agent calls this event alone, so that it is known when two hooks are told of it
    origin: str = ""  # of a session's start: startup, resume, clear, compact, ...
    prompt: str = ""  # what the user typed; "" where nobody did (a machine's prompt, an envelope of a command)
    whole: str = ""  # the prompt as the agent handed it over, with what machines put beside the user's words
    tool: str = ""  # the name under which the call is kept: of an MCP tool the server's own
    server: str = ""  # its MCP server
    arguments: Any = None
    call_id: str = ""  # of the record: one call that several roads tell of is one call
    output: str = ""
    failed: bool | None = None  # None: the agent does not say
    seconds: float | None = None
    mode: str = ""  # in which the agent asks its user, or does not: default, plan, bypassPermissions, ...
    subagent: bool = False  # one started by the agent did it, as far as it is told
    interrupted: bool = False  # by the user: says nothing about the call


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What the agent is answered."""

    action: Action = "allow"
    # Why a call is stopped or asked about: the model reads it on deny, the user on ask. At a turn's end (ask): what the
    # model is asked before the turn is over.
    reason: str = ""
    context: str = ""  # put before the model
    notice: str = ""  # told to the user
    approved: bool = False  # a call that allowed runs without a question, where the agent lets a hook say so

    @property
    def is_empty(self) -> bool:
        return not (self.reason or self.context or self.notice)


SILENT = HookAnswer()
Output = Mapping[str, Any]  # what is written as JSON; {} answers nothing


def call_id_of(session_id: str, tool_use_id: str) -> str:
    """The id under which a call is kept, whoever tells of it: the model's own, within its session where it is short."""
    if not tool_use_id or tool_use_id.startswith("toolu_"):
        return tool_use_id
    return f"{session_id}/{tool_use_id}" if session_id else tool_use_id
