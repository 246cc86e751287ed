"""`rules.compile: llm`: a model is asked for the condition of what only reminds, and what it compiles waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolmem.errors import ConfigError, ModelOverloaded
from toolmem.guard.decision import against_rules
from toolmem.guard.view import view_of
from toolmem.ops import CaptureToolRulesOp
from toolmem.ops.workspace_rules import rule_store
from toolmem.rules.checked_rules import checked_rules
from toolmem.rules.rule_checks import COMPILED_BY_MODEL
from toolmem.testing.model_script import OK, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import ScriptedLLM

SENTENCE = "Never email the quarterly numbers to Sarah"
TURN: dict[str, Any] = {
    "user_message": f"{SENTENCE}. Never email Bob.",
    "tools": [{"name": "send_email", "inputSchema": {"properties": {"to": {"type": "string"}}}}],
    "session_id": "s1",
}
WHEN = {
    "type": "object",
    "required": ["targets"],
    "properties": {"targets": {"type": "array", "contains": {"const": "sarah@example.com"}}},
}


def reply(when: Any = WHEN, effect: Any = "deny", instruction: Any = 1) -> str:
    return json.dumps({"conditions": [{"instruction": instruction, "effect": effect, "when": when}]})


async def captured(make_app, llm, *overrides: str, **turn):
    async with make_app("rules.compile=llm", *overrides, llms={"default": llm}) as app:
        return await app.run_flow("capture_tool_rules", workspace_id="team", **{**TURN, **turn})


async def stored(make_app) -> list:
    async with make_app() as app:
        rules = await rule_store(app.services, CaptureToolRulesOp(), "team")
        return (await rules.all_rules(inactive=True))[0]


async def test_what_a_model_compiled_waits_beside_the_reminder_with_the_sentence(make_app):
    llm = ScriptedLLM([reply()])
    run = await captured(make_app, llm)
    assert "waiting for approval: 1" in run.answer
    rules = {rule.rule: rule for rule in await stored(make_app)}
    assert (rules[SENTENCE].status, rules[SENTENCE].effect, rules[SENTENCE].priority) == (
        "active",
        "remind",
        "critical",
    )
    (waiting,) = [rule for rule in rules.values() if rule.status == "proposed"]
    assert (waiting.effect, waiting.when, waiting.priority) == ("deny", WHEN, "normal")
    assert (waiting.said.by, waiting.said.sentence, waiting.said.session) == ("user", SENTENCE, "s1")
    assert waiting.tags == [COMPILED_BY_MODEL]
    assert "deny: a target `sarah@example.com`" in waiting.rule
    [request] = llm.requests
    assert SENTENCE in request.prompt
    assert "Bob" not in request.prompt  # offline has read it


async def test_once_approved_it_stops_calls_in_the_users_words_and_no_prompt_shows_it(make_app):
    await captured(make_app, ScriptedLLM([reply()]))
    (waiting,) = [rule for rule in await stored(make_app) if rule.status == "proposed"]
    async with make_app() as app:
        rules = await rule_store(app.services, CaptureToolRulesOp(), "team")
        await rules.set_status(waiting.id, "active")
        bound = checked_rules((await rules.all_rules())[0], app.clock.now())["send_email"]
        (found,) = against_rules(bound, view_of("send_email", {"to": "sarah@example.com"}), "enforce")
        assert found.action == "deny"
        assert f": {SENTENCE}." in found.text
        assert "as a model reads it" not in (await app.run_flow("tool_rules_for_prompt", workspace_id="team")).answer


async def test_it_is_asked_once_while_its_answer_waits_or_holds(make_app):
    llm = ScriptedLLM([reply()])
    await captured(make_app, llm)
    await captured(make_app, llm, session_id="s2")
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        "no JSON at all",
        '{"conditions": "none"}',
        "[1]",
        "{" * 5000,
        reply(instruction=0),
        reply(instruction=7),
        reply(instruction=True),
        reply(effect="forbid"),
        reply(effect=None, when=None),
        reply(effect="deny", when=None),
        reply(effect="remind"),
        reply(when={"type": "object"}),
        reply(when={"$ref": "file:///etc/passwd"}),
        reply(when={"type": "object", "properties": {"targets": {}}}),
        reply(when={"type": "string", "pattern": "(?=x)y"}),
        reply(when={"type": "object", "required": ["targets"], "enum": ["x" * 9000]}),
    ],
)
async def test_a_reply_that_could_not_be_put_leaves_the_reminder(make_app, text):
    run = await captured(make_app, ScriptedLLM([text]))
    assert run.success
    assert {rule.status for rule in await stored(make_app)} == {"active"}
    assert {rule.rule: rule.effect for rule in await stored(make_app)} == {
        SENTENCE: "remind",
        "Never email Bob": "deny",
    }


async def test_where_the_model_fails_the_reminder_stays_and_it_is_said(make_app):
    run = await captured(make_app, ScriptedLLM([ModelOverloaded("busy")]))
    assert run.success
    assert "busy" in run.metadata["unasked"]
    assert {rule.status for rule in await stored(make_app)} == {"active"}


async def test_nobody_is_asked_offline_without_a_model_or_where_all_can_be_checked(make_app):
    llm = ScriptedLLM([])
    async with make_app(llms={"default": llm}) as app:
        await app.run_flow("capture_tool_rules", workspace_id="offline", **TURN)
    await captured(make_app, llm, user_message="Never email Bob.")
    await captured(make_app, llm, user_message="What is the weather?")
    assert llm.requests == []
    async with make_app("rules.compile=llm") as app:
        run = await app.run_flow("capture_tool_rules", workspace_id="alone", **TURN)
        assert "unasked" not in run.metadata


async def test_a_secret_in_an_instruction_is_not_sent(make_app):
    secret = "sk-proj-Zk3vQ9xT7bLm2Wd8Rf5Yh1Nc6Jp4Gs0A"
    llm = ScriptedLLM(['{"conditions": []}'])
    await captured(make_app, llm, user_message=f"Never email the key api_key={secret} to customers on weekends.")
    assert llm.requests
    assert secret not in llm.requests[0].prompt


async def test_an_unknown_way_to_compile_is_refused(make_app):
    with pytest.raises(ConfigError, match=r"rules\.compile"):
        async with make_app("rules.compile=model"):
            pass


async def test_its_requests_are_booked_and_bound_by_the_budget(make_app, monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", "no-key")
    script = Script([Rule(OK)], reply=lambda _: reply())
    with ModelServer(script) as server:
        remote = ("llm.default.backend=dashscope", f"llm.default.params.base_url={server.dashscope_url}")
        async with make_app("rules.compile=llm", *remote) as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
            assert "waiting for approval: 1" in run.answer
        assert len(server.requests) == 1
        assert run.metadata["usage"]["requests"] == 1
        async with make_app("rules.compile=llm", *remote, "budget.max_tokens=1") as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="other", **TURN)
            assert "budget" in run.metadata["unasked"]
        assert len(server.requests) == 1
