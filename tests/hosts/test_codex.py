"""Codex's events, answers, settings and recordings, on what its version 0.169.0 told its hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolmem.hosts.codex import HOST, MOST_CONTEXT
from toolmem.hosts.events import HookAnswer, HookEvent

RECORDED = Path(__file__).parent / "recorded" / "codex-0.169.0"
SESSION = RECORDED / "session-1.jsonl"
COMMAND = ["/usr/bin/python3", "-P", "-m", "toolmem.hosts", "codex", "--on-error", "closed"]
# As PreToolUse's output is parsed: a key that is none of these fails the hook, and the call runs.
KNOWN_KEYS = {"hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"}


def told(name: str, **changes: Any) -> HookEvent | None:
    (path,) = RECORDED.glob(f"{name}.json")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    return HOST.read({**recorded["payload"], **changes}, recorded["environment"])


def event(name: str, **changes: Any) -> HookEvent:
    read = told(name, **changes)
    assert read is not None
    return read


def test_a_session_its_prompt_and_its_compaction_are_read() -> None:
    assert event("01-*").kind == "session_start"
    assert [event(name).origin for name in ("01-*", "17-*", "23-*")] == ["startup", "resume", "compact"]
    prompt = event("02-*")
    assert (prompt.kind, prompt.prompt) == ("prompt", "Try everything. Never push to main.")
    assert prompt.key
    assert event("21-*").kind == "compaction"
    assert event("16-*").kind == "session_end"
    assert event("15-*").kind == "turn_end"


def test_what_the_model_tells_a_subagent_is_no_demand_of_the_users() -> None:
    assert event("02-*", agent_id="a1").prompt == ""


def test_a_call_is_read_with_the_id_of_its_session() -> None:
    call = event("03-*")
    assert (call.kind, call.tool, call.arguments) == ("before_call", "Bash", {"command": "echo hello"})
    assert call.call_id == f"{call.session_id}/{call.key}"


def test_a_tool_of_an_mcp_server_has_the_servers_own_name() -> None:
    call = event("09-*")
    assert (call.kind, call.tool, call.server, call.output) == ("after_call", "send_email", "mail", "sent")


@pytest.mark.parametrize(("name", "failed"), [("04-*", False), ("06-*", True), ("09-*", False)])
def test_whether_a_call_failed_is_read_from_the_recording_that_codex_writes_before_it_asks(
    name: str, failed: bool
) -> None:
    assert event(name, transcript_path=str(SESSION)).failed is failed


@pytest.mark.parametrize("transcript", [None, "", "/nowhere/rollout.jsonl", "\0"])
def test_without_a_recording_nobody_knows_whether_a_call_failed(transcript: str | None) -> None:
    assert event("06-*", transcript_path=transcript).failed is None


def test_the_end_of_a_call_is_found_in_a_long_recording_of_damaged_lines(tmp_path: Path) -> None:
    call_id = event("06-*").key
    noise = f'{{"type": "event_msg", "payload": {{"item": "{call_id}"}}}}\n{{broken {call_id}\n[]\n' * 20_000
    path = tmp_path / "rollout.jsonl"
    path.write_text(noise + SESSION.read_text(encoding="utf-8") + noise[:1000], encoding="utf-8")
    assert event("06-*", transcript_path=str(path)).failed is True


def test_the_recording_tells_the_calls_that_hooks_are_told_of() -> None:
    calls = list(HOST.calls_of(SESSION.read_text(encoding="utf-8").splitlines()))
    tools = [call.tool for call in calls]
    assert tools == ["Bash", "Bash", "Bash", "send_email", "send_email", "Bash", "Bash", "Bash", "Bash"]
    assert [call.failed for call in calls] == [False, True, False, False, True, False, False, False, False]
    assert calls[0].arguments == {"command": "echo hello"}
    assert (calls[0].output, calls[4].output) == ("hello\n", "Error: the mailbox is unavailable")
    told_ids = {event(f"{path.stem}").call_id for path in RECORDED.glob("*-PreToolUse-*.json")}
    assert {call.call_id for call in calls} == told_ids


def test_older_recordings_tell_the_end_of_a_command_by_an_event_of_its_own() -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "call_1"}},
        {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "call_1", "exit_code": 3}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "call_1", "output": "no"}},
    ]
    lines[1]["payload"] |= {"arguments": '{"command": ["bash", "-lc", "make"]}'}
    (call,) = HOST.calls_of(map(json.dumps, lines))
    assert (call.call_id, call.arguments, call.output, call.failed) == ("s/call_1", {"command": "make"}, "no", True)


@pytest.mark.parametrize("before", ["Command", "Tool call"])
def test_a_call_that_was_stopped_is_told_as_denied(before: str) -> None:
    output = f"{before} blocked by PreToolUse hook: toolmem: not run. The user said: Never push to main."
    asked = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": '{"cmd": "git push"}'}
    answered = {"type": "function_call_output", "call_id": "c", "output": output}
    lines = [json.dumps({"type": "response_item", "payload": payload}) for payload in (asked, answered)]
    (call,) = HOST.calls_of(lines)
    assert call.denied


@pytest.mark.parametrize("line", ["", "[]", "null", "{", '{"type": "event_msg", "payload": 3}', '{"payload": {}}' * 2])
def test_a_damaged_line_of_a_recording_is_passed_over(line: str) -> None:
    assert len(list(HOST.calls_of([line, *SESSION.read_text(encoding="utf-8").splitlines(), line]))) == 9


def test_recordings_are_those_of_the_project_newest_first(tmp_path: Path) -> None:
    folder = tmp_path / ".codex" / "sessions" / "2026" / "11"
    text = SESSION.read_text(encoding="utf-8")
    for day, project in (("21", "/home/user/project"), ("22", "/home/user/other"), ("23", "/home/user/project")):
        (folder / day).mkdir(parents=True)
        (folder / day / f"rollout-2026-11-{day}.jsonl").write_text(text.replace("/home/user/project", project))
    (folder / "rollout-2026-11-24.jsonl").write_text("")
    found = list(HOST.transcripts(Path("/home/user/project"), tmp_path, {}))
    assert [path.parent.name for _, path in found] == ["23", "21"]
    assert {session for session, _ in found} == {event("01-*").session_id}


@pytest.mark.parametrize("action", ["deny", "ask"])
def test_what_codex_cannot_ask_is_stopped_and_only_keys_that_it_knows_are_written(action: Any) -> None:
    answer = HookAnswer(action=action, reason="toolmem: not run; ask the user first.", notice="One call was stopped.")
    written = HOST.write(event("03-*"), answer)
    assert set(written) == {"hookSpecificOutput", "systemMessage"}
    assert set(written["hookSpecificOutput"]) <= KNOWN_KEYS
    assert written["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_call_that_is_stopped_without_a_reason_gets_one() -> None:
    written = HOST.write(event("03-*"), HookAnswer(action="deny"))
    assert written["hookSpecificOutput"]["permissionDecisionReason"]


def test_advice_does_not_decide_and_is_bounded() -> None:
    written = HOST.write(event("03-*"), HookAnswer(action="advise", context="a" * 20_000))["hookSpecificOutput"]
    assert "permissionDecision" not in written
    assert len(written["additionalContext"]) == MOST_CONTEXT


def test_the_hooks_are_lines_for_a_shell_with_no_key_that_codex_does_not_know() -> None:
    added = HOST.add_hooks({"hooks": {}}, ["/opt/my python", *COMMAND[1:]])
    hooks = [hook for entries in added["hooks"].values() for entry in entries for hook in entry["hooks"]]
    assert {key for hook in hooks for key in hook} == {"type", "command", "timeout"}
    assert all(hook["command"].startswith("'/opt/my python' -P -m toolmem.hosts codex") for hook in hooks)
    assert added["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert "PostToolUseFailure" not in added["hooks"]
    assert HOST.remove_hooks(added) == {}


def test_its_folder_is_where_codex_home_says() -> None:
    project, home = Path("/p"), Path("/h")
    assert HOST.settings_file("project", project, home, {}) == Path("/p/.codex/hooks.json")
    assert HOST.settings_file("user", project, home, {}) == Path("/h/.codex/hooks.json")
    assert HOST.settings_file("user", project, home, {"CODEX_HOME": "/c"}) == Path("/c/hooks.json")


def test_the_made_up_event_is_one_that_is_read() -> None:
    read = HOST.read(HOST.synthetic("s", "/p"), {})
    assert read is not None
    assert (read.kind, read.tool, read.session_id, read.cwd) == ("before_call", "Bash", "s", "/p")
