"""Gemini CLI: its hooks, its settings, its recordings of sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts import claude_shaped
from toolmem.hosts.claude_shaped import goes_on, response_text, text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope
from toolmem.hosts.payloads import json_object, moment_key, newest, object_in, objects_in, tools_by_class
from toolmem.hosts.typed_prompts import typed
from toolmem.late import late_pattern

_EVENTS: Mapping[str, EventKind] = {
    "SessionStart": "session_start",
    "BeforeAgent": "prompt",
    "BeforeTool": "before_call",
    "AfterTool": "after_call",
    "AfterAgent": "turn_end",
    "PreCompress": "compaction",
    "SessionEnd": "session_end",
}
_MILLISECONDS = 10_000  # of a hook; other agents count in seconds
_OPENING, _CLOSING = "<untrusted_context>\n", "\n</untrusted_context>"
# What the shell tool writes after the output of a command.
_ENDING = late_pattern(
    r"(?:\nExit Code: (-?\d{1,9}))?(?:\nSignal: [^\n]{1,40})?(?:\nBackground PIDs: [^\n]{1,200})?"
    r"(?:\nProcess Group PGID: \d{1,9})?\Z"
)
_LONGEST_ENDING = 400
_CANCELLED = "Command was cancelled by user"
_DENIED = "Tool execution blocked: "  # what Gemini CLI puts before the reason of a hook


class GeminiCli(Host):
    """Its events tell no id of a call. An answer `ask` waits for ever where nobody sits before it: it is not used."""

    name = "gemini"
    title = "Gemini CLI"
    verified = "0.61.0"
    notices_at = ("session_start", "prompt", "before_call", "after_call")
    comments = True
    call_ids = False
    context_at = ("session_start", "prompt", "after_call")
    tools = tools_by_class(
        shell="run_shell_command",
        read="read_file read_many_files",
        write="write_file replace",
        search="list_directory glob grep_search search_file_content",
        fetch="web_fetch",
        web="google_web_search",
        none=(
            "list_background_processes read_background_output save_memory update_topic write_todos ask_user "
            "invoke_agent activate_skill enter_plan_mode exit_plan_mode"
        ),
    )
    cannot = (
        "It cannot ask its user about a call: what toolmem would ask about is denied, and the model told to ask.",
        "Nothing can be put before the model ahead of a call: advice comes with the result.",
        (
            "Its events tell no id of a call: a call that ended is known by its tool and arguments. Two that are alike "
            "and run at once cannot be told apart."
        ),
        "It announces a compression before every request, also where none follows: a receipt of one says little.",
        "A hook that cannot start, or that takes longer than its ten seconds, lets the call run.",
        "Hooks of a project run only in a folder that the user trusts; those of the user run everywhere.",
        "It tells nothing of subagents as such: what they do counts as the session's.",
    )
    after_install = "Gemini CLI runs a project's hooks only where you trust its folder: it asks, or type /permissions."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "hook_event_name")
        kind = _EVENTS.get(name)
        if kind is None or (kind == "turn_end" and goes_on(payload)):
            return None
        tool, server = self._tool(text_in(payload, "tool_name"), payload.get("mcp_context"))
        response = payload.get("tool_response") if kind == "after_call" else None
        output, failed = _outcome(response)
        return HookEvent(
            kind=kind,
            name=name,
            session_id=text_in(payload, "session_id"),
            cwd=text_in(payload, "cwd"),
            project=environment.get("GEMINI_PROJECT_DIR", ""),
            transcript=text_in(payload, "transcript_path"),
            key=moment_key(payload.get("timestamp"), tool, payload.get("tool_input")),
            origin=text_in(payload, "source") if kind == "session_start" else "",
            prompt=typed(text_in(payload, "prompt")) if kind == "prompt" else "",
            whole=text_in(payload, "prompt") if kind == "prompt" else "",
            tool=tool,
            server=server,
            arguments=payload.get("tool_input"),
            output=output,
            failed=failed,
            interrupted=output.startswith(_CANCELLED),
        )

    def _tool(self, name: str, context: Any = None) -> tuple[str, str]:
        """Of an MCP server's tool its own name: a call tells it, a recording only `mcp_mail_send_email`."""
        told = context if isinstance(context, Mapping) else {}
        own, server = text_in(told, "tool_name"), text_in(told, "server_name")
        if own and own not in self.tools:
            return own, server
        at, _, short = name.removeprefix("mcp_").partition("_")
        return (short, at) if name.startswith("mcp_") and short and short not in self.tools else (name, server)

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return self._tool(tool)[0]

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        if event.kind == "turn_end":
            return {"decision": "deny", "reason": answer.reason} if answer.action == "ask" else {}
        written: dict[str, Any] = {"systemMessage": answer.notice} if answer.notice else {}
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            written |= {"decision": "deny", "reason": answer.reason or "toolmem: not run"}
        elif answer.context and event.kind in self.context_at:
            written["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": answer.context}
        return written

    # -- settings

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        return (project if scope == "project" else _home(home, environment)) / ".gemini" / "settings.json"

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        return claude_shaped.add_hooks(settings, command, events=_EVENTS, timeout=_MILLISECONDS, exec_form=False)

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return claude_shaped.remove_hooks(settings)

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        return {
            "session_id": session_id,
            "transcript_path": "",
            "cwd": cwd,
            "hook_event_name": "BeforeTool",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "tool_name": "read_file",
            "tool_input": {"file_path": "toolmem-doctor"},
        }

    # -- recordings

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        root = _home(home, environment) / ".gemini"
        try:
            short = json.loads((root / "projects.json").read_text("utf-8"))["projects"][str(project)]
            chats = list((root / "tmp" / short / "chats").glob("session-*.jsonl"))
        except (OSError, ValueError, KeyError, TypeError):
            return
        for session in newest(chats):
            with session.open(encoding="utf-8", errors="replace") as lines:
                yield text_in(json_object(lines.readline(1_000_000)), "sessionId"), session

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        """A message is written anew as it grows: the last line of it counts."""
        session = ""
        calls: dict[str, RecordedCall] = {}
        for line in transcript:
            message = json_object(line)
            session = session or text_in(message, "sessionId")
            for call in objects_in(message.get("toolCalls")):
                if text_in(call, "name"):
                    calls[text_in(call, "id")] = self._recorded(session, call)
        return calls.values()

    def _recorded(self, session: str, call: Mapping[str, Any]) -> RecordedCall:
        told = objects_in(call.get("result"))
        response = object_in(object_in(told[0], "functionResponse"), "response") if told else {}
        error = text_in(response, "error")
        output, failed = _outcome({"llmContent": error or response.get("output")})
        return RecordedCall(
            call_id=call_id_of(session, text_in(call, "id")),
            tool=self._tool(text_in(call, "name"))[0],
            arguments=call.get("args"),
            output=output,
            failed=True if error or call.get("status") == "error" else failed,
            at=text_in(call, "timestamp"),
            denied=error.startswith(f"{_DENIED}toolmem: ") or call.get("status") == "cancelled",
        )


def _outcome(response: Any) -> tuple[str, bool | None]:
    """What the tool answered, without what Gemini CLI put around it, and whether it failed."""
    if not isinstance(response, Mapping):
        return "", None
    text, failed = response_text(response.get("llmContent")), bool(response.get("error"))
    closing = text.rfind(_CLOSING)
    if not text.startswith(_OPENING) or closing < 0:
        return text, failed
    body = text[len(_OPENING) : closing]
    ending = _ENDING.search(body, max(0, len(body) - _LONGEST_ENDING))
    code = ending[1] if ending else None
    return body[: ending.start() if ending else None].removeprefix("Output: "), failed or code not in (None, "0")


def _home(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("GEMINI_CLI_HOME") or home)


HOST = GeminiCli()
