"""A session that a hook recorded and its transcript agree: on names, arguments, and each call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolmem import ToolMem
from toolmem.hooks.agents import AGENTS
from toolmem.hooks.protocol import read
from toolmem.research.importing import import_recordings

RECORDED = Path(__file__).with_name("recorded")
NAMES = ("claude-code-2.1.330", "codex-0.169.0", "gemini-0.61.0", "opencode-1.18.33")
TIME = "2026-11-22T23:48:54Z"


def claude_code(event, payload):
    call = {"type": "tool_use", "id": event.key, "name": payload["tool_name"]}
    answer = {"type": "tool_result", "tool_use_id": event.key, "content": "done"}
    for role, block in ("assistant", {**call, "input": event.input}), ("user", answer):
        line = {"type": role, "uuid": "u", "sessionId": event.session, "timestamp": TIME}
        yield {**line, "agentId": "a1", "message": {"role": role, "content": [block]}}


def gemini(event, payload):
    server = payload.get("mcp_context", {}).get("server_name")
    title = f"{event.tool} ({server} MCP Server)" if server else event.tool
    call = {"id": f"x_{payload['timestamp']}", "name": payload["tool_name"], "args": event.input}
    result = [{"functionResponse": {"response": {"output": "done"}}}]
    yield {"sessionId": event.session, "projectHash": "p"}
    yield {"type": "gemini", "toolCalls": [{**call, "result": result, "displayName": title}]}


def opencode(event, payload):
    part = {"type": "tool", "callID": event.key, "tool": payload["tool"]}
    state = {"input": event.input, "output": "done", "status": "completed"}
    info = {"id": "ses_below", "parentID": event.session}
    yield {"info": info, "messages": [{"info": {}, "parts": [{**part, "state": state}]}]}


WRITERS = {"claude-code": claude_code, "gemini": gemini, "opencode": opencode}


@pytest.fixture(params=NAMES, ids=lambda name: name.partition("-")[0])
def session(request, host, project, tmp_path):
    """An agent's hook that got the recorded events, and the transcript of the same calls."""
    host.agent = AGENTS[request.param.rpartition("-")[0]]
    path = tmp_path / "transcript.jsonl"
    lines = []
    for line in (RECORDED / f"{request.param}.jsonl").read_text(encoding="utf-8").splitlines():
        payload = {**json.loads(line)["payload"], "cwd": str(project), "project": str(project)}
        payload.pop("project" if host.agent.name != "opencode" else "", None)
        event = read(host.agent, payload, {})
        if event and event.kind in ("before_call", "after_call"):
            host.raw(json.dumps(payload).encode())
            if event.kind == "after_call" and host.agent.name in WRITERS:
                lines += map(json.dumps, WRITERS[host.agent.name](event, payload))
    path.write_text("\n".join(lines) or (RECORDED / "codex_rollout.txt").read_text())
    return host, path


def forms(calls):
    return {(c.tool_name, json.dumps(c.input), c.metadata.get("server")) for c in calls}


def test_a_transcript_agrees_with_the_hook_and_no_call_is_counted_twice(session, tmp_path):
    host, path = session
    recorded = host.calls()
    with ToolMem(str(tmp_path / "fresh.db")) as memory:
        import_recordings(memory, [path])
        imported = [each.call for each in memory.services.store().call_log(memory.workspace_name)]
    of_server = [c for c in recorded if host.agent.name == "opencode" and "server" in c.metadata]
    unlike = {name for name, *_ in forms(recorded) - forms(imported)}
    assert unlike == {each.tool_name for each in of_server}  # its transcripts name no server
    assert {c.conversation_id for c in imported} <= {c.conversation_id for c in recorded}
    with ToolMem(str(host.store().location)) as memory:
        found = import_recordings(memory, [path])
        assert found.duplicates == len(recorded) - len(of_server) > 5
        assert import_recordings(memory, [path], again=True).calls == 0


def test_an_imported_record_takes_no_id_of_a_call_that_a_hook_sees_later(host, tmp_path):
    host.after("make", "made", key="toolu_1")
    path = tmp_path / "own.jsonl"
    for key in ("toolu_1", "toolu_2"):
        line = {"tool_name": "Bash", "input": {}, "output": "forged", "id": key}
        path.write_text(json.dumps(line))
        with ToolMem(str(host.store().location)) as memory:
            assert import_recordings(memory, [path]).calls == (key == "toolu_2")
            assert import_recordings(memory, [path], again=True).calls == 0
    host.after("make", "made again", key="toolu_2")
    assert sorted(each.output for each in host.calls()) == ["forged", "made", "made again"]


def test_a_real_call_is_kept_whatever_id_an_imported_record_had(tmp_path, memory):
    path = tmp_path / "own.jsonl"
    for key in ("call_1", "call_2"):
        record = {"tool_name": "search", "output": "forged", "id": key}
        path.write_text(json.dumps({**record, "metadata": {"format": "otel"}}))
        assert import_recordings(memory, [path]).calls == 1
        assert import_recordings(memory, [path], again=True).calls == 0
        assert memory.add([{**record, "output": "real"}]).evaluation.duplicates == 0
        assert import_recordings(memory, [path], again=True).calls == 0


def codex(session, *keys, parent=""):
    names = [name for name in (session, parent) if name]
    lines = [{"type": "session_meta", "payload": {"id": name}} for name in names]
    for key in keys:
        call = {"type": "function_call", "name": "shell", "arguments": '{"command": "ls"}'}
        answer = {"type": "function_call_output", "output": "done"}
        for each in (call, answer):
            lines.append({"type": "response_item", "payload": {**each, "call_id": key}})
    return "".join(f"{json.dumps({**line, 'timestamp': TIME})}\n" for line in lines)


def test_copies_and_forks_of_a_session_that_a_hook_recorded_add_only_their_own_calls(
    tmp_path, memory
):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "copy"):
        (folder / f"{name}.jsonl").write_text(codex("s1", "call_0", "call_1"))
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    ids = ("s1/call_0", "s1/call_1")
    memory.add([{"tool_name": "Bash", "id": each, "output": "done"} for each in ids])
    again = [folder, folder / "link.jsonl", folder / ".." / "folder" / "a.jsonl"]
    assert import_recordings(memory, again).calls == 0
    fork = tmp_path / "fork.jsonl"
    fork.write_text(codex("s2", "call_0", "call_1", "call_2", parent="s1"))
    assert import_recordings(memory, [fork]).calls == 1
    assert len(memory.calls(conversation_id="s2")) == 1
