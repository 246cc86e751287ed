"""AgentSession: what the model is sent, and what a turn teaches. The safety case end to end."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RequestError, StoreError
from toolmem.session import AgentSession, CallRecorder, keep_newest
from toolmem.testing.scripted_llm import ScriptedLLM

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_calls"
ENGLISH = "never email Sarah at sarah@example.com"
CHINESE = "永远不要给 sarah@example.com 的 Sarah 发邮件"
TOOLS = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object"}}}
    for name, text in (("send_email", "Send an e-mail."), ("search", "Search the web."), ("shell", "Run a command."))
]


def words(text: str) -> int:
    return len(text.split())


def turn_of(user: str, *calls: tuple[str, dict[str, Any], str]) -> list[dict[str, Any]]:
    asked = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments, _) in enumerate(calls)
    ]
    answers = [{"role": "tool", "tool_call_id": f"c{i}", "content": output} for i, (_, _, output) in enumerate(calls)]
    said = [{"role": "user", "content": user}]
    called = [{"role": "assistant", "content": None, "tool_calls": asked}] if calls else []
    return [*said, *called, *answers, {"role": "assistant", "content": "done"}]


async def start(app, **options) -> AgentSession:
    return await AgentSession.start(
        app, **{"workspace_id": "team", "tools": TOOLS, "count_tokens": words, "base_prompt": "You help.", **options}
    )


def text_of(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(message.get("content") or "") for message in messages)


async def test_one_name_in_place_of_the_tools_is_refused_and_not_read_letter_by_letter(make_app):
    async with make_app() as app:
        with pytest.raises(RequestError, match="tools: expected a list"):
            await start(app, tools="send_email")


@pytest.mark.parametrize("as_messages", [True, False])
async def test_failures_in_a_turns_messages_or_calls_become_a_rule_without_a_flag(make_app, as_messages):
    async with make_app() as app, await start(app) as session:
        failed = [("search", {"query": "rain"}, "Error: request timed out")] * 3
        if as_messages:
            captured = await session.after_turn(turn_of("what is the weather?", *failed))
        else:
            calls = [{"tool_name": name, "input": given, "output": output} for name, given, output in failed]
            captured = await session.after_turn(calls=calls, user_message="what is the weather?")
        (rule,) = captured.rules
        assert (rule.tool_name, rule.priority, rule.source) == ("search", "normal", "post_turn")
        assert rule.rule.startswith("Tool failed 3 times in one turn (timeout). ")
        good = [("search", {"query": "rain"}, '["Error: timed out, explained", "rain"]')] * 3
        assert (await session.after_turn(turn_of("and now?", *good))).rules == []


@pytest.mark.parametrize("said", [ENGLISH, CHINESE])
async def test_the_safety_case_from_a_sentence_to_the_pinned_prompt_of_the_next_session(make_app, said):
    async with make_app() as app:
        first = await start(app)
        captured = await first.after_turn(turn_of(said, ("send_email", {"to": "bob@example.com"}, "sent")))
        (rule,) = captured.rules
        assert (rule.tool_name, rule.rule, rule.priority) == ("send_email", said, "critical")
        record = await (await app.services.store_named()).get("team", "tool-send_email", f"rule/{rule.id}")
        assert record is not None
        await first.close()

        second = await start(app)
        assert "### `send_email`" in second.system_prompt
        assert f"- **[critical]** {said}" in second.system_prompt
        frozen = second.system_prompt
        for number in range(500):
            second.buffer += turn_of(f"message {number}")
        assert len(second.buffer) == 1000
        second.compress(11)
        assert len(second.buffer) == 2
        assert second.messages()[0] == {"role": "system", "content": frozen}


@pytest.mark.parametrize("said", [ENGLISH, CHINESE])
async def test_an_instruction_binds_from_the_next_turn_of_the_same_session_on_and_survives_compression(make_app, said):
    async with make_app() as app:
        session = await start(app, max_buffer_tokens=40)
        frozen = session.system_prompt
        for number in range(1003):
            user = said if number == 2 else f"please look at item {number}"
            sent = session.messages(user)
            assert sent[0]["content"] == frozen
            if number > 2:
                assert said in sent[-1]["content"]
                assert sent[-1]["role"] == "system"
            if number in (2, 3, 500):
                await session.after_turn(turn_of(user, ("send_email", {"to": "x@example.com"}, "sent")))
            else:
                session.buffer += turn_of(user)
                session._pending_user = None
                if number % 100 == 0:
                    session.compress(40)
        assert said in text_of(session.messages("turn 1,004"))
        assert session.buffer_tokens < 9000
        await session.close()


async def test_a_demand_on_this_one_task_binds_in_the_session_and_is_not_stored(make_app):
    async with make_app() as app:
        session = await start(app)
        captured = await session.after_turn(turn_of("don't send the email yet", ("send_email", {}, "draft kept")))
        assert captured.notes == ["don't send the email yet: kept for this session; say 'always' to keep it"]
        assert session.session_rules
        told = session.messages("go on")[-1]["content"]
        assert "don't send the email yet" in told
        assert "The user who wants to keep one says 'always'" in told
        await session.close()
        later = await start(app)
        assert "don't send the email yet" not in text_of(later.messages("hello"))


async def test_a_demand_of_a_session_is_kept_for_good_where_the_user_says_always(make_app):
    async with make_app() as app:
        session = await start(app)
        await session.after_turn(turn_of("don't send the email yet", ("send_email", {}, "draft kept")))
        await session.after_turn(turn_of("Always."))
        assert not session.session_rules
        await session.close()
        later = await start(app)
        assert "- **[critical]** don't send the email yet" in later.system_prompt


async def test_rules_put_and_deleted_by_somebody_else_reach_the_running_session(make_app):
    async with make_app() as app:
        rules = await app.rule_store("team")
        old = await rules.put_rule("shell", "never run sudo", priority="critical")
        session = await start(app)
        assert "never run sudo" in session.system_prompt
        frozen = session.system_prompt
        await rules.delete_rule("shell", old.id)
        await rules.put_rule("search", "only search example.com", priority="high")
        await session.after_turn(turn_of("go on"))
        since = session.messages("next")[-1]["content"]
        assert "only search example.com" in since
        assert "withdrew" in since
        assert since.index("withdrew") < since.index("never run sudo")
        assert session.system_prompt == frozen


@pytest.mark.parametrize(
    ("demand", "taken_back"),
    [
        ("never email Sarah", "You may email Sarah again."),
        ("永远不要给 Sarah 发邮件", "以后可以给 Sarah 发邮件了"),
    ],
)
async def test_what_the_user_takes_back_binds_no_longer_in_this_session_nor_the_next(make_app, demand, taken_back):
    async with make_app() as app:
        first = await start(app)
        await first.after_turn(turn_of(demand))
        await first.close()
        session = await start(app)
        frozen = session.system_prompt
        assert demand in frozen
        captured = await session.after_turn(turn_of(taken_back))
        assert [rule.rule for rule in captured.withdrawn] == [demand]
        since = session.messages("next")[-1]["content"]
        assert since.index("withdrew") < since.index(demand)
        assert session.system_prompt == frozen
        await session.close()
        assert demand not in text_of((await start(app)).messages("hello"))


async def test_a_newer_instruction_stands_in_place_of_the_older_in_the_running_session(make_app):
    async with make_app() as app:
        await (await start(app)).after_turn(turn_of("never email Sarah"))
        session = await start(app)
        captured = await session.after_turn(turn_of("Always ask me before you email Sarah."))
        assert captured.superseded[0].superseded_by == captured.rules[0].id
        since = session.messages("next")[-1]["content"]
        assert since.index("Always ask me") < since.index("withdrew") < since.index("never email Sarah")


async def test_a_demand_on_the_task_is_lifted_by_the_user(make_app):
    async with make_app() as app:
        session = await start(app)
        await session.after_turn(turn_of("don't send the email yet", ("send_email", {}, "draft kept")))
        assert session.session_rules
        await session.after_turn(turn_of("OK, you can send the email now."))
        assert session.session_rules == []
        assert "don't send the email yet" not in session.messages("go on")[-1]["content"]


async def test_a_rule_put_by_another_handle_binds_in_the_very_next_messages(make_app):
    async with make_app() as app, make_app() as other:
        session = await start(app)
        await (await app.rule_store("team")).put_rule("shell", "never run sudo", priority="critical")
        assert "- **[critical]** `shell`: never run sudo" in session.messages("go on")[-1]["content"]
        rules = await other.rule_store("team")
        put = await rules.put_rule("search", "only search example.com", priority="high")
        assert "only search example.com" in session.messages()[-1]["content"]
        await rules.delete_rule("search", put.id)
        assert "only search example.com" not in text_of(session.messages())
        await rules.for_agent().put_rule("shell", "always run sudo", priority="high")
        binding, noted = session.messages()[-1]["content"].split("Noted by an agent")
        assert "never run sudo" in binding
        assert "- [high] `shell`: always run sudo" in noted
        assert "always run sudo" not in binding


def test_a_rule_put_meanwhile_binds_for_a_synchronous_host_as_well(make_app):
    with make_app() as app:
        session = app.call(start(app))
        app.call(put_rule(app, "shell", "never run sudo"))
        assert "never run sudo" in session.messages("go on")[-1]["content"]


async def put_rule(app, tool: str, text: str) -> None:
    await (await app.rule_store("team")).put_rule(tool, text, priority="critical")


async def test_a_store_that_fails_later_leaves_the_rules_that_are_known(make_app, monkeypatch, caplog):
    async with make_app() as app:
        session = await start(app)
        await put_rule(app, "shell", "never run sudo")
        assert "never run sudo" in text_of(session.messages("one"))

        async def hang(*_: object, **__: object) -> None:
            await asyncio.sleep(60)

        session._timeout = 0.05
        monkeypatch.setattr(session.rules.store, "list_raw", hang)
        assert "never run sudo" in text_of(session.messages("two"))
        assert "could not be read again" in caplog.text


async def test_more_critical_rules_than_a_prompt_holds_are_warned_of_named_and_bound_when_new(make_app, caplog):
    async with make_app("rules.max_critical_characters=5000") as app:
        rules = await app.rule_store("team")
        for number in range(12):
            await rules.put_rule("shell", f"never {number} " + "x" * 900, priority="critical")
        session = await start(app)
        assert len(session.system_prompt) < 5200
        hidden = [each for each in session.left_out if each.priority == "critical"]
        assert len(hidden) == 12 - session.system_prompt.count("- **[critical]**")
        assert session.system_prompt.endswith("before you use one of these tools.")
        assert f"binding all the same: {len(hidden)} more critical rules of" in session.system_prompt
        assert caplog.text.count(f"critical rules not in the prompt: {len(hidden)} (") == 1
        assert len(session.messages("go on")) == 2
        await session.after_turn(turn_of(ENGLISH, ("send_email", {}, "sent")))
        since = session.messages("go on")[-1]["content"]
        assert ENGLISH in since
        assert "withdrew" not in since
        for number in range(12):
            await rules.put_rule("search", f"never {number} " + "y" * 900, priority="critical")
        since = session.messages()[-1]["content"]
        assert ENGLISH in since
        assert len(since) < 6000
        assert "Not shown here, and binding all the same" in since
        assert caplog.text.count("critical rules not in the prompt") == 1
        await session.close()


async def test_rules_may_be_private_where_guidance_is_shared(make_app):
    async with make_app() as app:
        alice = await start(app, rules_workspace_id="alice")
        await alice.after_turn(turn_of(ENGLISH, ("send_email", {}, "sent")))
        await alice.close()
        bob = await start(app, rules_workspace_id="bob")
        assert ENGLISH not in bob.system_prompt
        assert ENGLISH in (await start(app, rules_workspace_id="alice")).system_prompt
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="send_email")
        assert got.metadata["memory_list"][0]["metadata"]["lifetime"]["calls"] == 1


@pytest.mark.parametrize("judging", ["background", "deferred"])
async def test_calls_are_stored_at_once_and_judged_by_the_time_the_session_is_closed(make_app, judging):
    llm = ScriptedLLM.plausible(delay=0.02)
    async with make_app(f"session.judging={judging}", llms={"default": llm}) as app:
        session = await start(app)
        await session.after_turn(turn_of("find it", ("search", {"q": "x"}, "[1]"), ("search", {"q": "y"}, "not found")))
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search", include_calls=True)
        assert len(got.metadata["memory_list"][0]["tool_call_results"]) == 2
        if judging == "deferred":
            assert not llm.requests
        await session.after_turn(turn_of("again", ("search", {"q": "z"}, "[2]")))
        await session.close()
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search", include_calls=True)
        calls = got.metadata["memory_list"][0]["tool_call_results"]
        assert [call["evaluation_status"] for call in calls] == ["ok"] * 3
        assert calls[0]["context"] == "find it"
        assert len(llm.requests) == 3
        assert session.errors == []


async def test_a_model_that_fails_in_the_background_loses_no_call_and_is_named_at_close(make_app):
    async with make_app(llms={"default": ScriptedLLM.plausible(fail_every=1)}) as app:
        session = await start(app)
        await session.after_turn(turn_of("find it", ("search", {"q": "x"}, "[1]")))
        await session.close()
        assert session.errors
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search", include_calls=True)
        assert len(got.metadata["memory_list"][0]["tool_call_results"]) == 1


async def test_guidance_of_the_sessions_tools_is_in_the_prompt_within_its_tokens(make_app):
    async with make_app("session.guidance_tokens=60") as app:
        records = [
            {
                "tool_name": tool,
                "input": {"q": n},
                "output": f"[{n}]" if n % 3 else "Error: timeout",
                "success": n % 3 > 0,
            }
            for tool in ("search", "shell", "elsewhere")
            for n in range(12)
        ]
        await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)
        await app.run_flow("summary_tool_memory", workspace_id="team", tool_names="search,shell,elsewhere")
        session = await start(app)
        block = session.system_prompt.split("## What is known of your tools")[1]
        assert "### `search`" in block
        assert "### `shell`" in block
        assert "elsewhere" not in block
        assert words(block) <= 60


async def test_every_call_of_a_session_names_its_conversation(make_app):
    recorder = CallRecorder()

    @recorder.tool
    def search(q: str) -> str:
        return q

    async with make_app() as app:
        async with await start(app) as session:
            await session.after_turn(turn_of("find it", ("search", {"q": "x"}, "[1]")))
            search("y")
            await session.after_turn(calls=recorder.take(), user_message="and that")
            search("z")
            await session.after_turn(calls=recorder.take("theirs"), user_message="and that")
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="search", include_calls=True)
        calls = got.metadata["memory_list"][0]["tool_call_results"]
        conversations = [call["metadata"]["conversation_id"] for call in calls]
        assert conversations == [session.session_id, session.session_id, "theirs"]


async def test_a_turn_may_be_given_as_calls_of_recorded_functions(make_app):
    recorder = CallRecorder()

    @recorder.tool
    def send_email(to: str, text: str = "") -> str:
        if "@" not in to:
            raise ValueError(f"no address: {to}")
        return "sent"

    @recorder.tool
    async def search(q: str) -> list[int]:
        await asyncio.sleep(0)
        return [1, 2]

    async with make_app() as app:
        session = await start(app)
        session.messages("write to Bob")
        assert send_email("bob@example.com", text="hi") == "sent"
        with pytest.raises(ValueError, match="no address"):
            send_email("bob")
        assert await search(q="x") == [1, 2]
        await session.after_turn(calls=recorder.take())
        await session.close()
        assert recorder.take() == []
        got = await app.run_flow(
            "retrieve_tool_memory", workspace_id="team", tool_names="send_email,search", include_calls=True
        )
        emails, searches = (memory["tool_call_results"] for memory in got.metadata["memory_list"])
        assert [call["success"] for call in emails] == [True, False]
        assert emails[0]["input"] == {"to": "bob@example.com", "text": "hi"}
        assert emails[1]["output"] == "ValueError: no address: bob"
        assert searches[0]["output"] == "[1, 2]"
        assert emails[0]["context"] == "write to Bob"


async def test_a_tool_message_that_answers_no_call_is_refused_and_changes_nothing(make_app):
    async with make_app() as app:
        session = await start(app)
        with pytest.raises(RequestError, match="nosuch"):
            await session.after_turn([{"role": "tool", "tool_call_id": "nosuch", "content": "x"}])
        assert session.buffer == []


async def test_a_store_that_does_not_answer_stops_the_session_unless_the_caller_chose_otherwise(make_app, monkeypatch):
    async with make_app() as app:
        rules = await app.rule_store("team")

        async def hang(*_: object, **__: object) -> None:
            await asyncio.sleep(60)

        monkeypatch.setattr(rules.store, "list_raw", hang)
        with pytest.raises(StoreError):
            await start(app, timeout=0.05)
        session = await start(app, timeout=0.05, on_error="empty")
        assert session.system_prompt == "You help."


@given(st.lists(st.sampled_from(["user", "assistant", "call", "tool"]), max_size=30), st.integers(0, 60))
def test_the_compressor_keeps_the_newest_and_never_an_answer_without_its_call(roles, budget):
    messages: list[dict[str, Any]] = []
    for number, role in enumerate(roles):
        if role == "call":
            call = {"id": f"c{number}", "function": {"name": "f", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "answer " * 3})
        elif role != "tool":
            messages.append({"role": role, "content": "some words " * (number % 5)})
    kept = keep_newest(messages, budget, words)
    assert kept == messages[len(messages) - len(kept) :]
    assert bool(kept) == bool(messages)
    called = {call["id"] for message in kept for call in message.get("tool_calls") or []}
    assert all(message["tool_call_id"] in called for message in kept if message["role"] == "tool") or len(kept) == 1


@pytest.mark.parametrize("dataset", ["tau_bench", "tau2_airline", "openhands", "toolbench", "intercode"])
async def test_every_rule_captured_from_a_recorded_conversation_is_in_what_the_model_is_sent_later(make_app, dataset):
    path = DATA / f"{dataset}.conversations.jsonl.gz"
    if not path.is_file():
        pytest.skip("the recorded conversations (../shared/data) are not beside the project")
    rng = random.Random(dataset)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        conversations = [json.loads(line) for line in lines]
    asked = rng.sample(conversations, min(12, len(conversations)))
    captured_in_all = 0
    async with make_app("session.judging=deferred") as app:
        for number, conversation in enumerate(asked):
            session = await start(app, workspace_id=f"w{number}", tools=(), max_buffer_tokens=None)
            bound: list[str] = []
            for turn in _turns(conversation["messages"]):
                user = next((str(m["content"]) for m in turn if m["role"] == "user"), "")
                sent = text_of(session.messages(user))
                assert all(rule in sent for rule in bound)
                captured = await session.after_turn(turn)
                bound += [" ".join(rule.rule.split()) for rule in captured.rules if rule.priority == "critical"]
                bound += [" ".join(rule.rule.split()) for rule in captured.session]
                if rng.random() < 0.4:
                    session.compress(rng.randrange(0, 400))
            captured_in_all += len(bound)
            assert all(rule in text_of(session.messages("after the end")) for rule in bound)


def _turns(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    turns: list[list[dict[str, Any]]] = []
    answered = {m.get("tool_call_id") for m in messages if m["role"] == "tool"}
    for message in messages:
        if message["role"] == "system":
            continue
        if message["role"] == "user" or not turns:
            turns.append([])
        if message.get("tool_calls"):
            message = {**message, "tool_calls": [c for c in message["tool_calls"] if c["id"] in answered]}
        turns[-1].append(message)
    return turns


async def test_denied_calls_of_a_turn_teach_nothing_and_are_in_no_figure(make_app):
    denied = [("search", {"query": "rain"}, "toolmem: not run. The user said: never search.")] * 3
    async with make_app() as app, await start(app) as session:
        captured = await session.after_turn(turn_of("what is the weather?", *denied))
        assert captured.rules == []
        await session.after_turn(turn_of("and now?", ("search", {"query": "rain"}, "[]")))
        await session.close()
        assert session.errors == []
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names=["search"])
        assert got.metadata["memory_list"][0]["metadata"]["lifetime"]["calls"] == 1
