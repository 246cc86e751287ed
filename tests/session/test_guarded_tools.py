"""The rules of a memory hold the tools that a program runs: with a recorder, with a session, on any thread or loop."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolmem import AgentSession, AsyncToolMem, CallDenied, CallRecorder, ToolMem, ToolMemApp
from toolmem.errors import RequestError, StoreUntrusted
from toolmem.guard.decision import STOPPED, GuardDecision

NEVER = "never email Sarah at sarah@example.com"
SARAH, BOB = "sarah@example.com", "bob@example.com"
TOOLS = [
    {
        "name": "send_email",
        "description": "Send an e-mail.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}},
    },
    {"name": "search", "description": "Search the web.", "parameters": {"type": "object"}},
]


def as_chat(name: str, arguments: dict[str, Any], output: str, call_id: str = "c1") -> list[dict[str, Any]]:
    """A call and its result as a loop keeps them."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = [{"id": call_id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": asked},
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]


class Mail:
    """A tool that counts what it sent."""

    def __init__(self, decorate: Any, *, as_async: bool = False) -> None:
        self.sent: list[str] = []

        def send_email(to: str, text: str = "") -> str:
            self.sent.append(to)
            if to == "nobody":
                raise ValueError("no address: nobody")
            return f"sent to {to}"

        async def send_email_later(to: str, text: str = "") -> str:
            await asyncio.sleep(0)
            return send_email(to, text)

        send_email_later.__name__ = "send_email"
        self.send: Any = decorate(send_email_later if as_async else send_email)


# ---------------------------------------------------------------- a recorder with a memory


