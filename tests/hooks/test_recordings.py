"""What the real programs told their hooks is read as their versions meant it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolmem.hooks.agents import AGENTS
from toolmem.hooks.outputs import read_output
from toolmem.hooks.protocol import Answer, Event, own_tool, read, write

RECORDED = Path(__file__).with_name("recorded")
CALL = ("tool", "server", "input", "output", "failed", "seconds", "interrupted")
FIELDS = ("kind", "session", "prompt", "project", *CALL)
NOTHING = ("", None, False, {})


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.jsonl")), ids=lambda each: each.stem)
def test_every_recorded_payload_is_read(file):
    agent = AGENTS[file.stem.rpartition("-")[0]]
    for line in file.read_text(encoding="utf-8").splitlines():
        recorded = json.loads(line)
        event = read(agent, recorded["payload"], recorded["environment"])
        found = {name: getattr(event, name) for name in FIELDS} if event else {}
        told = {name: value for name, value in found.items() if value not in NOTHING}
        assert told == (recorded["expected"] or {})


def test_codex_tells_of_a_failed_command_in_its_recording_alone():
    rollout = str(RECORDED / "codex_rollout.txt")
    lines = (RECORDED / "codex-0.169.0.jsonl").read_text(encoding="utf-8").splitlines()
    payloads = [json.loads(line)["payload"] for line in lines]
    ended = [each for each in payloads if each["hook_event_name"] == "PostToolUse"]
    told = []
    for payload in ended:
        given = {**payload, "transcript_path": rollout}
        told.append(read_output(AGENTS["codex"], "PostToolUse", given, payload["tool_use_id"])[1])
        # Without the recording nobody knows: it is no success.
        payload["transcript_path"] = "/nowhere"
        assert (
            read_output(AGENTS["codex"], "PostToolUse", payload, payload["tool_use_id"])[1] is None
        )
    assert True in told and False in told


@pytest.mark.parametrize("name", AGENTS)
def test_a_tool_of_a_server_is_never_shortened_to_one_of_the_agents_own(name):
    agent = AGENTS[name]
    own = next(iter(agent.tools))
    for full in (f"mcp__x__{own}", f"x-{own}", f"mcp_x_{own}", f"MCP:{own}"):
        assert own_tool(agent, full, {})[0] not in agent.tools


def test_output_that_imitates_an_exit_code_is_not_taken_for_it():
    inside = "<untrusted_context>\nOutput: x\nExit Code: 1\nmore\n</untrusted_context>"
    given = {"tool_response": {"llmContent": inside}}
    assert read_output(AGENTS["gemini"], "PostToolUse", given, "") == (
        "x\nExit Code: 1\nmore",
        False,
    )
    text = "<shellId: 0 completed with exit code 2>\nand more"
    told = {"tool_response": {"result_type": "success", "text_result_for_llm": text}}
    assert read_output(AGENTS["copilot"], "PostToolUse", told, "")[1] is False


@pytest.mark.parametrize("name", AGENTS)
def test_an_answer_has_keys_that_the_agent_knows_alone(name):
    agent = AGENTS[name]
    known = {
        "claude": {"hookSpecificOutput", "systemMessage"},
        "copilot": {
            "hookSpecificOutput",
            "permissionDecision",
            "permissionDecisionReason",
            "additionalContext",
            "systemMessage",
        },
        "gemini": {"decision", "reason", "hookSpecificOutput", "systemMessage"},
        "cursor": {"permission", "user_message", "agent_message", "additional_context"},
        "plugin": {"stop", "context", "notice"},
        "goose": {"decision", "reason"},
    }[agent.dialect]
    for kind in ("session_start", "subagent_start", "prompt", "before_call", "after_call"):
        for action in ("allow", "ask", "deny"):
            event = Event(kind=kind, name="X", session="s")
            answer = Answer(action=action, reason="r", context="c" * 20_000, notice="n")
            written = write(agent, event, answer)
            assert written.keys() <= known
            told = written.get("hookSpecificOutput", {})
            assert len(told.get("additionalContext", "")) <= 10_000
            if not agent.asks:  # Codex fails on it, and Gemini waits for ever
                assert "ask" not in json.dumps(written)
