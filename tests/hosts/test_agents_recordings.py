"""What Gemini CLI, Copilot, OpenCode and Cline told their hooks, recorded from the programs, is read right."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from toolmem.hosts.events import HookAnswer, HookEvent
from toolmem.hosts.host import Host, RecordedCall, host_of

RECORDED = Path(__file__).with_name("recorded")
AGENTS = ["gemini", "copilot", "opencode", "cline"]
SHELL = {"gemini": "run_shell_command", "copilot": "Bash", "opencode": "bash", "cline": "run_commands"}
SAID = ["Try everything. Never push to main.", "Go on.", "Let a helper look."]


def payloads(agent: str) -> list[dict[str, Any]]:
    host = host_of(agent)
    files = sorted((RECORDED / f"{agent}-{host.verified}").glob("*.json"))
    assert files, "no recordings of the version that the file says it was checked against"
    return [json.loads(file.read_text(encoding="utf-8"))["payload"] for file in files]


def events(agent: str) -> list[HookEvent]:
    return [event for each in payloads(agent) if (event := host_of(agent).read(each, {})) is not None]


def ended(agent: str) -> list[HookEvent]:
    return [event for event in events(agent) if event.kind == "after_call"]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_the_user_typed_is_told_and_what_a_model_wrote_for_its_helper_is_not(agent: str) -> None:
    said = [event.prompt for event in events(agent) if event.kind == "prompt" and event.prompt]
    assert said[0] == SAID[0]
    assert set(said) <= set(SAID)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_call_has_its_tool_its_arguments_its_output_and_whether_it_failed(agent: str) -> None:
    hello = next(event for event in ended(agent) if "echo hello" in json.dumps(event.arguments))
    assert (hello.tool, hello.output.strip(), hello.failed) == (SHELL[agent], "hello", False)
    nowhere = next(event for event in ended(agent) if "ls /nowhere" in json.dumps(event.arguments))
    assert nowhere.failed is True
    assert "No such file or directory" in nowhere.output
    missing = next(event for event in ended(agent) if "missing.txt" in json.dumps(event.arguments))
    assert missing.failed is True


@pytest.mark.parametrize("agent", ["gemini", "copilot", "opencode"])
def test_a_tool_of_an_mcp_server_is_kept_under_the_servers_own_name_for_it(agent: str) -> None:
    sent = [event for event in events(agent) if "bob@example.com" in json.dumps(event.arguments)]
    assert {(event.tool, event.server) for event in sent} == {("send_email", "mail")}
    assert [event.failed for event in sent if event.kind == "after_call"] == [False, True]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_end_of_a_call_is_known_by_what_its_beginning_said(agent: str) -> None:
    host = host_of(agent)
    begun = [event for event in events(agent) if event.kind == "before_call"]
    for event in ended(agent):
        if host.call_ids:
            assert event.key in {each.key for each in begun}
            assert event.call_id
        else:
            marks = {each.key.partition(" ")[0] for each in begun}
            assert event.key.partition(" ")[0] in marks
            assert not event.call_id


@pytest.mark.parametrize("agent", AGENTS)
def test_no_two_events_of_a_kind_have_one_key(agent: str) -> None:
    keys = [(event.session_id, event.kind, event.key) for event in events(agent) if event.kind != "subagent_start"]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("agent", ["copilot", "opencode"])
def test_what_a_helper_does_belongs_to_the_session_that_sent_it(agent: str) -> None:
    inside = [event for event in events(agent) if "echo below" in json.dumps(event.arguments)]
    sent = next(event for event in events(agent) if event.prompt == "Let a helper look.")
    assert {event.session_id for event in inside} == {sent.session_id}


@pytest.mark.parametrize("agent", AGENTS)
def test_what_stops_a_call_reaches_the_agent_also_where_it_cannot_ask(agent: str) -> None:
    host = host_of(agent)
    call = next(event for event in events(agent) if event.kind == "before_call")
    for action in ("deny", "ask"):
        written = host.write(call, HookAnswer(action=action, reason="toolmem: not run. You said so."))
        assert "toolmem: not run. You said so." in json.dumps(written)
    assert host.write(call, HookAnswer()) == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_text_for_the_model_is_written_where_the_agent_can_take_it(agent: str) -> None:
    host = host_of(agent)
    for event in events(agent):
        written = json.dumps(host.write(event, HookAnswer(action="advise", context="It failed before.")))
        assert ("It failed before." in written) == (event.kind in host.context_at)


@pytest.mark.parametrize("agent", ["gemini", "copilot", "cline"])
def test_the_agents_own_recording_tells_the_calls_that_its_hooks_told(agent: str) -> None:
    host = host_of(agent)
    calls: list[RecordedCall] = []
    for file in sorted((RECORDED / f"{agent}-{host.verified}").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            calls += host.calls_of(lines)
    of_hooks = sorted((event.tool, json.dumps(event.arguments), event.failed) for event in ended(agent))
    recorded = sorted({(call.tool, json.dumps(call.arguments), call.failed) for call in calls})
    inside = '"echo below"'  # a helper's calls may stand in a recording of its own
    assert [each for each in recorded if inside not in each[1]] == [
        each for each in sorted(set(of_hooks)) if inside not in each[1] and each[0] != "spawn_agent"
    ] or {each[:2] for each in of_hooks} <= {each[:2] for each in recorded}
    assert not any(call.denied for call in calls)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_damaged_payload_raises_nothing(agent: str) -> None:
    chance = random.Random(7)
    junk: list[Any] = [None, 7, True, "x", [], [1], {}, {"a": 1}, 1e400, -1]
    host = host_of(agent)
    for payload in payloads(agent):
        for name in payload:
            damaged = {**payload, name: chance.choice(junk)}
            event = host.read(damaged, {})
            if event is not None:
                host.write(event, HookAnswer(action="deny", reason="no"))
        host.read({name: payload[name] for name in list(payload)[: len(payload) // 2]}, {})
    assert host.read({}, {}) is None


@pytest.mark.parametrize("agent", ["gemini", "copilot", "cline"])
def test_a_damaged_recording_gives_what_can_be_read(agent: str) -> None:
    host: Host = host_of(agent)
    lines = ["", "{", "[1, 2]", "null", '{"type": "tool.execution_start", "data": []}', '{"toolCalls": [1, {}]}']
    assert list(host.calls_of(lines)) == []
    assert list(host.transcripts(Path("/nowhere"), Path("/nowhere/home"), {})) == []


def test_gemini_is_never_told_to_ask_for_it_would_wait_for_ever() -> None:
    call = next(event for event in events("gemini") if event.kind == "before_call")
    assert host_of("gemini").write(call, HookAnswer(action="ask", reason="May it?"))["decision"] == "deny"


def test_the_output_of_a_command_that_speaks_like_gemini_is_not_taken_for_its_exit_code() -> None:
    spoken = next(event for event in ended("gemini") if "Exit Code: 1" in json.dumps(event.arguments))
    assert (spoken.output, spoken.failed) == ("Exit Code: 1", False)


def test_opencode_puts_quotation_marks_around_what_was_typed_and_they_are_taken_off() -> None:
    told = payloads("opencode")[0]
    assert told["prompt"] == '"Try everything. Never push to main."'
    assert host_of("opencode").read({**told, "prompt": 'say "a" and "b"'}, {}).prompt == 'say "a" and "b"'


@pytest.mark.parametrize("agent", ["copilot", "opencode", "cline"])
def test_the_file_of_hooks_holds_the_command_as_it_is(agent: str, tmp_path: Path) -> None:
    command = ["/opt/a python's/bin/python", "-P", "-m", "toolmem.hosts", agent, "--store", 'C:\\a "b"\\m.db']
    for scope in ("project", "user"):
        ((path, text),) = host_of(agent).own_files(scope, tmp_path / "p", tmp_path / "h", {}, command).items()
        assert path.is_relative_to(tmp_path / ("p" if scope == "project" else "h"))
        if path.suffix == ".js":
            line = next(line for line in text.splitlines() if line.startswith("const COMMAND = "))
            assert json.loads(line.removeprefix("const COMMAND = ")) == command
        else:
            assert all([each["exec"], *each["args"]] == command for (each,) in json.loads(text)["hooks"].values())


# What Cursor and Goose document, written down here: neither could be run.
_CURSOR = {"conversation_id": "c1", "generation_id": "g1", "workspace_roots": ["/home/user/project"]}
_CALL = {**_CURSOR, "tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_use_id": "call_1\nfc_2", "cwd": "/x"}


def test_cursor_is_read_as_it_is_documented() -> None:
    host = host_of("cursor")
    before = host.read({"hook_event_name": "preToolUse", **_CALL}, {})
    assert before is not None
    assert (before.tool, before.arguments, before.call_id, before.cwd) == (
        "Shell",
        {"command": "ls"},
        "c1/call_1 fc_2",
        "/x",
    )
    after = host.read(
        {"hook_event_name": "postToolUse", **_CALL, "tool_output": '{"output": "a", "exitCode": 0}', "duration": 1500},
        {},
    )
    assert after is not None
    assert (after.output, after.failed, after.seconds, after.key) == ("a", False, 1.5, before.key)
    failed = host.read({"hook_event_name": "postToolUseFailure", **_CALL, "error_message": "no such file"}, {})
    assert failed is not None
    assert (failed.output, failed.failed) == ("no such file", True)
    mail = host.read({"hook_event_name": "preToolUse", **_CALL, "tool_name": "MCP:send_email", "tool_input": "{}"}, {})
    assert mail is not None
    assert (mail.tool, mail.arguments) == ("send_email", {})
    said = host.read({"hook_event_name": "beforeSubmitPrompt", **_CURSOR, "prompt": "Never push to main."}, {})
    assert said is not None
    assert said.prompt == "Never push to main."


def test_cursor_is_told_to_deny_where_it_would_not_ask_and_never_to_allow() -> None:
    host = host_of("cursor")
    before = host.read({"hook_event_name": "preToolUse", **_CALL}, {})
    assert before is not None
    assert host.write(before, HookAnswer(action="ask", reason="May it?"))["permission"] == "deny"
    assert host.write(before, HookAnswer(action="advise", context="It failed before.")) == {}


def test_cursors_own_hooks_stay_beside_ours_and_ours_go_again(tmp_path: Path) -> None:
    host, theirs = host_of("cursor"), {"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}
    with_ours = host.add_hooks(theirs, ["/opt/a b/python", "-m", "toolmem.hosts", "cursor"])
    assert with_ours["hooks"]["preToolUse"] == [{"command": "'/opt/a b/python' -m toolmem.hosts cursor", "timeout": 10}]
    assert host.add_hooks(with_ours, ["/opt/a b/python", "-m", "toolmem.hosts", "cursor"]) == with_ours
    assert host.remove_hooks(with_ours) == theirs


def test_goose_is_read_as_it_is_documented_and_told_to_block() -> None:
    host = host_of("goose")
    call = {"session_id": "s", "tool_name": "developer__shell", "tool_input": {"command": "ls"}, "tool_call_id": "t1"}
    before = host.read({"event": "PreToolUse", **call, "working_dir": "/x"}, {})
    assert before is not None
    assert (before.tool, before.call_id, before.cwd) == ("developer__shell", "s/t1", "/x")
    assert host.write(before, HookAnswer(action="ask", reason="May it?")) == {"decision": "block", "reason": "May it?"}
    failed = host.read({"event": "PostToolUseFailure", **call}, {})
    assert failed is not None
    assert (failed.failed, failed.key) == (True, before.key)
    mail = host.read({"event": "PreToolUse", **call, "tool_name": "mail__send_email"}, {})
    assert mail is not None
    assert (mail.tool, mail.server) == ("send_email", "mail")
    assert (
        host.read({"event": "UserPromptSubmit", "session_id": "s", "message": "Never push."}, {}).prompt
        == "Never push."
    )


def test_gooses_plugin_names_the_command_for_a_shell(tmp_path: Path) -> None:
    files = host_of("goose").own_files("user", tmp_path, tmp_path, {}, ["/a b/python", "-m", "toolmem.hosts", "goose"])
    hooks = json.loads(files[tmp_path / ".agents/plugins/toolmem/hooks/hooks.json"])["hooks"]
    assert hooks["PreToolUse"][0]["hooks"][0]["command"] == "'/a b/python' -m toolmem.hosts goose"
    assert "matcher" not in hooks["PreToolUse"][0]
