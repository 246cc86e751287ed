"""OpenCode: a plugin in its process, `plugins/opencode.js`, that tells each event as JSON and does what is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts.claude_shaped import text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, Scope
from toolmem.hosts.payloads import milliseconds_in, plugin_text, tools_by_class
from toolmem.hosts.typed_prompts import typed

_EVENTS: Mapping[str, EventKind] = {
    "session.start": "session_start",
    "chat.message": "prompt",
    "tool.execute.before": "before_call",
    "tool.execute.after": "after_call",
    "tool.error": "after_call",
    "session.compacting": "compaction",
}


class OpenCode(Host):
    """What is put before the model stands in the system prompt of each request, so that no compaction loses it."""

    name = "opencode"
    title = "OpenCode"
    verified = "1.18.33"
    notices_at = ("prompt",)
    tools = tools_by_class(
        shell="bash",
        read="read",
        write="write edit multiedit patch apply_patch",
        search="list glob grep codesearch lsp",
        fetch="webfetch",
        web="websearch",
        none="task todowrite todoread skill question invalid execute plan_enter plan_exit",
    )
    cannot = (
        "A plugin cannot ask the user about a call: what toolmem would ask about is denied, and the model told to ask.",
        "A plugin that cannot start toolmem within ten seconds lets the call run.",
        "It tells no end of a session: what its calls teach is read by the next command of toolmem.",
        "It keeps its sessions in a database that `doctor` does not read: only receipts are counted.",
        "In its experimental code mode, where the model calls MCP tools from a script, plugins are not told of these.",
    )
    after_install = "Start OpenCode anew: it loads plugins when it starts."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "event")
        kind = _EVENTS.get(name)
        if kind is None:
            return None
        session, call = text_in(payload, "sessionID"), text_in(payload, "callID")
        tool, server = self._tool(text_in(payload, "tool"), text_in(payload, "server"))
        project = text_in(payload, "project")
        return HookEvent(
            kind=kind,
            name=name,
            session_id=session,
            cwd=text_in(payload, "cwd"),
            project="" if project == "/" else project,  # outside a repository
            key=call_id_of(session, call) or text_in(payload, "key"),
            origin="startup" if kind == "session_start" else "",
            prompt=typed(_unquoted(text_in(payload, "prompt"))) if kind == "prompt" else "",
            whole=_unquoted(text_in(payload, "prompt")) if kind == "prompt" else "",
            tool=tool,
            server=server,
            arguments=payload.get("args"),
            call_id=call_id_of(session, call),
            output=text_in(payload, "error") or text_in(payload, "output"),
            failed=_failed(name, payload.get("exit")) if kind == "after_call" else None,
            seconds=milliseconds_in(payload, "milliseconds"),
            interrupted=text_in(payload, "error") == "Tool execution aborted",
        )

    def _tool(self, name: str, server: str) -> tuple[str, str]:
        own = name[len(server) + 1 :] if server else ""
        return (own, server) if own and own not in self.tools and name not in self.tools else (name, server)

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        """Its server is told with a call alone: of a tool of one, that was called before."""
        ends = [name for name in known if tool.endswith(f"_{name}") and name not in self.tools]
        return tool if tool in self.tools else max(ends, key=len, default=tool)

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            return {"stop": answer.reason or "toolmem: not run"}
        told = {"context": answer.context if event.kind in self.context_at else "", "notice": answer.notice}
        return {name: text for name, text in told.items() if text}

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        users = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
        folder = users if scope == "user" else project / ".opencode"
        return {folder / "plugin" / "toolmem.js": plugin_text("opencode.js", command)}

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        return {
            "event": "tool.execute.before",
            "sessionID": session_id,
            "cwd": cwd,
            "tool": "read",
            "callID": f"call_{session_id}",
            "args": {"filePath": "toolmem-doctor"},
        }


def _failed(event: str, exit_code: Any) -> bool:
    return event == "tool.error" or (isinstance(exit_code, int) and exit_code != 0)


def _unquoted(prompt: str) -> str:
    """`opencode run "never push"` puts quotation marks around what was typed."""
    inner = prompt[1:-1]
    return inner if len(prompt) > 1 and prompt == f'"{inner}"' and '"' not in inner else prompt


HOST = OpenCode()
