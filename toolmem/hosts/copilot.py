"""GitHub Copilot CLI: its hooks in the form that Claude Code's have, its recordings of sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts.claude_shaped import goes_on, response_text, text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope
from toolmem.hosts.payloads import json_object, moment_key, newest, object_in, tools_by_class
from toolmem.hosts.typed_prompts import typed
from toolmem.late import late_pattern

# Names in capitals: events under these have Claude Code's payload and names of tools; in small letters others.
_EVENTS: Mapping[str, EventKind] = {
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
_SECONDS = 10
# Its own names of tools, which its recordings have, and what hooks call these.
_SHOWN = {
    "bash": "Bash",
    "powershell": "PowerShell",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "task": "Agent",
}
_SHELL_ENDING = late_pattern(
    r"\n?<(?:shellId: [^<>\n]{1,40} )?(?:completed|exited) with exit code (-?\d{1,9})>\s{0,4}\Z"
)
_LONGEST_ENDING = 200
_MCP = late_pattern(r"(github-mcp-server|[^-]+)-(.+)")
_GUIDANCE = '\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:'  # what hooks added


class Copilot(Host):
    """A hook of its own that fails denies every call: ours ends well whatever happens."""

    name = "copilot"
    title = "GitHub Copilot CLI"
    verified = "1.0.102"
    notices_at = ("prompt",)
    asks = True
    call_ids = False
    tools = tools_by_class(
        shell="Bash PowerShell bash powershell write_bash",
        read="Read view",
        write="Write Edit create edit apply_patch",
        search="Grep Glob grep glob",
        fetch="WebFetch web_fetch",
        web="WebSearch web_search",
        none=(
            "Agent task read_bash stop_bash list_bash read_agent list_agents write_agent skill sql "
            "session_store_sql fetch_copilot_cli_documentation ask_user report_intent task_complete store_memory"
        ),
    )
    cannot = (
        "It shows its user no notice of a hook: what was kept is told to the model, which can pass it on.",
        "Without a terminal (`-p`), and in the cloud, nobody can be asked: it denies what toolmem asks about.",
        "Its events tell no id of a call: a call that ended is known by its tool and arguments.",
        "It calls an MCP tool `server-tool`: where a server's name has a hyphen, what follows it counts as the tool's.",
        "A hook that takes longer than its ten seconds lets the call run; one that cannot start denies every call.",
        "Hooks of a repository run only where its folder is trusted; those in the home folder run everywhere.",
        (
            "It also reads hooks from Claude Code's `.claude/settings.json`: where these are toolmem's too, each event "
            "is told twice, under two ids."
        ),
    )
    after_install = "Copilot runs a repository's hooks only where you trust its folder: it asks when it starts there."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "hook_event_name") or ("SubagentStart" if "agentName" in payload else "")
        kind = _EVENTS.get(name)
        if kind is None or (kind == "turn_end" and goes_on(payload)):
            return None
        parent = text_in(payload, "parent_agent_id")  # of a subagent: what it is told, and does, belongs to the session
        tool, server = self._tool(text_in(payload, "tool_name"))
        output, failed = _outcome(name, payload)
        return HookEvent(
            kind=kind,
            name=name,
            session_id=parent or text_in(payload, "session_id") or text_in(payload, "sessionId"),
            cwd=text_in(payload, "cwd"),
            project=environment.get("COPILOT_PROJECT_DIR", ""),
            transcript=text_in(payload, "transcript_path") or text_in(payload, "transcriptPath"),
            key=moment_key(payload.get("timestamp"), tool, payload.get("tool_input")),
            origin=text_in(payload, "source").replace("new", "startup") if kind == "session_start" else "",
            prompt=typed(text_in(payload, "prompt")) if kind == "prompt" and not parent else "",
            whole=text_in(payload, "prompt") if kind == "prompt" else "",
            tool=tool,
            server=server,
            subagent=bool(parent),
            arguments=payload.get("tool_input"),
            output=output,
            failed=failed if kind == "after_call" else None,
        )

    def _tool(self, name: str) -> tuple[str, str]:
        """A tool of an MCP server is `server-tool` here."""
        server, own = found.groups() if (found := _MCP.fullmatch(name)) else ("", "")
        if own and own not in self.tools and name not in self.tools:
            return own, server
        return _SHOWN.get(name, name), ""

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return self._tool(tool)[0]

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            decision = {
                "permissionDecision": answer.action,
                "permissionDecisionReason": answer.reason or "toolmem: not run",
            }
            return {**decision, "hookSpecificOutput": {"hookEventName": event.name, **decision}}
        if event.kind == "turn_end":
            return {"decision": "block", "reason": answer.reason} if answer.action == "ask" else {}
        told = "\n\n".join(filter(None, (answer.context, answer.notice if event.kind == "prompt" else "")))
        return {"additionalContext": told} if told and event.kind in self.context_at else {}

    # -- a file of hooks that is ours alone

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        folder = _folder(home, environment) / "hooks" if scope == "user" else project / ".github" / "hooks"
        hook = {"type": "command", "exec": command[0], "args": command[1:], "timeoutSec": _SECONDS}
        hooks = {"version": 1, "hooks": {event: [hook] for event in _EVENTS}}
        return {folder / "toolmem.json": json.dumps(hooks, indent=2, ensure_ascii=False) + "\n"}

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        call = {"tool_name": "Read", "tool_input": {"path": "toolmem-doctor"}}
        return {"hook_event_name": "PreToolUse", "session_id": session_id, "timestamp": "", "cwd": cwd, **call}

    # -- recordings

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        """A session says in its first line where it was begun."""
        for events in newest((_folder(home, environment) / "session-state").glob("*/events.jsonl")):
            with events.open(encoding="utf-8", errors="replace") as lines:
                began = object_in(json_object(lines.readline(1_000_000)), "data")
            context = object_in(began, "context")
            if str(project) in (text_in(context, "cwd"), text_in(context, "gitRoot")):
                yield text_in(began, "sessionId") or events.parent.name, events

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        session = ""
        begun: dict[str, tuple[Mapping[str, Any], str]] = {}
        for line in transcript:
            event = json_object(line) if '"tool.execution_' in line or '"session.start"' in line else {}
            data, kind = object_in(event, "data"), text_in(event, "type")
            if kind == "session.start":
                session = session or text_in(data, "sessionId")
            elif kind == "tool.execution_start":
                begun[text_in(data, "toolCallId")] = data, text_in(event, "timestamp")
            elif kind == "tool.execution_complete" and text_in(data, "toolCallId") in begun:
                yield self._recorded(session, *begun.pop(text_in(data, "toolCallId")), data)

    def _recorded(self, session: str, start: Mapping[str, Any], at: str, end: Mapping[str, Any]) -> RecordedCall:
        error = text_in(object_in(end, "error"), "message")
        output, _, _ = response_text(object_in(end, "result").get("content")).partition(_GUIDANCE)
        text, code = _without_ending(error or output)
        code = object_in(end, "shellExecution").get("exitCode", code)
        return RecordedCall(
            call_id=call_id_of(session, text_in(start, "toolCallId")),
            tool=self._tool(text_in(start, "toolName"))[0],
            arguments=start.get("arguments"),
            output=text,
            failed=end.get("success") is False or code not in (None, 0),
            at=at,
            denied=error.startswith("Denied by preToolUse hook"),
        )


def _outcome(name: str, payload: Mapping[str, Any]) -> tuple[str, bool | None]:
    """What the tool answered, and whether it failed: a command that did, succeeded for Copilot."""
    if name == "PostToolUseFailure":
        return text_in(payload, "error"), True
    result = object_in(payload, "tool_result")
    text, code = _without_ending(text_in(result, "text_result_for_llm"))
    told = text_in(result, "result_type")
    return text, (told not in ("", "success") or code not in (None, 0)) if result else None


def _without_ending(text: str) -> tuple[str, int | None]:
    """A command's output, and its exit code, which Copilot writes after it."""
    ending = _SHELL_ENDING.search(text, max(0, len(text) - _LONGEST_ENDING))
    return (text[: ending.start()], int(ending[1])) if ending else (text, None)


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("COPILOT_HOME") or home / ".copilot")


HOST = Copilot()
