"""`rules.capture: model`: a chat model notes what a message demands, and what it notes is checked like every note."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolmem import AgentSession
from toolmem.errors import ModelOverloaded
from toolmem.testing.model_script import OK, Rule, Script
from toolmem.testing.model_server import ModelServer
from toolmem.testing.scripted_llm import ScriptedLLM

SAID = "--no-verify is cheating. The hooks are there for a reason"
GERMAN = "Auf main wird nicht gepusht"
NOTE: dict[str, Any] = {
    "quote": SAID,
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "when": [{"command": r"^git (commit|push)\b", "word": "--no-verify"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m wip"}}],
}
IN_GERMAN = {
    **NOTE,
    "quote": GERMAN,
    "when": [{"command": r"^git push\b.*\bmain\b"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "git push origin main"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "git push origin dev"}}],
}
TURN: dict[str, Any] = {"user_message": f"Thanks! {SAID}.", "tools": ["Bash", "send_email"], "session_id": "s1"}
FORBIDDEN = {"tool_name": "Bash", "input": {"command": "git add . && git commit --no-verify -am x"}}
SECRET = "sk-proj-Zk3vQ9xT7bLm2Wd8Rf5Yh1Nc6Jp4Gs0A"


def notes(*given: dict[str, Any]) -> str:
    return json.dumps({"calls": [{"name": "note_demand", "arguments": each} for each in given]})


def lift(quote: str, lifted: str) -> str:
    return json.dumps({"calls": [{"name": "lift_demand", "arguments": {"quote": quote, "lifted": lifted}}]})


async def captured(make_app, llm, *overrides: str, **turn):
    async with make_app("rules.capture=model", *overrides, llms={"default": llm}) as app:
        return await app.run_flow("capture_tool_rules", workspace_id="team", **{**TURN, **turn})


async def stops(make_app, **call) -> bool:
    async with make_app() as app:
        checked = await app.run_flow("check_tool_call", workspace_id="team", **{**FORBIDDEN, **call})
        return checked.metadata["decision"]["action"] != "allow"


async def test_what_the_model_notes_holds_as_the_user_said_it(make_app):
    llm = ScriptedLLM([notes(NOTE)])
    run = await captured(make_app, llm)
    assert run.success
    assert run.metadata["notes"] == [
        f"Kept: “{SAID}” (stops `git commit --no-verify -m x`, not `git commit -m wip`). *undo*, or *just this time*"
    ]
    (rule,) = run.metadata["rules"]
    assert (rule["rule"], rule["status"], rule["said"]["by"]) == (SAID, "active", "program")
    assert await stops(make_app)
    assert not await stops(make_app, input={"command": "git commit -m wip"})
    (request,) = llm.requests
    assert request.json_reply
    assert SAID in request.prompt
    assert "send_email" in request.prompt


async def test_a_message_in_another_language_is_understood(make_app):
    await captured(make_app, ScriptedLLM([notes(IN_GERMAN)]), user_message=f"Danke! {GERMAN}. Wie spät ist es?")
    assert await stops(make_app, input={"command": "git push -f origin main"})
    assert not await stops(make_app, input={"command": "git push -f origin dev"})


async def test_an_empty_list_keeps_what_is_read_without_a_model(make_app):
    run = await captured(make_app, ScriptedLLM(['{"calls": []}']), user_message="Never email Sarah.")
    assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
    assert "unasked" not in run.metadata


async def test_a_note_stands_in_the_place_of_what_is_read_without_a_model_of_the_same_words(make_app):
    said = "Never email Sarah"
    note = {**NOTE, "quote": said, "tools": ["send_email"], "when": [{"target": "sarah"}]}
    note["stops"] = [{"tool": "send_email", "arguments": {"to": "sarah@example.com"}}]
    note["passes"] = [{"tool": "send_email", "arguments": {"to": "bob@example.com"}}]
    run = await captured(make_app, ScriptedLLM([notes(note)]), user_message=f"{said}. Never email Bob.")
    kept = {rule["rule"]: rule for rule in run.metadata["rules"]}
    assert set(kept) == {said, "Never email Bob"}
    assert kept[said]["when"]["when"] == [{"target": "sarah"}]


async def test_what_is_refused_is_sent_back_once_with_the_reason_and_may_be_mended(make_app):
    wrong = {**NOTE, "when": [{"command": "^git commit"}]}
    llm = ScriptedLLM([notes(wrong), notes(NOTE)])
    run = await captured(make_app, llm)
    assert "must pass and is stopped" in llm.prompts[1]
    assert llm.prompts[1].startswith(llm.prompts[0])
    assert [rule["rule"] for rule in run.metadata["rules"]] == [SAID]
    assert await stops(make_app)


@pytest.mark.parametrize("mended", ['{"calls": []}', "no JSON"])
async def test_what_the_model_takes_back_or_cannot_mend_is_kept_as_nothing(make_app, mended):
    llm = ScriptedLLM([notes({**NOTE, "quote": "never touch the billing code"}), mended])
    run = await captured(make_app, llm)
    assert len(llm.requests) == 2
    assert run.metadata["rules"] == []


async def test_words_that_the_user_did_not_say_are_told_and_never_kept(make_app):
    unsaid = notes({**NOTE, "quote": "never touch the billing code"})
    run = await captured(make_app, ScriptedLLM([unsaid, unsaid]))
    assert run.success
    assert run.metadata["rules"] == []
    (told,) = run.metadata["notes"]
    assert told.startswith("Not kept: “never touch the billing code” (quote: the user did not say this here")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("no JSON at all", "no JSON object"),
        ("[1]", "no JSON object"),
        ('{"calls": "none"}', '{"calls": [...]}'),
        ('{"instructions": []}', '{"calls": [...]}'),
        ("{" * 5000, "no JSON object"),
        ('{"calls": ' + "[" * 90_000 + "]" * 90_000 + "}", "no JSON object"),
        ('{"calls": [7]}', "none of note_demand and lift_demand"),
        ('{"calls": [{"name": "run", "arguments": {}}]}', "none of note_demand and lift_demand"),
        (notes(*[NOTE] * 200), "200 calls; 20 are the most"),
        (notes({**NOTE, "rule": "x" * 300_000}), "200,000 are the most"),
    ],
)
async def test_a_reply_that_cannot_be_read_is_told_and_the_words_decide_alone(make_app, reply, why):
    llm = ScriptedLLM([reply, reply])
    run = await captured(make_app, llm, user_message="Never email Sarah.")
    assert run.success
    assert why in run.metadata["unasked"]
    assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
    assert why in llm.prompts[1].replace('\\"', '"')


@pytest.mark.parametrize("arguments", [None, 7, "text", [], {}, {"quote": 7}, {"quote": SAID, "effect": "deny"}])
async def test_a_note_that_is_none_is_kept_as_nothing(make_app, arguments):
    reply = json.dumps({"calls": [{"name": name, "arguments": arguments} for name in ("note_demand", "lift_demand")]})
    run = await captured(make_app, ScriptedLLM([reply, reply]))
    assert run.success
    assert run.metadata["rules"] == []
    assert all(note.startswith("Not kept: ") for note in run.metadata["notes"])


async def test_a_demand_that_is_taken_back_holds_no_longer(make_app):
    demand, said, unsure = "never push to main", "you can push to main again", "the freeze is over"
    pushes = {**NOTE, "quote": demand, "when": [{"command": "^git push.*main"}]}
    pushes["stops"] = [{"tool": "Bash", "arguments": {"command": "git push origin main"}}]
    await captured(make_app, ScriptedLLM([notes(pushes)]), user_message=demand)
    run = await captured(make_app, ScriptedLLM([lift(unsure, demand)]), user_message=unsure)
    assert (run.metadata["withdrawn"], "still holds" in run.metadata["notes"][0]) == ([], True)
    assert await stops(make_app, input={"command": "git push origin main"})
    run = await captured(make_app, ScriptedLLM([lift(said, demand)]), user_message=said)
    assert [rule["rule"] for rule in run.metadata["withdrawn"]] == [demand]
    assert not await stops(make_app, input={"command": "git push origin main"})


async def test_where_the_model_fails_the_words_decide(make_app):
    run = await captured(make_app, ScriptedLLM([ModelOverloaded("busy")]), user_message="Never email Sarah.")
    assert run.success
    assert [rule["rule"] for rule in run.metadata["rules"]] == ["Never email Sarah"]
    assert "busy" in run.metadata["unasked"]


async def test_nobody_is_asked_where_nothing_was_said_where_it_is_off_or_without_a_model(make_app):
    llm = ScriptedLLM([])
    await captured(make_app, llm, user_message="", tool_calls=[{"name": "Bash"}])
    await captured(make_app, llm, user_message="x" * 100_001)
    async with make_app(llms={"default": llm}) as app:
        await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
    assert llm.requests == []
    async with make_app("rules.capture=model") as app:
        run = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
        assert "unasked" not in run.metadata


async def test_a_secret_in_a_message_is_not_sent_and_what_is_said_beside_it_can_be_quoted(make_app):
    said = f"Never commit api_key={SECRET} to any repository"
    note = {**NOTE, "effect": "remind", "quote": "Never commit api_key=[secret] to any repository"}
    llm = ScriptedLLM([notes(note)])
    run = await captured(make_app, llm, user_message=f"{said}.")
    assert SECRET not in llm.prompts[0]
    assert note["quote"] in llm.prompts[0]
    assert note["quote"] in [rule["rule"] for rule in run.metadata["rules"]]


async def test_a_dry_run_prices_the_prompt_and_keeps_nothing_of_it(make_app):
    priced = ("llm.default.backend=dry_run", "llm.default.model_name=qwen-plus", "prices.qwen-plus.input=1")
    async with make_app("rules.capture=model", *priced, "prices.qwen-plus.output=2") as app:
        run = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
    usage = run.metadata["usage"]
    assert run.metadata["rules"] == []
    assert run.metadata["unasked"] == f"a dry run asks no model; {usage['prompt_tokens']} tokens in the prompt"
    assert usage["requests"] == 1
    assert usage["cost"] == pytest.approx(usage["prompt_tokens"] / 1000)


async def test_its_requests_are_booked_and_bound_by_the_budget(make_app, monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", "no-key")
    script = Script([Rule(OK)], reply=lambda _: notes({**NOTE, "quote": "never said"}))
    with ModelServer(script) as server:
        remote = ("llm.default.backend=dashscope", f"llm.default.params.base_url={server.dashscope_url}")
        async with make_app("rules.capture=model", *remote) as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
            assert run.metadata["usage"]["requests"] == 2  # the note, and what became of it
            (op,) = app.last_report.ops
            assert op.usage.requests == 2
        assert len(server.requests) == 2
        async with make_app("rules.capture=model", *remote, "budget.max_tokens=1") as app:
            run = await app.run_flow("capture_tool_rules", workspace_id="other", **TURN)
            assert "budget" in run.metadata["unasked"]
        assert len(server.requests) == 2


async def test_a_session_has_the_configured_model_read_what_its_user_says(make_app):
    llm = ScriptedLLM([notes(NOTE), '{"calls": []}'])
    async with make_app("rules.capture=model", llms={"default": llm}) as app:
        async with await AgentSession.start(app, workspace_id="team", tools=["Bash"]) as session:
            session.messages(SAID)
            told = await session.after_turn([{"role": "assistant", "content": "I see."}])
            assert [rule.rule for rule in told.rules] == [SAID]
            assert told.rules[0].said.by == "user"
            assert told.notes[0].startswith(f"Kept: “{SAID}”")
            assert (await session.check("Bash", FORBIDDEN["input"])).action == "deny"
            await session.after_turn([{"role": "user", "content": "go on"}])
        assert [request.purpose.workspace for request in llm.requests] == ["team", "team"]


async def test_a_session_asks_nobody_about_a_message_of_which_its_own_model_noted_something(make_app):
    llm = ScriptedLLM([])
    async with make_app("rules.capture=model", llms={"default": llm}) as app:
        session = await AgentSession.start(app, workspace_id="team", tools=["Bash"])
        session.messages(SAID)
        await session.call_tool("note_demand", NOTE)
        await session.after_turn([{"role": "assistant", "content": "Noted."}])
        await session.close()
    assert llm.requests == []


async def test_what_a_guest_demands_binds_in_the_guests_session_alone(make_app):
    async with make_app("rules.capture=model", llms={"default": ScriptedLLM([notes(NOTE)])}) as app:
        session = await AgentSession.start(app, workspace_id="team", tools=["Bash"], guest="ann")
        session.messages(SAID)
        await session.after_turn([{"role": "assistant", "content": "I see."}])
        assert (await session.check("Bash", FORBIDDEN["input"])).action == "deny"
        await session.close()
    assert not await stops(make_app)
