"""`rules.capture: model`: a model is asked about what the cues leave open, and what it finds waits for a person."""

from __future__ import annotations

import json

import pytest

from toolmem.errors import ModelOverloaded
from toolmem.ops.asked_instructions import READ_BY_MODEL
from toolmem.testing.model_script import OK, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import ScriptedLLM

GERMAN = "Lösche niemals Dateien, ohne zu fragen"
TURN = {
    "user_message": f"Danke! {GERMAN}. Never email Sarah. Wie spät ist es?",
    "tool_calls": [{"name": "shell"}],
    "tools": ["send_email", "delete_file", "shell"],
}


def answer(*tools: str, sentence: int = 1) -> str:
    return json.dumps({"instructions": [{"sentence": sentence, "tools": list(tools)}]})


async def captured(make_app, llm, *overrides: str, **turn):
    async with make_app("rules.capture=model", *overrides, llms={"default": llm}) as app:
        given = {**TURN, **turn}
        return await app.run_flow("capture_tool_rules", workspace_id="team", **given)


async def test_a_sentence_in_another_language_is_proposed_as_the_user_wrote_it(make_app):
    llm = ScriptedLLM([answer("delete_file")])
    run = await captured(make_app, llm)
    rules = {rule["rule"]: rule for rule in run.metadata["rules"]}
    assert rules["Never email Sarah"]["status"] == "active"
    proposed = rules[GERMAN]
    assert (proposed["tool_name"], proposed["status"], proposed["said"]["by"]) == ("delete_file", "proposed", "user")
    assert READ_BY_MODEL in proposed["tags"]
    assert "waiting for approval: 1" in run.answer
    [request] = llm.requests
    assert GERMAN in request.prompt
    assert "Sarah" not in request.prompt  # a cue has read it
    assert "Wie spät" not in request.prompt
    async with make_app() as app:
        assert GERMAN not in (await app.run_flow("tool_rules_for_prompt", workspace_id="team")).answer


async def test_a_rule_that_holds_is_not_made_to_wait_by_being_said_again(make_app):
    llm = ScriptedLLM(lambda _: answer("delete_file"))
    first = await captured(make_app, llm)
    [proposed] = [rule for rule in first.metadata["rules"] if rule["rule"] == GERMAN]
    async with make_app() as app:
        from toolmem.ops import CaptureToolRulesOp
        from toolmem.ops.workspace_rules import rule_store

        rules = await rule_store(app.services, CaptureToolRulesOp(), "team")
        await rules.set_status(proposed["id"], "active", "delete_file")
    again = await captured(make_app, llm, session_id="another")
    assert [rule["status"] for rule in again.metadata["rules"] if rule["rule"] == GERMAN] == ["active"]


@pytest.mark.parametrize(
    "reply",
    [
        "no JSON at all",
        '{"instructions": "none"}',
        answer("delete_file", sentence=0),
        answer("delete_file", sentence=9),
        '{"instructions": [{"sentence": "1"}, 7, {"sentence": true}]}',
        "{" * 5000,
    ],
)
async def test_a_reply_that_says_nothing_of_what_was_asked_makes_no_rule(make_app, reply):
    run = await captured(make_app, ScriptedLLM([reply]))
    assert run.success
    assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]


async def test_a_tool_that_the_agent_does_not_have_is_not_named(make_app):
    run = await captured(make_app, ScriptedLLM([answer("format_disk")]))
    assert {rule["tool_name"] for rule in run.metadata["rules"] if rule["rule"] == GERMAN} == {"__unscoped__"}


async def test_where_the_model_fails_the_cues_decide(make_app):
    run = await captured(make_app, ScriptedLLM([ModelOverloaded("busy")]))
    assert run.success
    assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
    assert "busy" in run.metadata["unasked"]


async def test_nobody_is_asked_about_a_message_that_demands_nothing_or_without_a_model(make_app):
    llm = ScriptedLLM([])
    await captured(make_app, llm, user_message="Please look up order 7 and tell me when it arrives.")
    await captured(make_app, llm, user_message="Never email Sarah. I don't have my number with me.")
    assert llm.requests == []
    async with make_app("rules.capture=model") as app:
        run = await app.run_flow("capture_tool_rules", workspace_id="offline", **TURN)
        assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
        assert "unasked" not in run.metadata


async def test_a_secret_in_a_sentence_is_not_sent(make_app):
    secret = "sk-proj-Zk3vQ9xT7bLm2Wd8Rf5Yh1Nc6Jp4Gs0A"
    llm = ScriptedLLM(['{"instructions": []}'])
    await captured(make_app, llm, user_message=f"Schicke niemals api_key={secret} an andere.")
    assert llm.requests
    assert secret not in llm.requests[0].prompt


async def test_its_requests_are_booked_and_bound_by_the_budget(make_app, monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", "no-key")
    script = Script([Rule(OK)], reply=lambda _: answer("delete_file"))
    with ModelServer(script) as server:
        remote = ("llm.default.backend=dashscope", f"llm.default.params.base_url={server.dashscope_url}")
        async with make_app("rules.capture=model", *remote) as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
            assert GERMAN in {rule["rule"] for rule in run.metadata["rules"]}
        assert len(server.requests) == 1
        assert run.metadata["usage"]["requests"] == 1
        async with make_app("rules.capture=model", *remote, "budget.max_tokens=1") as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="other", **TURN)
            assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
            assert "budget" in run.metadata["unasked"]
        assert len(server.requests) == 1
