"""What agents share that speak Claude Code's protocol of hooks: payloads, answers, settings.

An agent's own file says which of its events are which and what differs; see `claude_code.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of

TIMEOUT = 10  # seconds; an agent that waits that long goes on without us
OWN_MODULE = "toolmem.hosts"
_OWN_COMMANDS = ("toolmem-hook", "toolmem hook ")

EVENTS: Mapping[str, EventKind] = {
    "SessionStart": "session_start",
    "SubagentStart": "subagent_start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before_call",
    "PostToolUse": "after_call",
    "PostToolUseFailure": "after_call",
    "Stop": "turn_end",
    "PreCompact": "compaction",
    "SessionEnd": "session_end",
}
MATCHED = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure"))  # events that are asked for by tool


# ---------------------------------------------------------------- events


def read_event(
    payload: Mapping[str, Any],
    *,
    events: Mapping[str, EventKind] = EVENTS,
    own_tools: Collection[str] = (),
    project: str = "",
) -> HookEvent | None:
    """The event of a payload in Claude Code's form; None where it is none of `events`. Nothing raises."""
    name = text_in(payload, "hook_event_name")
    kind = events.get(name)
    if kind is None or (kind == "turn_end" and goes_on(payload)):
        return None
    session = text_in(payload, "session_id")
    tool, server = mcp_tool(text_in(payload, "tool_name"), own_tools, server_of(payload.get("mcp_server")))
    told = payload.get("tool_response", payload.get("tool_output"))
    is_call = kind in {"before_call", "after_call"}
    key = (
        text_in(payload, "tool_use_id")
        if is_call
        else text_in(payload, "prompt_id" if kind in {"prompt", "turn_end"} else "agent_id")
    )
    return HookEvent(
        kind=kind,
        name=name,
        session_id=session,
        cwd=text_in(payload, "cwd"),
        project=project,
        transcript=text_in(payload, "transcript_path"),
        key=key,
        origin=text_in(payload, "source") if kind == "session_start" else "",
        prompt=_typed_prompt(payload) if kind == "prompt" else "",
        whole=text_in(payload, "prompt") if kind == "prompt" else "",
        tool=tool,
        server=server,
        arguments=payload.get("tool_input"),
        call_id=call_id_of(session, key) if is_call else "",
        output=text_in(payload, "error") or response_text(told),
        failed=_failed(name, told) if kind == "after_call" else None,
        seconds=_seconds(payload.get("duration_ms")),
        mode=text_in(payload, "permission_mode"),
        subagent=bool(text_in(payload, "agent_id")),
        interrupted=payload.get("is_interrupt") is True or _flag(told, "interrupted"),
    )


def goes_on(payload: Mapping[str, Any]) -> bool:
    """Of a turn's end: a hook has kept it from ending before, or it is a subagent's."""
    return payload.get("stop_hook_active") is True or bool(payload.get("agent_id") or payload.get("parent_agent_id"))


def text_in(payload: Mapping[str, Any], name: str) -> str:
    """A field that is text; "" where it is not there, or something else."""
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def server_of(given: Any) -> str:
    """The MCP server, as `mcp_server` of a payload names it."""
    return text_in(given, "name") if isinstance(given, Mapping) else given if isinstance(given, str) else ""


def mcp_tool(name: str, own_tools: Collection[str] = (), server: str = "", prefix: str = "mcp__") -> tuple[str, str]:
    """The server's own name of a tool, and the server: `mcp__mail__send_email` is `send_email` of `mail`.

    A name is never shortened to one of the agent's own tools: what holds for these is not about it.
    """
    if not name.startswith(prefix) or name in own_tools:
        return name, server
    rest = name.removeprefix(prefix)
    shown = "".join(each if each.isalnum() or each in "_-" else "_" for each in server)
    known = server and rest.startswith(f"{shown}__")
    at, _, tool = (shown, "", rest.removeprefix(f"{shown}__")) if known else rest.partition("__")
    if not at or not tool or tool in own_tools:
        return name, server
    return tool, server or at


