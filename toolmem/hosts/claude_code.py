"""Claude Code: its hooks, its settings, its recordings of sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolmem.hosts import claude_shaped
from toolmem.hosts.claude_shaped import mcp_tool, read_event, response_text, text_in, write_answer
from toolmem.hosts.events import HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope

_MOST_SESSIONS = 200
# Calls that did not run: what Claude Code writes as their result.
_NOT_RUN = (
    r"The user doesn't want to (?:proceed with this tool use|take this action)"
    r"|\[Request interrupted by user"
    r"|Permission to use .{1,200} has been denied"
    r"|(?:<tool_use_error>)?(?:Cancelled: parallel tool call|InputValidationError|Error: No such tool available)"
)


class ClaudeCode(Host):
    """Hooks in exec form: no shell reads the command, and no file of the working folder is imported."""

    name = "claude-code"
    title = "Claude Code"
    verified = "2.1.197"
    tools = {
        "Bash": ("shell",),
        "BashOutput": (),
        "KillShell": (),
        "PowerShell": ("shell",),
        "Read": ("read",),
        "Write": ("write",),
        "Edit": ("write",),
        "MultiEdit": ("write",),
        "NotebookEdit": ("write",),
        "Glob": ("search",),
        "Grep": ("search",),
        "LSP": ("search",),
        "WebFetch": ("fetch",),
        "WebSearch": ("web",),
        "Task": (),
        "Agent": (),
        "TaskOutput": (),
        "TaskStop": (),
        "TodoWrite": (),
        "Skill": (),
        "AskUserQuestion": (),
        "EnterPlanMode": (),
        "ExitPlanMode": (),
    }
    cannot = (
        (
            "A hook that cannot start, or that takes longer than its ten seconds, lets the call run: up to version "
            "2.1.294 Claude Code has no other way. From 2.1.295 on, hooks that were installed with "
            "`--on-error closed` stop the call then (`onFailure`)."
        ),
        "A command that the user types after `!`, and what runs inside an MCP server, no hook is told of.",
        "Some versions were reported not to enforce a denial for tools of MCP servers: the proxy stands before these.",
        "The agent cannot say that it repeats a call on purpose: what failed runs when it is sent once more unchanged.",
        "Without a terminal (`-p`) nobody can be asked: Claude Code denies what toolmem asks about.",
        "Demands for one session do not go along when a session is forked or cleared: it is another one then.",
    )

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        return read_event(payload, own_tools=self.tools, project=environment.get("CLAUDE_PROJECT_DIR", ""))

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        return write_answer(event, answer)

    # -- settings

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        """Of a project the local one: what is written names this machine's interpreter, which is no file to share."""
        if scope == "user":
            return _folder(home, environment) / "settings.json"
        return project / ".claude" / "settings.local.json"

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        return claude_shaped.add_hooks(settings, command)

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return claude_shaped.remove_hooks(settings)

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        return {
            "session_id": session_id,
            "transcript_path": "",
            "cwd": cwd,
            "hook_event_name": "PreToolUse",
            "tool_name": "Read",
            "tool_input": {"file_path": "toolmem-doctor"},
            "tool_use_id": f"toolu_{session_id}",
        }

    # -- recordings

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        """Those of subagents lie beside, and are of the same session."""
        folder = _folder(home, environment) / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
        sessions = sorted(folder.glob("*.jsonl"), key=lambda each: each.stat().st_mtime, reverse=True)
        for session in sessions[:_MOST_SESSIONS]:
            yield session.stem, session
            for own in sorted((folder / session.stem / "subagents").glob("*.jsonl")):
                yield session.stem, own

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        """Those that have ended, in the order in which they did."""
        begun: dict[str, tuple[str, Any, str]] = {}
        for line in transcript:
            entry = _entry_of(line)
            session, at = text_in(entry, "sessionId"), text_in(entry, "timestamp")
            for block in _blocks(entry):
                if block.get("type") == "tool_use":
                    begun[text_in(block, "id")] = (text_in(block, "name"), block.get("input"), at)
                elif block.get("type") == "tool_result":
                    call = begun.pop(text_in(block, "tool_use_id"), None)
                    if call is not None and call[0]:
                        yield self._call(call_id_of(session, text_in(block, "tool_use_id")), call, block, at)

    def _call(self, call_id: str, call: tuple[str, Any, str], result: Mapping[str, Any], ended: str) -> RecordedCall:
        from toolmem.readers.denied_calls import is_denied  # no hook needs it

        name, arguments, began = call
        output, failed = response_text(result.get("content")), result.get("is_error") is True
        return RecordedCall(
            call_id=call_id,
            tool=mcp_tool(name, self.tools)[0],
            arguments=arguments,
            output=output,
            failed=failed,
            seconds=_between(began, ended),
            at=began,
            denied=failed and (is_denied(output) or re.match(_NOT_RUN, output) is not None),
        )


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")


def _entry_of(line: str) -> Mapping[str, Any]:
    """One line of a recording; {} for what cannot be read."""
    if '"tool_use' not in line and '"tool_result"' not in line:  # most lines are long and of no use here
        return {}
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, Mapping) else {}


def _blocks(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = entry.get("message") if entry.get("type") in {"assistant", "user"} else None
    content = message.get("content") if isinstance(message, Mapping) else None
    return [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []


def _between(began: str, ended: str) -> float | None:
    from datetime import datetime

    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None


HOST = ClaudeCode()
