"""What every adapter promises, of each framework's real agent with its own fake model.

`make test-frameworks` runs this in an environment that has the frameworks.
"""

import importlib
import logging

import pytest

from toolmem import ToolMem
from toolmem.guard import Guard

pytestmark = pytest.mark.frameworks

NAMES = ["langchain", "openai_agents", "pydantic_ai", "claude_agent_sdk", "agentscope"]
SARAH = ("send_email", {"to": "sarah@example.com", "text": "hi"})
BOB = ("send_email", {"to": "bob@example.com", "text": "hi"})
GONE = ("crash", {"path": "gone.txt"})
NEVER = "Never email sarah@example.com."
NOT_RUN = "toolmem: not run"
SAID = "Sarah has left the company, so no mail to Sarah from us any more"
NOTE = (
    "note_demand",
    {
        "quote": SAID,
        "effect": "deny",
        "lasting": "always",
        "tools": ["send_email"],
        "when": [{"target": "sarah@"}],
        "stops": [{"tool": "send_email", "arguments": {"to": "sarah@example.com"}}],
        "passes": [{"tool": "send_email", "arguments": {"to": "bob@example.com"}}],
    },
)


@pytest.fixture(params=NAMES)
def agent(request):
    made = importlib.import_module(f"frameworks.with_{request.param}")
    importlib.import_module("frameworks.tools_at_hand").ran.clear()
    return made


@pytest.fixture
def ran():
    return importlib.import_module("frameworks.tools_at_hand").ran


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ToolMem(tmp_path / "m.db") as opened:
        yield opened


def tool_of(call):
    return call.tool_name.rpartition("__")[2]  # the Claude SDK names the server before it


def kept(memory, tool):
    return [call for call in memory.calls() if tool_of(call) == tool]


def test_a_call_runs_and_is_kept_once_in_every_way_of_running(agent, memory, ran):
    for number, way in enumerate(agent.ways, start=1):
        seen = agent.run(memory, [[BOB]], way=way)
        assert seen.raised is None
        assert ran == [("send_email", "bob@example.com")] * number
        assert "sent to bob@example.com" in seen.results[0]
        calls = kept(memory, "send_email")
        assert len(calls) == number
        assert (calls[-1].success, calls[-1].input) == (True, BOB[1])
        assert calls[-1].time_cost > 0 and calls[-1].metadata["conversation_id"] == "c1"


def test_what_the_user_says_binds_at_once_and_in_later_conversations(agent, memory, ran):
    for number, way in enumerate(agent.ways, start=1):
        seen = agent.run(memory, [[SARAH], [BOB]], say=NEVER, way=way, conversation=f"c{number}")
        assert NOT_RUN in seen.results[0] and "sarah@example.com" in seen.results[0]
        assert "sent to bob" in seen.results[1]
        assert {each for each in ran} == {("send_email", "bob@example.com")}
    seen = agent.run(memory, [[SARAH]], conversation="other")
    assert NOT_RUN in seen.results[0]
    assert NEVER.strip(".") in seen.prompts[0] and "You are an agent." in seen.prompts[0]
    assert len({each.rule for each in memory.rules.all_rules().rules if each.is_users}) == 1


@pytest.mark.parametrize("answer", [None, True, False])
def test_a_call_that_needs_consent_runs_when_the_user_gives_it(agent, memory, ran, answer):
    memory.capture_rules("ask me before you delete a file", tools=["delete_file"])
    on_ask = None if answer is None else lambda decision: answer
    seen = agent.run(memory, [[("delete_file", {"path": "a"})]], on_ask=on_ask)
    assert ran == ([("delete_file", "a")] if answer else [])
    assert ("deleted a" in seen.results[0]) is bool(answer)
    if answer is None:
        assert "ask the user first" in seen.results[0]


