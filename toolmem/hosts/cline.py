"""Cline: a plugin, `plugins/cline.js`, that tells each event as JSON and does what is answered.

Cline also starts executables as hooks (`PreToolUse` and its like). They cannot do what a plugin can: a denial of theirs
ends the run without a word to the model, and what the user types is not told to them in a run without a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts.claude_shaped import text_in
from toolmem.hosts.events import EventKind, HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope
from toolmem.hosts.payloads import json_object, milliseconds_in, newest, objects_in, plugin_text, tools_by_class
from toolmem.hosts.typed_prompts import typed
from toolmem.late import late_pattern

_EVENTS: Mapping[str, EventKind] = {
    "start": "session_start",
    "prompt": "prompt",
    "call": "before_call",
    "result": "after_call",
}
_INPUT = late_pattern(r"(?s)\A<user_input mode=\"[a-z]{1,20}\">(.*)</user_input>\s{0,20}\Z")


class Cline(Host):
    """The rules stand in a message after what the user typed; advice follows the results of a turn."""

    name = "cline"
    title = "Cline"
    verified = "3.0.65"
    notices_at = ("prompt",)
    starts_anew = True
    tools = tools_by_class(
        shell="run_commands execute_command",
        read="read_files read_file",
        write="apply_patch editor write_to_file replace_in_file",
        search="list_files search_codebase search_files list_code_definition_names",
        fetch="fetch_web_content web_fetch",
        web="web_search",
        none="ask_question ask_followup_question spawn_agent skills attempt_completion submit_and_exit",
    )
    cannot = (
        "A plugin cannot ask the user about a call: what toolmem would ask about is denied, and the model told to ask.",
        "Cline gives a plugin three seconds: where toolmem has not answered by then, the call runs.",
        "It shows its user no notice of a plugin: what was kept is told to the model, which can pass it on.",
        "It tells plugins of no compaction and no end of a session: the rules come with what the user says next.",
        "What the user types while a run goes on is heard with the next run.",
        "Cline for VS Code up to version 3 has executables in place of plugins: it is not served.",
    )
    after_install = "Start Cline anew: it loads plugins when a session starts."

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        name = text_in(payload, "event")
        kind = _EVENTS.get(name)
        if kind is None:
            return None
        session, call = text_in(payload, "session"), text_in(payload, "callId")
        subagent = payload.get("subagent") is True
        tool, server = self._tool(text_in(payload, "tool"))
        output, failed = _outcome(payload.get("output"), payload.get("isError"))
        return HookEvent(
            kind="subagent_start" if kind == "session_start" and subagent else kind,
            name=name,
            session_id=session,
            cwd=text_in(payload, "cwd"),
            key=call_id_of(session, call) or text_in(payload, "key"),
            origin="startup" if kind == "session_start" and not subagent else "",
            prompt=typed(_typed_input(text_in(payload, "prompt"))) if kind == "prompt" and not subagent else "",
            whole=_typed_input(text_in(payload, "prompt")) if kind == "prompt" else "",
            tool=tool,
            server=server,
            subagent=subagent,
            arguments=payload.get("input"),
            call_id=call_id_of(session, call),
            output=output,
            failed=failed if kind == "after_call" else None,
            seconds=milliseconds_in(payload, "milliseconds"),
        )

    def _tool(self, name: str) -> tuple[str, str]:
        """An MCP server's tool is `server__tool` here."""
        server, _, own = name.partition("__")
        return (own, server) if server and own and own not in self.tools and name not in self.tools else (name, "")

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return self._tool(tool)[0]

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        if event.kind == "before_call" and answer.action in {"deny", "ask"}:
            return {"stop": answer.reason or "toolmem: not run"}
        told = "\n\n".join(filter(None, (answer.context, answer.notice if event.kind == "prompt" else "")))
        return {"context": told} if told else {}

    def own_files(
        self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str], command: list[str]
    ) -> dict[Path, str]:
        folder = _folder(home, environment) if scope == "user" else project / ".cline"
        return {folder / "plugins" / "toolmem.js": plugin_text("cline.js", command)}

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        call = {"tool": "read_files", "callId": f"call_{session_id}", "input": {"files": [{"path": "toolmem-doctor"}]}}
        return {"event": "call", "session": session_id, "cwd": cwd, **call}

    # -- recordings

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        data = Path(environment.get("CLINE_DATA_DIR") or _folder(home, environment) / "data")
        for messages in newest((data / "sessions").glob("*/*.messages.json")):
            session = messages.name.removesuffix(".messages.json")
            try:
                about = json_object(messages.with_name(f"{session}.json").read_text("utf-8", "replace"))
            except OSError:
                continue
            if str(project) in (text_in(about, "cwd"), text_in(about, "workspace_root")):
                yield session, messages

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        """The recording is one JSON text, however many lines it has."""
        recording = json_object("".join(transcript))
        session = text_in(recording, "sessionId")
        begun: dict[str, tuple[str, Any]] = {}
        for message in objects_in(recording.get("messages")):
            for block in objects_in(message.get("content")):
                if block.get("type") == "tool_use":
                    begun[text_in(block, "id")] = text_in(block, "name"), block.get("input")
                elif block.get("type") == "tool_result" and text_in(block, "tool_use_id") in begun:
                    key = text_in(block, "tool_use_id")
                    yield self._recorded(call_id_of(session, key), *begun.pop(key), block)

    def _recorded(self, call_id: str, name: str, arguments: Any, result: Mapping[str, Any]) -> RecordedCall:
        from toolmem.readers.denied_calls import is_denied  # no hook needs it

        output, failed = _outcome(result.get("content"), result.get("is_error"))
        denied = is_denied(output)
        tool = self._tool(name)[0]
        return RecordedCall(
            call_id=call_id, tool=tool, arguments=arguments, output=output, failed=failed, denied=denied
        )


def _outcome(output: Any, is_error: Any) -> tuple[str, bool]:
    """As the model reads it. A tool that does several things at once says of each whether it succeeded."""
    parts = objects_in(output)
    failed = is_error is True or any(part.get("success") is False for part in parts)
    if parts and all("result" in part for part in parts):
        told = [text_in(part, "result") or text_in(part, "error") for part in parts]
        return "\n".join(told), failed
    return output if isinstance(output, str) else "" if output is None else json.dumps(output, default=str), failed


def _typed_input(prompt: str) -> str:
    inner = _INPUT.match(prompt)
    return inner[1] if inner else prompt


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CLINE_DIR") or home / ".cline")


HOST = Cline()
