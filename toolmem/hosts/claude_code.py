"""Claude Code: its hooks, its settings, its recordings of sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts import claude_shaped
from toolmem.hosts.claude_shaped import mcp_tool, read_event, response_text, text_in, write_answer
from toolmem.hosts.events import HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope

_MOST_SESSIONS = 200
_MANAGED = (Path("/etc/claude-code/managed-settings.json"),)
_REJECTED = "The user doesn't want to proceed with this tool use."
_SAID = "the user said:\n"  # at a rejected call; 2.1.197 and 2.1.330
# Calls that did not run: what Claude Code writes as their result. Newer versions mark those that a person, a setting or
# a hook had kept from running (`toolDenialKind`); 2.1.197 does not.
_NOT_RUN = (
    r"The user doesn't want to (?:proceed with this tool use|take this action)"
    r"|\[Request interrupted by user"
    r"|Permission to use .{1,200} has been denied"
    r"|Claude requested permissions to .{1,5000}, but you haven't granted it yet\."
    r"|.{1,5000} was blocked\. For security, Claude Code may only "
    r"|PreToolUse:\S{1,200} hook error: "
    r"|(?:<tool_use_error>)?(?:Cancelled: parallel tool call|InputValidationError|Error: No such tool available)"
)


class ClaudeCode(Host):
    """Hooks in exec form: no shell reads the command, and no file of the working folder is imported."""

    name = "claude-code"
    title = "Claude Code"
    verified = "2.1.330"
    notices_at = ("session_start", "prompt", "before_call", "after_call")
    asks = True
    question_modes = frozenset(("default", "acceptEdits", "plan"))
    approves = True
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

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return mcp_tool(tool, self.tools)[0]

    # -- settings

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        """Of a project the local one: what is written names this machine's interpreter, which is no file to share."""
        if scope == "user":
            return _folder(home, environment) / "settings.json"
        return project / ".claude" / "settings.local.json"

    def answers_itself(self, command: str, project: Path, home: Path, environment: Mapping[str, str]) -> bool:
        """What the user allowed for good, a sandbox, and hooks of others may decide before anybody is asked."""
        own = project / ".claude"
        files = [_folder(home, environment) / "settings.json", own / "settings.json", own / "settings.local.json"]
        return any(_may_answer(each, command) for each in (*files, *_MANAGED, *_MANAGED[0].parent.glob("*.d/*.json")))

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
                        stopped = bool(text_in(entry, "toolDenialKind"))
                        yield self._call(call_id_of(session, text_in(block, "tool_use_id")), call, block, at, stopped)

    def replies_in(self, transcript: Iterable[str]) -> Iterable[str]:
        """Words at a call that was rejected, and answers to the agent's questions, without those it offered itself."""
        names: dict[str, str] = {}
        for line in transcript:
            entry = _entry_of(line)
            for block in _blocks(entry):
                if block.get("type") == "tool_use":
                    names[text_in(block, "id")] = text_in(block, "name")
                elif block.get("type") == "tool_result":
                    name = names.get(text_in(block, "tool_use_id"), "")
                    if name == "AskUserQuestion":
                        yield from _typed_answers(entry.get("toolUseResult"))
                    elif name and block.get("is_error") is True:
                        yield from _typed_at_rejected(entry, block, name)

    def reply_before(self, transcript: Iterable[str], call: str) -> list[tuple[str, str, Any]]:
        reply = ""
        before: list[tuple[str, str, Any]] = []
        for line in transcript:
            entry = _entry_of(line)
            for block in _blocks(entry):
                if block.get("type") != "tool_use":
                    continue
                if text_in(entry["message"], "id") != reply:
                    reply, before = text_in(entry["message"], "id"), []
                if text_in(block, "id") == call:
                    return before
                tool = mcp_tool(text_in(block, "name"), self.tools)[0]
                before.append((text_in(block, "id"), tool, block.get("input")))
        return []

    def _call(
        self, call_id: str, call: tuple[str, Any, str], result: Mapping[str, Any], ended: str, stopped: bool
    ) -> RecordedCall:
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
            denied=failed and (stopped or is_denied(output) or re.match(_NOT_RUN, output) is not None),
        )


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")


def _may_answer(file: Path, command: str) -> bool:
    """True for what cannot be read: nobody knows what it says."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        permissions, hooks, sandbox = (settings.get(name) or {} for name in ("permissions", "hooks", "sandbox"))
        allowed = any(_allows(each, command) for each in permissions.get("allow") or ())
        return bool(
            allowed or hooks.get("PermissionRequest") or sandbox.get("enabled") or settings.get("enabledPlugins")
        )
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return True


def _allows(entry: str, command: str) -> bool:
    """`Bash`, `Bash(git:*)`: it may, if what stands before the first wildcard fits."""
    tool, _, rest = entry.partition("(")
    fixed = re.split(r"[*:]", rest.removesuffix(")"), maxsplit=1)[0].strip()
    return tool.strip() in ("Bash", "*") and command.lstrip().startswith(fixed)


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


def _typed_at_rejected(entry: Mapping[str, Any], result: Mapping[str, Any], tool: str) -> Iterable[str]:
    """A tool of a server writes its own errors, which may read like this one."""
    told = result.get("content")
    is_claudes = entry.get("toolDenialKind") == "user-rejected" or not tool.startswith("mcp__")
    if is_claudes and isinstance(told, str) and told.startswith(_REJECTED):
        yield told.partition(_SAID)[2]


def _typed_answers(result: Any) -> Iterable[str]:
    """What was typed in place of an answer that the agent offered."""
    if not isinstance(result, Mapping):
        return
    offered = [
        text_in(option, "label")
        for question in result.get("questions") or ()
        for option in question.get("options") or ()
    ]
    for answer in (result.get("answers") or {}).values():
        if isinstance(answer, str):
            for label in sorted(filter(None, offered), key=len, reverse=True):
                answer = answer.replace(label, "\n")
            yield answer.strip()


def _between(began: str, ended: str) -> float | None:
    from datetime import datetime

    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None


HOST = ClaudeCode()
