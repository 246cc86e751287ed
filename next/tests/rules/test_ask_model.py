"""`rules.capture: model`: a chat model reads the message; what it writes is checked like a note."""

import json

import pytest

from toolmem import AgentSession, ToolMem
from toolmem.errors import ModelError
from toolmem.llm.tokens import estimated_tokens
from toolmem.rules.notes.ask_model import contract
from toolmem.testing.scripted import ScriptedModel

SAID = "--no-verify is cheating, mind you"
NOTE = {
    "quote": SAID,
    "effect": "deny",
    "tools": ["Bash"],
    "when": [{"command": "^git (commit|push)", "word": "--no-verify"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m x"}}],
}


@pytest.fixture
def opened(path):
    def make(*replies):
        texts = iter(replies)

        def reply(prompt):
            answer = next(texts)
            return answer if isinstance(answer, Exception) else json.dumps(answer)

        model = ScriptedModel(reply)
        memory = ToolMem(path, llms={"default": model}, overrides=["rules.capture=model"])
        return memory, model

    return make


def calls(*notes):
    return {"calls": [{"name": "note_demand", "arguments": note} for note in notes]}


def test_what_a_model_reads_in_a_message_is_kept(opened):
    memory, model = opened(calls(NOTE))
    with memory:
        found = memory.capture_rules(SAID, tools=["Bash"], session_id="s")
        assert [rule.rule for rule in found.kept] == [SAID]
        given = {"command": "git push --no-verify"}
        assert memory.check_tool_call("exec_command", given).action == "deny"
    assert len(model.prompts) == 1 and SAID in model.prompts[0]


def test_a_refused_note_is_mended_once(opened):
    wrong = {**NOTE, "when": [{"command": "^git commit"}]}
    memory, model = opened(calls(wrong), calls(NOTE))
    with memory:
        assert len(memory.capture_rules(SAID, tools=["Bash"], session_id="s").kept) == 1
    assert "narrow `when`" in model.prompts[1]


@pytest.mark.parametrize(
    "reply",
    [
        calls({**NOTE, "quote": "the user never said this"}),
        {"calls": "none"},
        "no JSON",
        calls({"quote": 7}),
        ModelError("HTTP 500"),
    ],
)
def test_what_the_user_did_not_say_or_nobody_can_read_keeps_nothing(opened, reply):
    memory, _ = opened(reply, reply)
    with memory:
        assert memory.capture_rules(SAID, tools=["Bash"], session_id="s").kept == []


def test_a_session_asks_its_model_after_the_turn(opened):
    memory, model = opened(calls(NOTE))
    with memory, AgentSession.start(memory, tools=["Bash"]) as session:
        session.messages(SAID)
        told = session.after_turn([{"role": "assistant", "content": "ok"}]).told
        assert "Kept" in told[-1]
        assert session.check("Bash", {"command": "git push --no-verify"}).action == "deny"


def test_a_model_is_not_shown_secrets(opened):
    memory, model = opened({"calls": []})
    with memory:
        memory.capture_rules("use password=sunshine7x from now on", tools=["Bash"], session_id="s")
    assert "sunshine7x" not in model.prompts[0]


def test_the_contract_is_short():
    assert estimated_tokens(contract()) <= 900
