"""Cursor: its hooks as its documentation describes them; not run here, for it is no program that can be scripted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts.claude_shaped import is_own_hook, response_text, text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, Scope
from toolmem.hosts.payloads import milliseconds_in, tools_by_class
from toolmem.hosts.typed_prompts import typed

_EVENTS: Mapping[str, EventKind] = {
    "sessionStart": "session_start",
    "beforeSubmitPrompt": "prompt",
    "preToolUse": "before_call",
    "postToolUse": "after_call",
    "postToolUseFailure": "after_call",
    "preCompact": "compaction",
    "sessionEnd": "session_end",
}
_SECONDS = 10
_SERVERS = "MCP:"  # before the name of an MCP server's tool


class Cursor(Host):
    """`preToolUse` alone decides: the older `beforeShellExecution` and its like would tell the same calls again."""

    name = "cursor"
    title = "Cursor"
    verified = "its documentation of September 2026, not run"
    context_at = ("session_start", "after_call")
    tools = tools_by_class(
        shell="Shell",
        read="Read",
        write="Write Edit StrReplace TabWrite",
        search="Grep Glob LS SemanticSearch",
        fetch="WebFetch",
        web="WebSearch",
        delete="Delete",
        none="Task TodoWrite ReadLints AskQuestion SwitchMode",
    )
    cannot = (
        "It does not keep to an answer that asks before a tool runs: what toolmem would ask about is denied.",
        "What you type cannot be answered: a demand is kept and binds, and only `toolmem rules list` tells you so.",
        "Nothing can be put before the model ahead of a call, nor after one that failed.",
        "A compaction is announced, and nothing can be put before the model after it: the rules bind all the same.",
        (
            "A hook that cannot start, or that takes longer than its ten seconds, lets the call run; `failClosed` is "
            "set where you install with `--on-error closed`."
        ),
        "Its recordings lie in a database that `doctor` does not read: only receipts are counted.",
        "All of this was read from its documentation; nothing of it was seen in the program.",
    )
    after_install = "Hooks of a project run only in a workspace that you trust; see Settings, Hooks."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "hook_event_name")
        kind = _EVENTS.get(name)
        if kind is None:
            return None
        session = text_in(payload, "conversation_id") or text_in(payload, "session_id")
        session = text_in(payload, "parent_conversation_id") or session
        call = call_id_of(session, " ".join(text_in(payload, "tool_use_id").split()))  # two ids, a line each
        output, failed = _outcome(name, payload)
        roots = payload.get("workspace_roots")
        first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
        own = text_in(payload, "tool_name").removeprefix(_SERVERS)
        return HookEvent(
            kind=kind,
            name=name,
            session_id=session,
            cwd=text_in(payload, "cwd") or first,
            project=first or environment.get("CURSOR_PROJECT_DIR", ""),
            transcript=text_in(payload, "transcript_path"),
            key=call or (text_in(payload, "generation_id") if kind == "prompt" else ""),
            origin="startup" if kind == "session_start" else "",
            prompt=typed(text_in(payload, "prompt")) if kind == "prompt" else "",
            whole=text_in(payload, "prompt") if kind == "prompt" else "",
            tool=text_in(payload, "tool_name") if own in self.tools else own,
            subagent=bool(text_in(payload, "parent_conversation_id")),
            arguments=_object(payload.get("tool_input")),
            call_id=call,
            output=output,
            failed=failed if kind == "after_call" else None,
            seconds=milliseconds_in(payload, "duration"),
            interrupted=payload.get("is_interrupt") is True,
        )

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        own = tool.removeprefix(_SERVERS)
        return tool if own in self.tools else own

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        """Never `allow`: that would approve what Cursor itself would ask about."""
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            reason = answer.reason or "toolmem: not run"
            return {"permission": "deny", "user_message": reason, "agent_message": reason}
        if answer.context and event.kind in self.context_at and event.name != "postToolUseFailure":
            return {"additional_context": answer.context}
        return {}

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        return (project if scope == "project" else home) / ".cursor" / "hooks.json"

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        from shlex import join

        kept = self.remove_hooks(settings)
        before = kept.get("hooks", {})
        if not isinstance(before, Mapping):
            raise ValueError(f"hooks: expected an object, got {type(before).__name__}")
        hooks = dict(before)
        for event in _EVENTS:
            entries = hooks.get(event, [])
            if not isinstance(entries, list):
                raise ValueError(f"hooks.{event}: expected a list, got {type(entries).__name__}")
            closed = {"failClosed": True} if event == "preToolUse" and "closed" in command else {}
            hooks[event] = [*entries, {"command": join(command), "timeout": _SECONDS, **closed}]
        return {"version": 1, **kept, "hooks": hooks}

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        hooks = settings.get("hooks")
        if not isinstance(hooks, Mapping):
            return dict(settings)
        left = {}
        for event, entries in hooks.items():
            kept = [each for each in entries if not is_own_hook(each)] if isinstance(entries, list) else entries
            if kept or kept == entries:
                left[event] = kept
        if left or left == hooks:
            return {**settings, "hooks": left}
        rest = {name: value for name, value in settings.items() if name != "hooks"}
        return {} if rest == {"version": 1} else rest

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        call = {"tool_name": "Read", "tool_input": {"file_path": "toolmem-doctor"}, "tool_use_id": f"call_{session_id}"}
        return {"hook_event_name": "preToolUse", "conversation_id": session_id, "cwd": cwd, **call}


def _object(value: Any) -> Any:
    """Some events hold arguments and results as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _outcome(name: str, payload: Mapping[str, Any]) -> tuple[str, bool]:
    if name == "postToolUseFailure":
        return text_in(payload, "error_message"), True
    told = _object(payload.get("tool_output"))
    if isinstance(told, Mapping):
        code = told.get("exitCode")
        failed = told.get("isError") is True or (isinstance(code, int) and code != 0)
        return text_in(told, "output") or response_text(told), failed
    return response_text(told), False


HOST = Cursor()
