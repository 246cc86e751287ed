"""Codex: its hooks in Claude Code's form, and its recordings of sessions ("rollouts")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolmem.hosts import claude_shaped
from toolmem.hosts.claude_shaped import EVENTS, mcp_tool, read_event, response_text, text_in, write_answer
from toolmem.hosts.events import HookAnswer, HookEvent, call_id_of
from toolmem.hosts.host import Host, RecordedCall, Scope
from toolmem.late import late_pattern
from toolmem.late_dataclasses import replace

MOST_CONTEXT = 10_000  # characters; of a longer text the model is shown a part
_EVENTS = [event for event in EVENTS if event != "PostToolUseFailure"]
_TAIL = 1_000_000  # bytes of a rollout in which the end of a call is looked for
_MOST_SESSIONS = 200
_SHELLS = frozenset(("exec_command", "shell", "shell_command", "local_shell", "container.exec"))
_NOT_RUN = late_pattern(r"unsupported (?:custom tool )?call|failed to parse function arguments")
_HEAD = late_pattern(r"Chunk ID: |Wall time: ")
_TOOK = late_pattern(r"Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds")
_EXITED = late_pattern(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")


class Codex(Host):
    """Its output is parsed strictly: a key that it does not know, or `ask`, fails the hook, and the call runs."""

    name = "codex"
    title = "Codex"
    verified = "0.169.0"
    notices_at = ("session_start", "prompt")
    tools = {"Bash": ("shell",), "apply_patch": ("write",)}
    cannot = (
        "Until its user has trusted the hooks (`/hooks`), and again after each change of them, Codex passes them over.",
        "A hook that cannot start, or that takes longer than its ten seconds, lets the call run.",
        "Hooks cannot ask: a call that needs the user's consent is stopped, and the model is told to ask.",
        "Hooks are told of the shell, `apply_patch` and MCP tools; others (web, images) are neither stopped nor kept.",
        "No hook is told of an MCP call that failed: it is kept when the session has ended, and until then runs again.",
        "The agent cannot say that it repeats a call on purpose: what failed runs when it is sent once more unchanged.",
    )
    after_install = (
        "Codex runs no hook that its user has not trusted: start codex, enter /hooks, and trust toolmem's. Until then, "
        "and again when the installed line has changed, they are passed over in silence."
    )

    def read(self, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent | None:
        event = read_event(payload, own_tools=self.tools)
        if event is None:
            return None
        if event.kind == "prompt":  # in a subagent the model is who prompts
            prompt = "" if payload.get("agent_id") else event.prompt
            return replace(event, key=text_in(payload, "turn_id"), prompt=prompt)
        if event.kind == "turn_end":
            return replace(event, key=text_in(payload, "turn_id"))
        if event.kind == "after_call":
            return replace(event, failed=event.failed or _failed(event.transcript, event.key))
        return event

    def write(self, event: HookEvent, answer: HookAnswer) -> Mapping[str, Any]:
        return write_answer(event, replace(answer, context=answer.context[:MOST_CONTEXT]), asks=False)

    def kept_name(self, tool: str, known: Sequence[str]) -> str:
        return mcp_tool(tool, self.tools)[0]

    # -- settings

    def settings_file(self, scope: Scope, project: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
        return (_folder(home, environment) if scope == "user" else project / ".codex") / "hooks.json"

    def add_hooks(self, settings: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
        added = claude_shaped.add_hooks(settings, command, events=_EVENTS, exec_form=False)
        for entries in added["hooks"].values():
            for hook in entries[-1]["hooks"]:
                hook.pop("onFailure", None)
        added["hooks"]["SessionEnd"][-1]["hooks"][-1]["timeout"] = 3  # it warns of more at each start
        return added

    def remove_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return claude_shaped.remove_hooks(settings)

    def synthetic(self, session_id: str, cwd: str) -> Mapping[str, Any]:
        return {
            "session_id": session_id,
            "cwd": cwd,
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "true"},
            "tool_use_id": f"call_{session_id}",
        }

    # -- recordings

    def transcripts(self, project: Path, home: Path, environment: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        rollouts = sorted((_folder(home, environment) / "sessions").rglob("rollout-*.jsonl"), reverse=True)
        for path in rollouts[:_MOST_SESSIONS]:
            with path.open(encoding="utf-8", errors="replace") as lines:
                _, _, begun = _entry(next(lines, ""))
            if text_in(begun, "cwd") == str(project):
                yield text_in(begun, "session_id") or text_in(begun, "id"), path

    def calls_of(self, transcript: Iterable[str]) -> Iterable[RecordedCall]:
        """Those that hooks are told of, in the order in which they ended."""
        session = ""
        begun: dict[str, tuple[Mapping[str, Any], str]] = {}
        ended: dict[str, bool] = {}
        for kind, at, held in map(_entry, transcript):
            call_id = text_in(held, "call_id")
            if kind == "session_meta":
                session = session or text_in(held, "session_id") or text_in(held, "id")
            elif kind == "event_msg":
                ended.update(_ended(held))
            elif kind == "response_item" and text_in(held, "type").endswith("_call"):
                begun[call_id] = held, at
            elif kind == "response_item" and call_id in begun:
                yield from self._call(session, *begun.pop(call_id), held, ended.pop(call_id, None))

    def _call(
        self, session: str, asked: Mapping[str, Any], at: str, answer: Mapping[str, Any], failed: bool | None
    ) -> Iterator[RecordedCall]:
        from toolmem.readers.denied_calls import is_denied  # no hook needs it

        tool, arguments = _named(asked)
        text = response_text(answer.get("output"))
        head, _, output = text.partition("Output:\n") if _HEAD.match(text) else ("", "", text)
        if not tool or (failed is None and _NOT_RUN.match(text)):
            return
        exited, took = _EXITED.search(head), _TOOK.search(head)
        yield RecordedCall(
            call_id=call_id_of(session, text_in(asked, "call_id")),
            tool=mcp_tool(tool, self.tools)[0],
            arguments=arguments,
            output=output,
            failed=exited[1] != "0" if failed is None and exited else failed,
            seconds=float(took[1]) if took else None,
            at=at,
            denied=is_denied(text),
        )


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CODEX_HOME") or home / ".codex")


def _named(item: Mapping[str, Any]) -> tuple[str, Any]:
    """Tool and arguments of a call as hooks are told of them; "" where they are not."""
    kind, name = text_in(item, "type"), text_in(item, "name")
    if name == "apply_patch":
        return name, {"command": item.get("input")}
    given = item.get("action") if kind == "local_shell_call" else _read(text_in(item, "arguments"))
    arguments = given if isinstance(given, Mapping) else {}
    if kind == "local_shell_call" or name in _SHELLS:
        command = arguments.get("cmd", arguments.get("command"))
        return "Bash", {"command": command[-1] if isinstance(command, list) and command else command}
    server = text_in(item, "namespace")
    return f"{server}__{name}" if server else name if name.startswith("mcp__") else "", arguments


def _failed(transcript: str, call_id: str) -> bool | None:
    """Did a call fail? Codex tells no hook, but writes it down before it asks one."""
    try:
        with open(transcript, "rb") as rollout:
            rollout.seek(max(0, rollout.seek(0, 2) - _TAIL))
            tail = rollout.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    for line in reversed(tail.splitlines()):
        if call_id and call_id in line and call_id in (ended := _ended(_entry(line)[2])):
            return ended[call_id]
    return None


def _ended(event: Mapping[str, Any]) -> dict[str, bool]:
    """The call that ends with this event, and whether it failed; older versions tell it by `..._end`."""
    given = event.get("item")
    item = given if isinstance(given, Mapping) else event
    call_id, status = text_in(event, "call_id") or text_in(item, "id"), text_in(item, "status")
    code, success = item.get("exit_code"), item.get("success")
    if not text_in(event, "type").endswith(("_end", "item_completed")) or (code is success is None and not status):
        return {}
    return {call_id: code != 0 if code is not None else success is False or status == "failed"}


def _entry(line: str) -> tuple[str, str, Mapping[str, Any]]:
    """Type, time and content of a line of a rollout; empty where it cannot be read."""
    entry = _read(line)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("payload"), Mapping):
        return "", "", {}
    return text_in(entry, "type"), text_in(entry, "timestamp"), entry["payload"]


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


HOST = Codex()