def response_text(value: Any) -> str:
    """What a tool answered, as the model reads it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return "\n".join(_block_text(each) for each in value)
    if isinstance(value, Mapping):
        if isinstance(value.get("stdout"), str):
            return "\n".join(text for name in ("stdout", "stderr") if (text := text_in(value, name)))
        if "structuredPatch" in value and isinstance(value.get("filePath"), str):  # beside it stand the whole files
            return f"{'Created' if value.get('type') == 'create' else 'Updated'}: {value['filePath']}"
        held = value["file"] if isinstance(value.get("file"), Mapping) else value
        if isinstance(held.get("content"), str | list):
            return response_text(held["content"])
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _block_text(block: Mapping[str, Any]) -> str:
    return text_in(block, "text") or f"[{text_in(block, 'type') or 'part'}]"


def _failed(event: str, response: Any) -> bool:
    return event == "PostToolUseFailure" or _flag(response, "is_error") or _flag(response, "isError")


def _flag(value: Any, name: str) -> bool:
    return isinstance(value, Mapping) and value.get(name) is True


def _seconds(milliseconds: Any) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < 1e12 else None


def _typed_prompt(payload: Mapping[str, Any]) -> str:
    """What a person typed; "" where a machine speaks."""
    if payload.get("source") not in (None, "", "user"):
        return ""
    from toolmem.hosts.typed_prompts import typed  # its patterns take their time, which no call waits for

    return typed(text_in(payload, "prompt"))


# ---------------------------------------------------------------- answers


def write_answer(event: HookEvent, answer: HookAnswer, *, asks: bool = True, notices: bool = True) -> dict[str, Any]:
    """The answer in Claude Code's form. `asks`: the agent can ask its user; else what it would ask about is denied.

    `notices`: it shows its user a `systemMessage`.
    """
    told: dict[str, Any] = {}
    if event.kind == "turn_end":
        return {"decision": "block", "reason": answer.reason} if answer.action == "ask" else {}
    if event.kind == "before_call" and answer.action in {"deny", "ask"}:
        told["permissionDecision"] = "ask" if answer.action == "ask" and asks else "deny"
        told["permissionDecisionReason"] = answer.reason or "toolmem: not run"
    elif event.kind == "before_call" and answer.approved and asks:
        told["permissionDecision"] = "allow"
        told["permissionDecisionReason"] = answer.reason
    elif answer.context and event.kind not in {"compaction", "session_end"}:
        told["additionalContext"] = answer.context
    written: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": event.name, **told}} if told else {}
    if answer.notice and notices:
        written["systemMessage"] = answer.notice
    return written


# ---------------------------------------------------------------- settings


def add_hooks(
    settings: Mapping[str, Any],
    command: Sequence[str],
    *,
    events: Collection[str] = tuple(EVENTS),
    timeout: int = TIMEOUT,
    exec_form: bool = True,
) -> dict[str, Any]:
    """The settings with one hook of ours for each event. `exec_form`: program and arguments, which no shell reads."""
    kept = remove_hooks(settings)
    before = kept.get("hooks", {})
    if not isinstance(before, Mapping):
        raise ValueError(f"hooks: expected an object, got {type(before).__name__}")
    hooks = dict(before)
    for event in events:
        entries = hooks.get(event, [])
        if not isinstance(entries, list):
            raise ValueError(f"hooks.{event}: expected a list, got {type(entries).__name__}")
        hooks[event] = [*entries, _entry(event, command, timeout, exec_form)]
    return {**kept, "hooks": hooks}


def _entry(event: str, command: Sequence[str], timeout: int, exec_form: bool) -> dict[str, Any]:
    hook: dict[str, Any] = {"type": "command"}
    if exec_form:
        hook |= {"command": command[0], "args": list(command[1:])}
    else:
        from shlex import join

        hook["command"] = join(command)
    if event != "SessionEnd":  # what an agent gives that one is less
        hook["timeout"] = timeout
    if event == "PreToolUse" and "closed" in command:
        hook["onFailure"] = "block"
    matched = {"matcher": "*"} if event in MATCHED else {}
    return {**matched, "hooks": [hook]}


def remove_hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without our hooks, and without what only held them."""
    hooks = settings.get("hooks")
    if not isinstance(hooks, Mapping):
        return dict(settings)
    left = {}
    for event, entries in hooks.items():
        kept = [rest for each in entries if (rest := _without_ours(each)) is not None] if _is_list(entries) else entries
        if kept or kept == entries:
            left[event] = kept
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    if not left and left != hooks:
        return rest
    return {name: left if name == "hooks" else value for name, value in settings.items()}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _without_ours(entry: Any) -> Any:
    """One entry of an event; None where ours was all that it held."""
    hooks = entry.get("hooks") if isinstance(entry, Mapping) else None
    if not isinstance(hooks, list) or not any(map(is_own_hook, hooks)):
        return entry
    left = [each for each in hooks if not is_own_hook(each)]
    return {**entry, "hooks": left} if left else None


def is_own_hook(hook: Any) -> bool:
    """Does a hook run ours?"""
    if not isinstance(hook, Mapping):
        return False
    args = hook.get("args")
    words = [each for each in args if isinstance(each, str)] if isinstance(args, list) else []
    line = " ".join([text_in(hook, "command") or text_in(hook, "bash"), *words]) + " "
    return OWN_MODULE in line or any(own in line for own in _OWN_COMMANDS)
