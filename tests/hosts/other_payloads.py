"""The same for the agents whose hooks have a form of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.hosts.host_payloads import ClaudeShaped, Payload

_MOMENTS = count()


def _moment() -> str:
    """No two events of an agent are of one moment here."""
    number = next(_MOMENTS)
    return f"2026-11-22T23:{number // 1000 % 60:02}:{number // 100 % 10:02}.{number % 1000:03}Z"


@dataclass
class Gemini(ClaudeShaped):
    shell: str = "run_shell_command"
    asks: bool = False
    calls_have_ids: bool = False
    context_before_a_call: bool = False

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        base = {"session_id": session, "transcript_path": "", "cwd": cwd, "hook_event_name": name}
        return {**base, "timestamp": _moment(), **more}

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "BeforeAgent", prompt=text)

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "BeforeTool", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._ended(session, cwd, command, number, f"Output: {output}")

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._ended(session, cwd, command, number, f"Output: {error}\nExit Code: 2")

    def _ended(self, session: str, cwd: str, command: str, number: int, text: str) -> Payload:
        whole = f"<untrusted_context>\n{text}\nProcess Group PGID: 7\n</untrusted_context>"
        told = {"llmContent": whole, "returnDisplay": text}
        return self._call(session, cwd, "AfterTool", command, number, tool_response=told)

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        return self._base(session, cwd, name, tool_name=self.shell, tool_input={"command": command}, **more)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "PreCompress", trigger="auto")

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("reason", "")) if answer.get("decision") == "deny" else ""

    def question(self, answer: Mapping[str, Any]) -> str:
        return ""


@dataclass
class Copilot(ClaudeShaped):
    calls_have_ids: bool = False

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"hook_event_name": name, "session_id": session, "timestamp": _moment(), "cwd": cwd, **more}

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", prompt=text)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._ended(session, cwd, command, number, output, 0)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._ended(session, cwd, command, number, error, 2)

    def _ended(self, session: str, cwd: str, command: str, number: int, text: str, code: int) -> Payload:
        ending = f"\n<shellId: 0 completed with exit code {code}>"
        told = {"result_type": "success", "text_result_for_llm": text + ending}
        return self._call(session, cwd, "PostToolUse", command, number, tool_result=told)

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        return self._base(session, cwd, name, tool_name=self.shell, tool_input={"command": command}, **more)

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("additionalContext", ""))


@dataclass
class Plugin(ClaudeShaped):
    """What a plugin of ours tells, and is answered. Names of events and fields, as the plugin has them."""

    shell: str = "bash"
    asks: bool = False
    session: str = "sessionID"
    call: str = "callID"
    arguments: str = "args"
    names: tuple[str, ...] = ("session.start", "chat.message", "tool.execute.before", "tool.execute.after")
    compacting: str = "session.compacting"

    def _told(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"event": name, self.session: session, "cwd": cwd, **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._told(session, cwd, self.names[0])

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._told(session, cwd, self.names[1], prompt=text, key=f"msg_{number}")

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._ran(session, cwd, self.names[2], command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._ran(session, cwd, self.names[3], command, number, output=output, exit=0, milliseconds=1500)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        more = {"output": error, "exit": 2, "isError": True, "milliseconds": 20}
        return self._ran(session, cwd, self.names[3], command, number, **more)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._told(session, cwd, self.compacting) if self.compacting else None

    def end(self, session: str, cwd: str) -> Payload | None:
        return None

    def _ran(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {"tool": self.shell, self.call: f"call_{number}", self.arguments: {"command": command}}
        return self._told(session, cwd, name, **given, **more)

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("stop", ""))

    def question(self, answer: Mapping[str, Any]) -> str:
        return ""

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("context", ""))

    def notice(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("notice", ""))


@dataclass
class Cursor(ClaudeShaped):
    shell: str = "Shell"
    asks: bool = False
    context_before_a_call: bool = False
    tells_of_prompts: bool = False  # it is told what the user says, and takes no answer

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"conversation_id": session, "hook_event_name": name, "cwd": cwd, **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "sessionStart")

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "beforeSubmitPrompt", prompt=text, generation_id=f"generation-{number}")

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "preToolUse", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._call(session, cwd, "postToolUse", command, number, tool_output=output, duration=1500)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._call(session, cwd, "postToolUseFailure", command, number, error_message=error, duration=20)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "preCompact", trigger="auto")

    def end(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "sessionEnd", reason="completed")

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("agent_message", "")) if answer.get("permission") == "deny" else ""

    def question(self, answer: Mapping[str, Any]) -> str:
        return ""

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("additional_context", ""))


@dataclass
class Goose(ClaudeShaped):
    shell: str = "developer__shell"
    asks: bool = False
    context_before_a_call: bool = False
    context_at_start: bool = False
    tells_of_prompts: bool = False  # it is told what the user says, and takes no answer

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        more = {"tool_call_id" if key == "tool_use_id" else key: value for key, value in more.items()}
        return {"event": name, "session_id": session, "working_dir": cwd, **more}

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", message=text)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._call(session, cwd, "PostToolUse", command, number, tool_output=output)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return None

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("reason", "")) if answer.get("decision") == "block" else ""

    def question(self, answer: Mapping[str, Any]) -> str:
        return ""


OTHER_PAYLOADS: dict[str, Any] = {
    "gemini": Gemini(),
    "copilot": Copilot(),
    "opencode": Plugin(),
    "cline": Plugin(
        shell="run_commands",
        session="session",
        call="callId",
        arguments="input",
        names=("start", "prompt", "call", "result"),
        compacting="",
    ),
    "cursor": Cursor(),
    "goose": Goose(),
}
