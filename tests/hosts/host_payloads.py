"""What each agent would hand its hook, and where it looks in the answer: all that the contract knows of an agent.

A host that is added gets its entry in `PAYLOADS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    context_before_a_call: bool = True
    tells_of_failures: bool = True  # its hook is told of calls that failed
    tells_of_prompts: bool = True
    context_at_start: bool = True

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


PAYLOADS: dict[str, Any] = {"claude-code": ClaudeShaped(), "codex": Codex()}


def as_bytes(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload).encode()
