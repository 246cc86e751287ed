"""What each agent would hand its hook, and where it looks in the answer: all that the contract knows of an agent.

A host that is added gets its entry in `PAYLOADS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

Payload = dict[str, Any]


@dataclass
class ClaudeShaped:
    """Payloads in Claude Code's form, and its answers."""

    shell: str = "Bash"
    environment: Mapping[str, str] = field(default_factory=dict)
    asks: bool = True  # it can ask its user
    calls_have_ids: bool = True
    context_after_a_failure: bool = True
    tells_of_failures: bool = True  # its hook is told of calls that failed
    tells_of_prompts: bool = True
    context_at_start: bool = True
    tells_its_project: bool = False  # with each event

    def arguments(self, command: str) -> Payload:
        """Of its shell."""
        return {"command": command}

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"session_id": session, "transcript_path": "", "cwd": cwd, "hook_event_name": name, **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "SessionStart", source=origin)

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", prompt=text, prompt_id=f"prompt-{number}")

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "PreToolUse", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        answer = {"stdout": output, "stderr": "", "interrupted": False}
        return self._call(session, cwd, "PostToolUse", command, number, tool_response=answer, duration_ms=1500)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._call(session, cwd, "PostToolUseFailure", command, number, error=error, duration_ms=20)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "PreCompact", trigger="auto")

    def end(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "SessionEnd", reason="exit")

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {
            "tool_name": self.shell,
            "tool_input": {"command": command},
            "tool_use_id": f"toolu_{session}_{number}",
        }
        return self._base(session, cwd, name, **given, **more)

    # -- its answers

    def denial(self, answer: Mapping[str, Any]) -> str:
        """The reason of a denial; "" where the call is not denied."""
        told = answer.get("hookSpecificOutput", {})
        return told.get("permissionDecisionReason", "") if told.get("permissionDecision") == "deny" else ""

    def question(self, answer: Mapping[str, Any]) -> str:
        """What the user is asked about a call; "" where nobody is."""
        told = answer.get("hookSpecificOutput", {})
        return told.get("permissionDecisionReason", "") if told.get("permissionDecision") == "ask" else ""

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def notice(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("systemMessage", ""))


@dataclass
class Codex(ClaudeShaped):
    """Its hook is told what a call answered, and its recording whether that was a failure."""

    asks: bool = False

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", prompt=text, turn_id=f"turn-{number}")

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._call(session, cwd, "PostToolUse", command, number, tool_response=output)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        payload = self._call(session, cwd, "PostToolUse", command, number, tool_response=error)
        recording = Path(cwd).parent / f"rollout-{session}.jsonl"
        item = {"type": "CommandExecution", "id": payload["tool_use_id"], "status": "failed", "exit_code": 2}
        with recording.open("a") as out:
            out.write(json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}) + "\n")
        return {**payload, "transcript_path": str(recording)}


class _Clocked(ClaudeShaped):
    """Its events bear the time in place of ids."""

    _ticks = count()

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        number = more.pop("number", None)
        at = f"{7000 + next(self._ticks)}" if number is None else f"{1000 + number}"
        return {**super()._base(session, cwd, name, **more), "timestamp": f"2026-11-22T10:00:00.{at}Z"}

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", prompt=text, number=number)

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {"tool_name": self.shell, "tool_input": self.arguments(command)}
        return self._base(session, cwd, name, **given, number=number, **more)


@dataclass
class Copilot(_Clocked):
    """Its answers stand at the top, and what failed as a command succeeded as a tool."""

    calls_have_ids: bool = False

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "SessionStart", source="new" if origin == "startup" else origin)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._ended(session, cwd, command, number, output, 0)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._ended(session, cwd, command, number, error, 2)

    def _ended(self, session: str, cwd: str, command: str, number: int, output: str, code: int) -> Payload:
        text = f"{output}\n<shellId: {number} completed with exit code {code}>"
        result = {"result_type": "success", "text_result_for_llm": text}
        return self._call(session, cwd, "PostToolUse", command, number, tool_result=result)

    def denial(self, answer: Mapping[str, Any]) -> str:
        return answer.get("permissionDecisionReason", "") if answer.get("permissionDecision") == "deny" else ""

    def question(self, answer: Mapping[str, Any]) -> str:
        return answer.get("permissionDecisionReason", "") if answer.get("permissionDecision") == "ask" else ""

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("additionalContext", ""))


@dataclass
class Gemini(_Clocked):
    """Events of its own names; what a command answered stands in an envelope."""

    shell: str = "run_shell_command"
    asks: bool = False
    calls_have_ids: bool = False

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "BeforeAgent", prompt=text, number=number)

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "BeforeTool", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._ended(session, cwd, command, number, output)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._ended(session, cwd, command, number, f"{error}\nExit Code: 2")

    def _ended(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        text = f"<untrusted_context>\nOutput: {output}\nProcess Group PGID: 19619\n</untrusted_context>"
        answer = {"llmContent": text, "returnDisplay": output}
        return self._call(session, cwd, "AfterTool", command, number, tool_response=answer)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "PreCompress", trigger="auto")

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("reason", "")) if answer.get("decision") == "deny" else ""