def test_what_is_kept_and_stopped_is_told_and_a_broken_teller_lets_nothing_run(agent, memory, ran):
    told = []

    def tell(line):
        told.append(line)
        raise ValueError("the screen is gone")

    for say in (NEVER, "Write to her."):
        seen = agent.run(memory, [[SARAH]], say=say, conversation="told", on_told=tell)
        assert NOT_RUN in seen.results[0]
    assert ran == []
    assert any(line.startswith("Kept: “") for line in told)
    assert any("To lift the rule: lift" in line for line in told)


def test_a_failure_is_kept_and_the_framework_treats_it_as_ever(agent, memory, ran):
    for way in agent.ways:
        seen = agent.run(memory, [[GONE]], way=way, conversation=way)
        [*_, call] = kept(memory, "crash")
        assert call.success is False and "no such file: gone.txt" in call.output
        if agent.tells_error:
            assert seen.raised is None and agent.tells_error in seen.results[0]
        else:
            assert "no such file: gone.txt" in str(seen.raised)


def test_the_unchanged_repeat_of_a_failure_is_stopped(agent, memory, ran):
    if agent.tells_error:
        seen = agent.run(memory, [[GONE], [GONE]])
        assert NOT_RUN in seen.results[1]
        assert len(ran) == 1
    else:  # the run ends with the error, and the same message is answered again
        agent.run(memory, [[GONE]], say="")
        seen = agent.run(memory, [[GONE]], say="")
        assert NOT_RUN in seen.results[0]


def test_calls_at_once_are_each_decided_and_kept_once(agent, memory, ran):
    memory.capture_rules(NEVER, tools=["send_email"])
    names = ["anna", "ben", "carl"]
    step = [("wait", {"name": name}) for name in names] + [SARAH, BOB]
    for way in agent.ways:
        seen = agent.run(memory, [step], way=way, conversation=way)
        assert [f"waited for {n}" in r for n, r in zip(names, seen.results, strict=False)] == [
            True
        ] * 3
        assert NOT_RUN in seen.results[3] and "sent to bob" in seen.results[4]
    times = len(agent.ways)
    assert sorted(call.input["name"] for call in kept(memory, "wait")) == sorted(names * times)
    assert [call.success for call in kept(memory, "send_email") if call.success] == [True] * times


def test_what_the_model_notes_of_the_users_words_binds_from_the_next_call_on(agent, memory, ran):
    if not agent.takes_notes:
        pytest.skip("hooks offer the model no tools")
    seen = agent.run(memory, [[NOTE], [SARAH], [BOB]], say=SAID)
    assert '"outcome": "kept"' in seen.results[0]
    assert NOT_RUN in seen.results[1] and SAID in seen.results[1]
    assert ran == [("send_email", "bob@example.com")]
    assert kept(memory, "note_demand") == []
    refused = agent.run(memory, [[NOTE]], say="go on", conversation="c2")
    assert '"outcome": "refused"' in refused.results[0]


@pytest.mark.parametrize("method", ["before", "after"])
def test_trouble_of_ours_never_reaches_the_agent(agent, memory, ran, method, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise RuntimeError("ours")

    monkeypatch.setattr(Guard, method, broken)
    with caplog.at_level(logging.ERROR):
        seen = agent.run(memory, [[BOB]])
    assert seen.raised is None and "sent to bob@example.com" in seen.results[0]
    assert "ours" in caplog.text


def test_a_store_that_is_away_stops_no_call_unless_the_guard_is_closed(agent, tmp_path, ran):
    (tmp_path / "m.db").mkdir()
    seen = agent.run(ToolMem(tmp_path / "m.db"), [[BOB]], conversation="c1")
    assert "sent to bob@example.com" in seen.results[0]
    closed = ToolMem(tmp_path / "m.db", overrides=["guard.on_error=closed"])
    assert NOT_RUN in agent.run(closed, [[BOB]], conversation="c1").results[0]
    assert len(ran) == 1


def test_a_conversation_is_made_where_none_is_given(agent, memory, ran):
    agent.run(memory, [[BOB]], conversation="")
    agent.run(memory, [[BOB]], conversation="")
    assert len({call.metadata["conversation_id"] for call in memory.calls()}) == 2
