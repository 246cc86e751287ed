"""Goose: a plugin folder with hooks, as its documentation describes it; the program was not to be had here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts.claude_shaped import response_text, text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, Scope
from toolmem.hosts.payloads import tools_by_class
from toolmem.hosts.typed_prompts import typed

_EVENTS: Mapping[str, EventKind] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "before_call",
    "PostToolUse": "after_call",
    "PostToolUseFailure": "after_call",
    "SessionEnd": "session_end",
}
_SECONDS = 10
_ABOUT = "What the user demands and what failed before, held against each call."


class Goose(Host):
    """It takes a denial from a hook, and nothing else."""

    name = "goose"
    title = "Goose"
    verified = "its documentation of October 2026, not run"
    context_at = ()
    tools = tools_by_class(
        shell="developer__shell",
        read="developer__read_image",
        write="developer__write developer__edit",
        search="developer__tree",
    )
    cannot = (
        "Its hooks can stop a call and nothing else: no text of toolmem reaches the model, neither rules nor advice.",
        "It cannot ask its user about a call: what toolmem would ask about is denied, and the model told to ask.",
        "It tells of no compaction, and of a call that ended neither its output nor its duration in its documentation.",
        (
            "A hook that cannot start, or that takes longer than its ten seconds, lets the call run; `on_failure: "
            "block` is set where you install with `--on-error closed`."
        ),
        "Its recordings lie in a database that `doctor` does not read: only receipts are counted.",
        "All of this was read from its documentation; nothing of it was seen in the program.",
    )
    after_install = "Start Goose anew: it looks for plugins when it starts."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "event")
        kind = _EVENTS.get(name)
        if kind is None:
            return None
        session = text_in(payload, "session_id")
        call = call_id_of(session, text_in(payload, "tool_call_id"))
        tool, server = self._tool(text_in(payload, "tool_name"))
        told = payload.get("tool_output", payload.get("tool_response"))
        return HookEvent(
            kind=kind,
            name=name,
            session_id=session,
            cwd=text_in(payload, "working_dir"),
            key=call,
            origin="startup" if kind == "session_start" else "",
            prompt=typed(text_in(payload, "message")) if kind == "prompt" else "",
            whole=text_in(payload, "message") if kind == "prompt" else "",
            tool=tool,
            server=server,
            arguments=payload.get("tool_input"),
            call_id=call,
            output=text_in(payload, "error") or response_text(told),
            failed=name == "PostToolUseFailure" if kind == "after_call" else None,
        )

    def _tool(self, name: str) -> tuple[str, str]:
        """An extension's tool is `extension__tool` here."""
        server, _, own = name.partition("__")
        return (own, server) if server and own and own not in self.tools and name not in self.tools else (name, "")

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return self._tool(tool)[0]

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            return {"decision": "block", "reason": answer.reason or "toolmem: not run"}
        return {}

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        from shlex import join

        folder = (project if scope == "project" else home) / ".agents" / "plugins" / "toolmem"
        hook = {"type": "command", "command": join(command), "timeout": _SECONDS}
        strict = {**hook, "on_failure": "block"} if "closed" in command else hook
        hooks = {event: [{"hooks": [strict if event == "PreToolUse" else hook]}] for event in _EVENTS}
        return {
            folder / "plugin.json": _text({"name": "toolmem", "version": "1.0.0", "description": _ABOUT}),
            folder / "hooks" / "hooks.json": _text({"hooks": hooks}),
        }

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        call = {"tool_name": "developer__tree", "tool_input": {"path": "toolmem-doctor"}}
        told = {"event": "PreToolUse", "session_id": session_id, "working_dir": cwd}
        return {**told, **call, "tool_call_id": f"call_{session_id}"}


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


HOST = Goose()