@dataclass
class _ByPlugin(ClaudeShaped):
    """A plugin of ours hands over what it is told, and takes `stop`, `context` and `notice`."""

    asks: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def end(self, session: str, cwd: str) -> Payload | None:
        return None

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("stop", ""))

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("context", ""))

    def notice(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("notice", ""))


@dataclass
class Cline(_ByPlugin):
    shell: str = "run_commands"
    tells_its_project: bool = True

    def arguments(self, command: str) -> Payload:
        return {"commands": [command]}

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"event": name, "session": session, "subagent": False, "cwd": cwd, **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "start", key=f"start-{origin}-{next(_NUMBERS)}")

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        typed = f'<user_input mode="act">{text}</user_input>'
        return self._base(session, cwd, "prompt", key=f"prompt-{number}", prompt=typed)

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "call", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        answer = [{"query": command, "result": output, "success": True}]
        return self._call(session, cwd, "result", command, number, output=answer, isError=False, milliseconds=15)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        answer = [{"query": command, "result": error, "error": "Command exited with code 2", "success": False}]
        return self._call(session, cwd, "result", command, number, output=answer, isError=False, milliseconds=15)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return None

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {"tool": self.shell, "callId": f"call_{number}", "input": self.arguments(command)}
        return self._base(session, cwd, name, **given, **more)


@dataclass
class OpenCode(_ByPlugin):
    shell: str = "bash"

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"event": name, "sessionID": session, "cwd": cwd, "project": "/", **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "session.start", key=f"start-{origin}-{next(_NUMBERS)}")

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "chat.message", key=f"msg-{number}", prompt=text)

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "tool.execute.before", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._call(session, cwd, "tool.execute.after", command, number, output=output, exit=0, milliseconds=15)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._call(session, cwd, "tool.execute.after", command, number, output=error, exit=2, milliseconds=15)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "session.compacting")

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {"tool": self.shell, "callID": f"call_{number}", "args": self.arguments(command)}
        return self._base(session, cwd, name, **given, **more)


@dataclass
class Cursor(_ByPlugin):
    """As its documentation has it: results are JSON text."""

    shell: str = "Shell"
    context_after_a_failure: bool = False
    tells_its_project: bool = True

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"hook_event_name": name, "conversation_id": session, "workspace_roots": [cwd], **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "sessionStart")

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "beforeSubmitPrompt", prompt=text, generation_id=f"generation-{number}")

    def before(self, session: str, cwd: str, command: str, number: int) -> Payload:
        return self._call(session, cwd, "preToolUse", command, number)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        answer = json.dumps({"output": output, "exitCode": 0})
        return self._call(session, cwd, "postToolUse", command, number, tool_output=answer, duration=15)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._call(session, cwd, "postToolUseFailure", command, number, error_message=error, duration=15)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "preCompact", trigger="auto")

    def end(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "sessionEnd", reason="completed")

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("agent_message", "")) if answer.get("permission") == "deny" else ""

    def context(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("additional_context", ""))


@dataclass
class Goose(_ByPlugin):
    """As its documentation has it: it takes a denial and nothing else."""

    shell: str = "developer__shell"
    context_after_a_failure: bool = False
    context_at_start: bool = False
    tells_its_project: bool = True

    def _base(self, session: str, cwd: str, name: str, **more: Any) -> Payload:
        return {"event": name, "session_id": session, "working_dir": cwd, **more}

    def start(self, session: str, cwd: str, origin: str = "startup") -> Payload:
        return self._base(session, cwd, "SessionStart")

    def prompt(self, session: str, cwd: str, text: str, number: int) -> Payload:
        return self._base(session, cwd, "UserPromptSubmit", message=text)

    def worked(self, session: str, cwd: str, command: str, number: int, output: str) -> Payload:
        return self._call(session, cwd, "PostToolUse", command, number, tool_output=output)

    def failed(self, session: str, cwd: str, command: str, number: int, error: str) -> Payload:
        return self._call(session, cwd, "PostToolUseFailure", command, number, error=error)

    def compaction(self, session: str, cwd: str) -> Payload | None:
        return None

    def end(self, session: str, cwd: str) -> Payload | None:
        return self._base(session, cwd, "SessionEnd")

    def _call(self, session: str, cwd: str, name: str, command: str, number: int, **more: Any) -> Payload:
        given = {"tool_name": self.shell, "tool_input": self.arguments(command), "tool_call_id": f"call_{number}"}
        return self._base(session, cwd, name, **given, **more)

    def denial(self, answer: Mapping[str, Any]) -> str:
        return str(answer.get("reason", "")) if answer.get("decision") == "block" else ""


_NUMBERS = count()
PAYLOADS: dict[str, Any] = {
    "claude-code": ClaudeShaped(),
    "codex": Codex(),
    "copilot": Copilot(),
    "gemini": Gemini(),
    "cline": Cline(),
    "opencode": OpenCode(),
    "cursor": Cursor(),
    "goose": Goose(),
}


def as_bytes(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload).encode()