def test_a_recorder_with_a_memory_holds_the_rules_without_a_further_line(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        mail = Mail(CallRecorder(mem).tool)
        assert mail.send(BOB) == f"sent to {BOB}"
        with pytest.raises(CallDenied, match="never email Sarah"):
            mail.send(SARAH)
        assert mail.sent == [BOB]


async def test_async_tools_are_held_over_a_memory_of_either_kind(tmp_path):
    for kind in (ToolMem, AsyncToolMem):
        mem = kind(tmp_path / f"{kind.__name__}.db")
        put = mem.rules.put("send_email", NEVER, priority="critical")
        if kind is AsyncToolMem:
            await put
        mail = Mail(CallRecorder(mem, conversation_id="c1").tool, as_async=True)
        results = await asyncio.gather(*map(mail.send, [BOB, SARAH] * 10), return_exceptions=True)
        assert [isinstance(result, CallDenied) for result in results] == [False, True] * 10
        assert mail.sent == [BOB] * 10
        closed = mem.close()
        if kind is AsyncToolMem:
            await closed


@pytest.mark.parametrize("kind", [ToolMem, AsyncToolMem])
async def test_a_plain_tool_in_the_thread_of_the_running_loop_is_held_and_waits_for_no_loop(tmp_path, kind):
    mem = kind(tmp_path / "memory.db")
    put = mem.rules.put("send_email", NEVER, priority="critical")
    if kind is AsyncToolMem:
        await put
    mail = Mail(CallRecorder(mem).tool)

    async def agent() -> None:
        mail.send(BOB)
        with pytest.raises(CallDenied):
            mail.send(SARAH)

    await asyncio.wait_for(agent(), 30)
    await asyncio.wait_for(asyncio.to_thread(mail.send, BOB), 30)
    closed = mem.close()
    if kind is AsyncToolMem:
        await closed
    assert mail.sent == [BOB, BOB]


def test_threads_share_a_recorder_over_one_memory(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        recorder = CallRecorder(mem, on_denied="return")
        mail = Mail(recorder.tool)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(mail.send, [SARAH, BOB] * 20))
        assert [result.startswith(STOPPED) for result in results] == [True, False] * 20
        assert len(recorder.take()) == 40
        assert len(recorder.decisions) == 20


def test_a_rule_binds_at_the_next_call_and_binds_no_more_after_its_withdrawal(tmp_path):
    """By whomever: here by another handle on the same file."""
    with ToolMem(tmp_path / "memory.db") as mem, ToolMem(tmp_path / "memory.db") as other:
        mail = Mail(CallRecorder(mem, conversation_id="c1").tool)
        mail.send(SARAH)
        rule = other.rules.put("send_email", NEVER, priority="critical")
        with pytest.raises(CallDenied):
            mail.send(SARAH)
        other.rules.delete("send_email", rule.id)
        mail.send(SARAH)
        assert mail.sent == [SARAH, SARAH]


def test_rules_may_be_private_where_the_rest_is_shared(tmp_path):
    with ToolMem(tmp_path / "memory.db", workspace="alice") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        for recorder in (
            CallRecorder(mem, workspace_id="team", rules_workspace_id="alice"),
            CallRecorder(mem.app, workspace_id="alice"),
        ):
            with pytest.raises(CallDenied):
                Mail(recorder.tool).send(SARAH)
        Mail(CallRecorder(mem, workspace_id="team").tool).send(SARAH)


def test_a_denied_call_is_kept_as_one_that_was_not_run(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        recorder = CallRecorder(mem, conversation_id="c1", on_denied="return")
        mail = Mail(recorder.tool)
        mail.send(SARAH)
        mail.send(BOB)
        taken = recorder.take()
        assert {record["conversation_id"] for record in taken} == {"c1"}
        mem.add(taken)
        (overview,) = mem.tools()
        assert (overview.window.calls, overview.window.success_rate) == (1, 1.0)
        assert not recorder.take()


def test_repeats_are_enforced_by_one_line_of_configuration(tmp_path):
    with ToolMem(tmp_path / "memory.db", overrides=["guard.repeats=enforce"]) as mem:
        mail = Mail(CallRecorder(mem, conversation_id="c1").tool)
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")
        with pytest.raises(CallDenied, match="failed once in this conversation"):
            mail.send("nobody")
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")  # sent unchanged once more: forced
        with pytest.raises(CallDenied, match="failed twice"):
            mail.send("nobody")
        other = Mail(CallRecorder(mem, conversation_id="c2").tool)
        with pytest.raises(ValueError, match="no address"):
            other.send("nobody")
        assert mail.sent == ["nobody", "nobody"]


def test_a_repeat_is_advised_where_nothing_is_configured_and_the_advice_is_at_hand(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        recorder = CallRecorder(mem)
        mail = Mail(recorder.tool)
        for _ in range(2):
            with pytest.raises(ValueError, match="no address"):
                mail.send("nobody")
        (decided,) = recorder.decisions
        assert decided.decision.action == "advise"
        assert "failed once in this conversation" in decided.decision.advice
        assert decided.call_id == recorder.take()[1]["id"]


def test_calls_that_taught_the_guard_teach_it_nothing_again_when_they_are_stored(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        recorder = CallRecorder(mem, conversation_id="c1")
        mail = Mail(recorder.tool)
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")
        mem.add(recorder.take())
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")
        assert "failed once" in recorder.decisions[-1].decision.advice


@pytest.mark.parametrize("way", ["setting", "override", "environment"])
def test_the_guard_is_switched_off_by_a_setting_or_the_environment(tmp_path, monkeypatch, way):
    if way == "environment":
        monkeypatch.setenv("TOOLMEM_GUARD", "off")
    (tmp_path / "off.yaml").write_text(
        "guard: off\nvector_store: {default: {params: {path: memory.db}}}\n"
        if way == "setting"
        else "vector_store: {default: {params: {path: memory.db}}}\n",
        encoding="utf-8",
    )
    with ToolMem(tmp_path / "off.yaml", overrides=["guard=off"] if way == "override" else []) as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        recorder = CallRecorder(mem)
        mail = Mail(recorder.tool)
        mail.send(SARAH)
        assert mail.sent == [SARAH]
        assert len(recorder.take()) == 1


def test_a_store_that_fails_stops_no_tool_unless_that_is_configured(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL, logger="toolmem")
    for on_error, stopped in (("open", False), ("closed", True)):
        overrides = [f"guard.on_error={on_error}"]
        (tmp_path / on_error).mkdir()
        mem = ToolMem(tmp_path / on_error, overrides=overrides)  # a folder is no store
        mail = Mail(CallRecorder(mem, on_denied="return").tool)
        assert mail.send(SARAH).startswith(STOPPED) is stopped
        assert mail.send(BOB).startswith(STOPPED) is stopped


def test_a_store_that_nobody_trusts_holds_no_tool_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ToolMem() as mem:
        mem.rules.put("send_email", "never email anybody", priority="critical")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
    with ToolMem() as mem:
        mail = Mail(CallRecorder(mem).tool)
        with pytest.raises(StoreUntrusted):
            mail.send(SARAH)
        assert not mail.sent


def test_what_was_decided_and_what_became_of_it_is_logged(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        recorder = CallRecorder(mem, conversation_id="c1", on_denied="return")
        mail = Mail(recorder.tool)
        mail.send(SARAH)
        mail.send(BOB)
        (entry,) = mem.decisions(conversation_id="c1")
        assert (entry.tool_name, entry.action, entry.outcome) == ("send_email", "deny", "not_run")
        assert entry.id == recorder.decisions[0].decision.id
        assert entry.call_id == recorder.take()[0]["id"]


# ---------------------------------------------------------------- a session


async def start(app: Any, **options: Any) -> AgentSession:
    return await AgentSession.start(app, **{"tools": TOOLS, **options})


async def said(session: AgentSession, sentence: str) -> None:
    session.messages(sentence)
    await session.after_turn([{"role": "user", "content": sentence}, {"role": "assistant", "content": "All right."}])


both = pytest.mark.parametrize("as_async", [False, True], ids=["plain", "async"])


async def called(mail: Mail, to: str) -> Any:
    result = mail.send(to)
    return await result if asyncio.iscoroutine(result) else result


@both
async def test_what_a_user_forbade_in_the_first_turn_stops_the_call_after_every_compaction(make_app, as_async):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool, as_async=as_async)
        await said(session, NEVER)
        session.buffer = []
        with pytest.raises(CallDenied) as told:
            await called(mail, SARAH)
        assert NEVER in str(told.value)
        await called(mail, BOB)
        assert mail.sent == [BOB]
        assert [each.decision.action for each in session.decisions] == ["deny"]


@both
async def test_a_demand_binds_the_calls_that_answer_the_very_message_it_was_made_in(make_app, as_async):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool, as_async=as_async)
        session.messages(f"Tell Bob at {BOB} that we are live. {NEVER}.")
        await called(mail, BOB)
        with pytest.raises(CallDenied, match="never email Sarah"):
            await called(mail, SARAH)
        assert mail.sent == [BOB]


@both
async def test_a_demand_on_this_session_alone_binds_its_guard_and_no_other(make_app, as_async):
    async with make_app() as app:
        async with await start(app) as session:
            mail = Mail(session.tool, as_async=as_async)
            await said(session, "don't send the email yet")
            assert session.session_rules
            with pytest.raises(CallDenied, match="don't send the email yet"):
                await called(mail, BOB)
            assert not mail.sent
        async with await start(app) as other:
            mail = Mail(other.tool, as_async=as_async)
            await called(mail, BOB)
            assert mail.sent == [BOB]


async def test_what_is_put_off_is_asked_about(make_app):
    asked: list[GuardDecision] = []

    def agrees(decision: GuardDecision) -> bool:
        asked.append(decision)
        return True

    async with make_app() as app, await start(app, on_ask=agrees) as session:
        mail = Mail(session.tool)
        await said(session, "don't send the email yet")
        mail.send(BOB)
        assert mail.sent == [BOB]
        assert "don't send the email yet" in asked[0].reason


async def test_a_demand_that_cannot_be_checked_reminds_and_stops_nothing(make_app):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool)
        await said(session, "never send emails in a hurry")
        mail.send(BOB)
        assert mail.sent == [BOB]


async def test_the_calls_of_a_sessions_tools_reach_the_memory_by_themselves(make_app):
    async with make_app() as app:
        async with await start(app, workspace_id="team") as session:
            mail = Mail(session.tool)
            session.messages("tell Bob")
            mail.send(BOB)
            await session.after_turn([{"role": "assistant", "content": "Told."}])
        got = await app.run_flow(
            "retrieve_tool_memory", workspace_id="team", tool_names="send_email", include_calls=True
        )
        (call,) = got.metadata["memory_list"][0]["tool_call_results"]
        assert (call["input"], call["success"], call["context"]) == ({"to": BOB}, True, "tell Bob")
        assert call["metadata"]["conversation_id"] == session.session_id


async def test_a_call_that_messages_and_a_tool_both_tell_of_is_one_call(make_app):
    async with make_app() as app:
        async with await start(app, workspace_id="team", on_denied="return") as session:
            mail = Mail(session.tool)
            await said(session, NEVER)
            session.messages("tell both")
            turn = [
                {"role": "user", "content": "tell both"},
                *as_chat("send_email", {"to": BOB, "text": ""}, mail.send(BOB), "a"),
                *as_chat("send_email", {"to": SARAH}, mail.send(SARAH), "b"),
                *as_chat("search", {"q": "x"}, "[1]", "c"),
            ]
            await session.after_turn(turn)
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="send_email,search")
        calls = {each["when_to_use"]: each["metadata"]["lifetime"] for each in got.metadata["memory_list"]}
        assert calls["search"]["calls"] == 1
        assert calls["send_email"]["failures"] == 0
        got = await app.run_flow(
            "retrieve_tool_memory", workspace_id="team", tool_names="send_email", include_calls=True
        )
        outputs = [call["output"] for call in got.metadata["memory_list"][0]["tool_call_results"]]
        assert outputs == [f"sent to {BOB}"]


async def test_a_loop_that_runs_its_own_tools_asks_first(make_app):
    async with make_app() as app:
        async with await start(app, workspace_id="team") as session:
            await said(session, NEVER)
            session.messages("tell both")
            free = await session.check("send_email", {"to": BOB})
            denied = await session.check("send_email", json.dumps({"to": SARAH}))
            assert (free.action, denied.action) == ("allow", "deny")
            assert denied.stops
            assert denied.reason.startswith(STOPPED)
            turn = [
                {"role": "user", "content": "tell both"},
                *as_chat("send_email", {"to": BOB}, "sent", "a"),
                *as_chat("send_email", {"to": SARAH}, denied.reason, "b"),
            ]
            captured = await session.after_turn(turn)
            assert captured.rules == []
            store = await app.services.store_named()
            (entry,) = await store.decisions("team", conversation=session.session_id)
            assert (entry.id, entry.outcome) == (denied.id, "not_run")
            assert entry.call_id
        got = await app.run_flow("retrieve_tool_memory", workspace_id="team", tool_names="send_email")
        (memory,) = got.metadata["memory_list"]
        assert memory["metadata"]["lifetime"]["failures"] == 0


async def test_asking_is_done_by_check_where_the_session_can(make_app):
    async with make_app() as app:
        rules = await app.rule_store()
        await rules.put_rule("send_email", "ask before you mail", priority="high", effect="ask", when=True)
        for on_ask, action in ((None, "ask"), (lambda decision: True, "allow"), (lambda decision: False, "deny")):
            async with await start(app, on_ask=on_ask) as session:
                decision = await session.check("send_email", {"to": BOB})
                assert decision.action == action
                assert decision.stops is (action != "allow")


async def test_a_repeat_may_be_forced_by_a_loop_that_can_say_so_and_a_rule_never(make_app):
    async with make_app("guard.repeats=enforce") as app, await start(app) as session:
        await said(session, NEVER)
        session.messages("find it")
        failed = {"tool_name": "search", "input": {"q": "x"}, "output": "Error: no such index", "success": False}
        assert not (await session.check("search", {"q": "x"}, force=False)).stops
        await session.after_turn(calls=[failed])
        assert (await session.check("search", {"q": "x"}, force=False)).stops
        assert not (await session.check("search", {"q": "x"}, force=True)).stops
        assert (await session.check("send_email", {"to": SARAH}, force=True)).stops


async def test_a_message_of_the_user_lets_what_failed_be_tried_again(make_app):
    async with make_app("guard.repeats=enforce") as app, await start(app, on_denied="return") as session:
        mail = Mail(session.tool)
        session.messages("write to nobody")
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")
        assert mail.send("nobody").startswith(STOPPED)
        await session.after_turn([{"role": "assistant", "content": "It failed."}])
        session.messages("I have entered the address, try again")
        with pytest.raises(ValueError, match="no address"):
            mail.send("nobody")
        assert mail.sent == ["nobody", "nobody"]


async def test_rules_that_another_process_puts_or_withdraws_bind_at_the_next_call(make_app):
    async with make_app() as app, make_app() as other, await start(app) as session:
        mail = Mail(session.tool)
        mail.send(SARAH)
        rules = await other.rule_store()
        rule = await rules.put_rule("send_email", NEVER, priority="critical")
        with pytest.raises(CallDenied):
            mail.send(SARAH)
        await rules.delete_rule("send_email", rule.id)
        mail.send(SARAH)
        assert mail.sent == [SARAH, SARAH]


async def test_the_next_session_holds_what_the_last_one_was_told(make_app):
    async with make_app() as app:
        async with await start(app) as session:
            await said(session, NEVER)
        async with await start(app) as session:
            with pytest.raises(CallDenied):
                Mail(session.tool).send(SARAH)


async def test_the_switch_that_turns_the_guard_off_lets_a_sessions_demands_only_remind(make_app):
    async with make_app("guard=off") as app, await start(app) as session:
        mail = Mail(session.tool)
        await said(session, NEVER)
        await said(session, "don't send the email yet")
        mail.send(SARAH)
        assert mail.sent == [SARAH]


async def test_of_a_store_that_nobody_trusts_no_rule_binds_and_the_sessions_own_demands_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with ToolMemApp() as app:
        rules = await app.rule_store()
        await rules.put_rule("send_email", "never email bob@example.com", priority="critical")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
    async with ToolMemApp() as app, await start(app, on_untrusted="ignore") as session:
        mail = Mail(session.tool)
        await said(session, NEVER)
        mail.send(BOB)
        with pytest.raises(CallDenied, match="never email Sarah"):
            mail.send(SARAH)
        later = Mail(session.tool, as_async=True)
        with pytest.raises(CallDenied):
            await later.send(SARAH)
        assert mail.sent == [BOB]


@both
async def test_a_sentence_that_lifts_a_rule_lets_the_call_run_that_answers_it(make_app, as_async):
    async with make_app() as app:
        async with await start(app) as session:
            await said(session, NEVER)
        async with await start(app) as session:
            mail = Mail(session.tool, as_async=as_async)
            session.messages("You may email Sarah again. Tell her that we are live.")
            await called(mail, SARAH)
            captured = await session.after_turn([{"role": "assistant", "content": "Told."}])
            assert [rule.rule for rule in captured.withdrawn] == [NEVER]
            await called(mail, SARAH)
            assert mail.sent == [SARAH, SARAH]


async def test_a_question_or_a_report_about_a_rule_lifts_nothing(make_app):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool)
        await said(session, NEVER)
        for sentence in ("May I email Sarah again?", "Bob said that you may email Sarah again.", "Tell Sarah."):
            session.messages(sentence)
            with pytest.raises(CallDenied):
                mail.send(SARAH)
            await session.after_turn([{"role": "assistant", "content": "No."}])
        assert not mail.sent


