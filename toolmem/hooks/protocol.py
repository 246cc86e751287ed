"""Read a payload as an event, and write an answer as JSON, in Claude Code's protocol.

`agents.py` says how each agent differs, and which version of it was checked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from toolmem.hooks.agents import Agent
from toolmem.hooks.outputs import read_json, read_output, text_in
from toolmem.models.decisions import Action

MAX_CONTEXT = 10_000  # characters
MAX_SETTINGS = 1_000_000  # bytes
_ASKING = ("default", "acceptEdits")  # Claude Code's modes in which it asks its user about calls
Kind = Literal[
    "session_start", "subagent_start", "prompt", "before_call", "after_call", "session_end"
]
KINDS: dict[str, Kind] = {
    "SessionStart": "session_start",
    "SubagentStart": "subagent_start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before_call",
    "PostToolUse": "after_call",
    "PostToolUseFailure": "after_call",
    "SessionEnd": "session_end",
}
_ID_KEYS = {"prompt": "prompt_id", "subagent_start": "agent_id"}  # else: tool_use_id


class Event(Struct, kw_only=True):
    """One event of an agent. Fields that the agent does not send are empty."""

    kind: Kind
    name: str  # as the agent calls it
    session: str
    cwd: str = ""
    project: str = ""  # the folder that the agent was started for
    transcript: str = ""
    key: str = ""  # the agent's id of the call, the prompt or the subagent
    prompt: str = ""  # what a person typed
    tool: str = ""  # of an MCP tool: its name at the server
    server: str = ""
    input: Any = None
    output: str = ""
    failed: bool | None = None  # None: unknown
    seconds: float | None = None  # duration of the call
    interrupted: bool = False
    asks_user: bool = False  # the agent is known to ask its user about calls


class Answer(Struct, kw_only=True):
    """The answer to an event."""

    action: Action = "allow"
    reason: str = ""
    context: str = ""  # for the model
    notice: str = ""  # for the user


def notice_of(messages: Iterable[str]) -> str:
    """Messages as a notice: a line each, without empty ones and repeats."""
    return "\n".join(f"toolmem: {each}" for each in dict.fromkeys(messages) if each)


def joined(*texts: str, by: str = "\n") -> str:
    """Join the texts that are not empty."""
    return by.join(filter(None, texts))


def read(agent: Agent, payload: Mapping[str, Any], environment: Mapping[str, str]) -> Event | None:
    """The event of a payload; None for events that toolmem does not handle."""
    given = {agent.rename.get(name, name): value for name, value in payload.items()}
    name = text_in(given, "hook_event_name")
    if not name:
        name = next((event for key, event in agent.unnamed_events.items() if key in given), "")
    claude_name = agent.events.get(name, "")
    if claude_name not in KINDS:
        return None
    kind = KINDS[claude_name]
    if agent.json_texts:
        given |= {key: read_json(given.get(key)) for key in ("tool_input", "tool_response")}
    parent = text_in(given, "parent_id")
    is_subagent = bool(parent or given.get("agent_id"))
    if is_subagent and kind == "session_start":
        kind = "subagent_start"
    key = text_in(given, _ID_KEYS.get(kind, "tool_use_id") if agent.call_ids else "timestamp")
    event = Event(
        kind=kind,
        name=name,
        session=parent or text_in(given, "session_id"),
        cwd=text_in(given, "cwd"),
        project=_project(agent, given, environment),
        transcript=text_in(given, "transcript_path"),
        key=" ".join(key.split()),
    )
    # The prompt of a subagent was written by the model.
    if kind == "prompt" and not is_subagent and given.get("source") in (None, "", "user"):
        prompt = text_in(given, "prompt")
        if agent.quotes_prompts and (quoted := re.fullmatch(r'"([^"]*)"', prompt)):
            prompt = quoted[1]
        from toolmem.rules.reader.pasted import typed  # takes long to load

        event.prompt = typed(prompt)
    if kind in ("before_call", "after_call"):
        event.tool, event.server = own_tool(agent, text_in(given, "tool_name"), given)
        event.input = given.get("tool_input")
    if given.get("permission_mode") in _ASKING:
        event.asks_user = not _answers_itself(event, environment)
    if kind == "after_call":
        event.output, event.failed = read_output(agent, claude_name, given, event.key)
        milliseconds: Any = given.get("duration_ms")
        if type(milliseconds) in (int, float) and 0 <= milliseconds < 1e12:
            event.seconds = milliseconds / 1000
        response = given.get("tool_response")
        stopped = isinstance(response, Mapping) and response.get("interrupted") is True
        aborted = event.output != "" and event.output == agent.aborted_output
        event.interrupted = given.get("is_interrupt") is True or stopped or aborted
    return event


def _answers_itself(event: Event, environment: Mapping[str, str]) -> bool:
    """Whether Claude Code's settings answer its permission prompts in place of a person."""
    home = environment.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    own = os.path.join(event.project or event.cwd, ".claude")
    files = [os.path.join(own, name) for name in ("settings.json", "settings.local.json")]
    for path in (*files, os.path.join(home, "settings.json")):
        try:
            with open(path, "rb") as file:
                found = json.loads(file.read(MAX_SETTINGS))
            hooks = found.get("hooks") or {}
            allowed = found.get("permissions") or {}
            is_allowed = any(_allows(entry, event) for entry in allowed.get("allow", ()))
            if hooks.get("PermissionRequest") or is_allowed:
                return True
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, AttributeError):
            return True  # the file cannot be read, and may answer them
    return False


def _allows(entry: str, event: Event) -> bool:
    """Whether a permission of Claude Code, such as `Bash(git push:*)`, may let a call run."""
    name, _, scope = entry.partition("(")
    server = f"mcp__{event.server}"
    own = (server, f"{server}__*", f"{server}__{event.tool}") if event.server else (event.tool,)
    begins = re.split(r"[:*)]", scope, maxsplit=1)[0].strip()
    is_shell = isinstance(event.input, Mapping) and "command" in event.input
    fits = not is_shell or begins in str(event.input["command"])
    return name == "*" or (name in own and fits)


def _project(agent: Agent, given: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    roots = given.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    folder = text_in(given, "project") or first or environment.get(agent.project_variable, "")
    return "" if folder == "/" else folder  # outside a repository


def own_tool(agent: Agent, name: str, given: Mapping[str, Any]) -> tuple[str, str]:
    """Return (tool, server) of an MCP tool, such as ("send", "mail"); other tools: (name, "")."""
    context = given.get("mcp_server") or given.get("mcp_context")
    server = context if isinstance(context, str) else ""
    if isinstance(context, Mapping):
        server = text_in(context, "name") or text_in(context, "server_name")
    return agent.names.split(name, server)


def write(agent: Agent, event: Event, answer: Answer) -> dict[str, Any]:
    """The answer as JSON with this agent's keys; {} if there is nothing to say."""
    notice = answer.notice if event.kind in agent.notice_at else ""
    message = {"systemMessage": notice} if notice else {}
    if event.kind == "before_call" and answer.action in ("ask", "deny"):
        return {**_stop_fields(agent, event, answer), **message}
    context = answer.context[:MAX_CONTEXT] if event.kind in agent.context_at else ""
    if agent.dialect == "plugin":
        if event.kind in agent.notice_in_context:
            context = joined(context, answer.notice, by="\n\n")
        texts = {"context": context, "notice": notice}
        return {name: text for name, text in texts.items() if text}
    if not context or event.name in agent.no_context_at:
        return message
    if agent.dialect == "cursor":
        return {"additional_context": context}
    fields: dict[str, Any] = {"additionalContext": context}
    if agent.dialect != "copilot":
        fields = {"hookSpecificOutput": {"hookEventName": event.name, **fields}}
    return {**fields, **message}


def _stop_fields(agent: Agent, event: Event, answer: Answer) -> dict[str, Any]:
    action = answer.action if agent.asks else "deny"
    reason = answer.reason or "toolmem: not run"
    fields = {"permissionDecision": action, "permissionDecisionReason": reason}
    inner: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": event.name, **fields}}
    by_dialect: dict[str, dict[str, Any]] = {
        "claude": inner,
        "copilot": {**fields, **inner},  # it reads both places
        "gemini": {"decision": "deny", "reason": reason},
        "goose": {"decision": "block", "reason": reason},
        "cursor": {
            "permission": "deny",
            "user_message": joined(reason, answer.notice, by=" "),
            "agent_message": reason,
        },
        "plugin": {"stop": reason},
    }
    return by_dialect[agent.dialect]