async def test_a_demand_on_this_session_is_lifted_in_the_message_that_says_so(make_app):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool)
        await said(session, "don't send the email yet")
        session.messages("You can send the email now.")
        mail.send(BOB)
        await session.after_turn([{"role": "assistant", "content": "Sent."}])
        assert session.session_rules == []
        assert mail.sent == [BOB]


async def test_a_sentence_is_read_by_the_parameters_of_the_decorated_function(make_app):
    sent: list[float] = []
    async with make_app() as app, await start(app, tools=["transfer_money"]) as session:

        @session.tool
        def transfer_money(recipient: str, amount: float) -> str:
            """Transfer money to an account."""
            sent.append(amount)
            return "done"

        await said(session, "never send more than $5,000 in one transfer")
        transfer_money("US122", amount=400)
        with pytest.raises(CallDenied, match=r"never send more than \$5,000"):
            transfer_money("US122", 6000.0)
        assert sent == [400]


async def test_what_was_recorded_is_not_lost_with_a_turn_that_cannot_be_read(make_app):
    async with make_app() as app, await start(app) as session:
        mail = Mail(session.tool)
        mail.send(BOB)
        with pytest.raises(RequestError, match="turn: call 0"):
            await session.after_turn(calls=[{"tool_name": "", "input": {}}])
        await session.after_turn(user_message="tell Bob")
        store = await app.services.store_named()
        assert await store.tool_names("default") == ["send_email"]


async def test_a_tool_that_calls_a_denied_one_has_run_itself(make_app):
    async with make_app("session.judging=deferred") as app:
        session = await start(app)
        mail = Mail(session.tool)
        await said(session, NEVER)

        @session.tool
        def tell_all() -> None:
            for to in (BOB, SARAH):
                mail.send(to)

        with pytest.raises(CallDenied):
            tell_all()
        await session.after_turn(user_message="tell all")
        await session.close()
        store = await app.services.store_named()
        records = {record.tool_name: record.counters for record in await store.records("default", None)}
        assert (records["tell_all"].calls, records["tell_all"].failures) == (1, 1)
        assert (records["send_email"].calls, records["send_email"].failures) == (1, 0)


def test_a_plain_tool_on_the_memorys_own_thread_waits_for_no_one(tmp_path):
    with ToolMem(tmp_path / "memory.db") as mem:
        mem.rules.put("send_email", NEVER, priority="critical")
        mail = Mail(CallRecorder(mem).tool)

        async def inside() -> None:
            mail.send(BOB)
            with pytest.raises(CallDenied):
                mail.send(SARAH)

        mem.app.call(asyncio.wait_for(inside(), 30))
        assert mail.sent == [BOB]
