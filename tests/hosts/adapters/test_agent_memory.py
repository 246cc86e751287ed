"""What the adapters of agent frameworks promise, tried without any framework: `tests/hosts_live/adapters` has these."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolmem.hosts.adapters
from toolmem import AsyncToolMem, ToolMem
from toolmem.config.extras import FRAMEWORKS, install_line, missing
from toolmem.engine.guarding import CallGuard
from toolmem.errors import ConfigError, RequestError
from toolmem.hosts.adapters.common import AgentMemory

SARAH = {"to": "sarah@example.com"}
BOB = {"to": "bob@example.com"}
ADAPTERS = Path(toolmem.hosts.adapters.__file__).parent


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[ToolMem]:
    with ToolMem(tmp_path / "memory.db") as memory:
        yield memory


def outcomes(memory: ToolMem) -> list[tuple[str, str]]:
    return [(each.action, each.outcome) for each in memory.decisions()]


def test_a_call_is_kept_once_with_what_came_of_it(mem: ToolMem) -> None:
    talk = AgentMemory(mem, "c1").of()
    call = talk.begin_now("search", '{"q": "rain"}', "call_1")
    talk.end_now(call, {"hits": 2})
    talk.end_now(call, error="told again")
    (kept,) = mem.calls(["search"])
    assert (kept.id, kept.input, kept.output, kept.success) == ("c1/call_1", {"q": "rain"}, '{"hits": 2}', True)
    assert kept.metadata["conversation_id"] == "c1"
    assert kept.time_cost is not None


def test_a_call_that_is_run_again_under_its_id_is_another_call(mem: ToolMem) -> None:
    talk = AgentMemory(mem, "c1").of()
    for output in ("first", "second"):
        talk.end_now(talk.begin_now("search", {"q": output}, "call_1"), output)
    assert sorted(call.output for call in mem.calls(["search"])) == ["first", "second"]


def test_an_error_is_kept_as_the_tool_raised_it_or_as_the_framework_tells_it(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    talk.end_now(talk.begin_now("search", {"q": "a"}), error=ValueError("no index"))
    talk.end_now(talk.begin_now("search", {"q": "b"}), error="Error: timeout")
    assert sorted((call.output, call.success) for call in mem.calls(["search"])) == [
        ("Error: timeout", False),
        ("ValueError: no index", False),
    ]


def test_an_interrupted_call_is_kept_and_may_be_repeated(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    talk.end_now(talk.begin_now("search", {"q": "a"}), error=KeyboardInterrupt())
    assert not talk.begin_now("search", {"q": "a"}).stops
    (kept,) = mem.calls(["search"])
    assert (kept.output, kept.success) == ("KeyboardInterrupt: the call was interrupted", False)


def test_a_failed_call_is_stopped_when_repeated_runs_when_sent_once_more_and_is_stopped_again(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    seen = []
    for _ in range(4):
        call = talk.begin_now("search", {"q": "a"})
        seen.append(call.stops)
        if not call.stops:
            talk.end_now(call, error="Error: no index")
    assert seen == [False, True, False, True]


@pytest.mark.parametrize("mode", ["off", "shadow", "advise"])
def test_what_is_configured_for_repeats_holds_in_adapters_too(tmp_path: Path, mode: str) -> None:
    with ToolMem(tmp_path / "memory.db", overrides=[f"guard.repeats={mode}"]) as memory:
        talk = AgentMemory(memory).of()
        talk.end_now(talk.begin_now("search", {"q": "a"}), error="Error: no index")
        again = talk.begin_now("search", {"q": "a"})
        assert not again.stops
        assert bool(again.advice) is (mode == "advise")


def test_that_a_call_failed_before_is_not_said_of_one_that_has_worked(tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db", overrides=["guard.repeats=advise"]) as memory:
        talk = AgentMemory(memory).of()
        talk.end_now(talk.begin_now("search", {"q": "a"}), error="Error: no index")
        again = talk.begin_now("search", {"q": "a"})
        assert again.advised("...").startswith("...\n\n(from toolmem, not from the tool: ")
        talk.end_now(again, "found")
        assert again.advised("found") == "found"


def test_a_call_that_did_not_end_keeps_its_id_for_when_it_does(mem: ToolMem) -> None:
    talk = AgentMemory(mem, "c1").of()
    talk.begin_now("book", {"place": "Rome"}, "call_1")  # a framework that asks its own user first
    talk.end_now(talk.begin_now("book", {"place": "Rome"}, "call_1"), "booked")
    assert [call.id for call in mem.calls(["book"])] == ["c1/call_1"]


def test_nothing_of_a_store_that_is_not_trusted_reaches_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".toolmem").mkdir()
    with ToolMem(tmp_path / ".toolmem" / "memory.db") as theirs:
        theirs.rules.put("send_email", "never email Sarah", priority="critical")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another user"))
    with ToolMem() as found:
        talk = AgentMemory(found).of()
        assert talk.prompt_now(["send_email"], said="Never email Bob.", at=1) == ""
        call = talk.begin_now("send_email", SARAH)
        assert not call.stops
        talk.end_now(call, "sent")


def test_demands_for_this_session_bind_in_it_and_stand_in_its_prompt(mem: ToolMem) -> None:
    agent = AgentMemory(mem)
    section = agent.of("a").prompt_now(["delete_file"], said="For this session, do not use delete_file.", at=1)
    assert "[this session]" in section
    assert "delete_file" in section
    assert agent.of("a").begin_now("delete_file", {"path": "x"}).stops
    assert not agent.of("b").begin_now("delete_file", {"path": "x"}).stops
    assert mem.rules.list("delete_file") == []


def test_rules_of_every_tool_stand_in_the_prompt_where_not_all_tools_are_known(mem: ToolMem) -> None:
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    talk = AgentMemory(mem).of()
    assert talk.prompt_now(["Bash"]) == ""
    assert "never email Sarah" in asyncio.run(talk.prompt(["Bash"], all_known=False))


def test_kept_calls_are_judged_when_that_is_asked_for_and_guidance_of_them_stands_in_the_prompt(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    for number in range(12):
        call = talk.begin_now("search", {"q": f"rain {number}", "limit": 5 + number})
        talk.end_now(call, error="Error: limit is above 10" if number > 5 else None, output='{"hits": 3}')
    mem.retry_evaluations()
    assert {call.evaluation_status for call in mem.calls(["search"])} == {"ok"}
    mem.summarize(["search"])
    assert "limit" in talk.prompt_now(["search"])


def test_where_one_conversation_is_several_a_repeat_is_advised_against_and_runs(mem: ToolMem) -> None:
    talk = AgentMemory(mem, stops_repeats=False).of()
    talk.end_now(talk.begin_now("search", {"q": "a"}), error="Error: no index")
    again = talk.begin_now("search", {"q": "a"})
    assert not again.stops
    assert "failed once" in again.advice


def test_other_roads_of_one_memory_go_on_to_advise_on_repeats(mem: ToolMem) -> None:
    talk = AgentMemory(mem, "c1").of()
    talk.end_now(talk.begin_now("search", {"q": "a"}), error="Error: no index")
    assert mem.check_tool_call("search", {"q": "a"}, conversation_id="c1").action == "advise"


def test_the_prompt_has_the_rules_and_what_the_user_just_said(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    parts = [{"type": "text", "text": "Never email Sarah."}, {"type": "image", "data": "..."}]
    assert "Never email Sarah" in talk.prompt_now(["send_email"], said=parts, at=1)
    call = talk.begin_now("send_email", SARAH)
    assert call.stops
    assert "Never email Sarah" in call.reason
    assert not talk.begin_now("send_email", BOB).stops
    talk.prompt_now(["send_email"], said="You can email Sarah again.", at=2)
    assert not talk.begin_now("send_email", SARAH).stops


def test_a_message_is_read_once_however_often_the_model_is_asked(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    talk.prompt_now(["search"], said="go on", at=1)
    talk.end_now(talk.begin_now("search", {"q": "a"}), error="Error: no index")
    talk.prompt_now(["search"], said="go on", at=1)
    assert talk.begin_now("search", {"q": "a"}).stops
    talk.prompt_now(["search"], said="go on", at=2)
    assert not talk.begin_now("search", {"q": "a"}).stops


def test_an_agent_that_other_agents_speak_to_learns_no_rules_from_them(mem: ToolMem) -> None:
    AgentMemory(mem, capture=False).of().prompt_now(["send_email"], said="Never email Sarah.", at=1)
    assert mem.rules.list("send_email") == []


def test_conversations_are_those_of_the_framework_unless_one_is_given(mem: ToolMem) -> None:
    agent = AgentMemory(mem)
    assert agent.of("thread-7").conversation_id == "thread-7"
    assert agent.of("thread-7") is agent.of("thread-7")
    assert agent.of().conversation_id == agent.of().conversation_id != AgentMemory(mem).of().conversation_id
    assert AgentMemory(mem, "c1").of("thread-7").conversation_id == "c1"


def test_the_user_is_asked_and_only_true_is_consent(mem: ToolMem) -> None:
    mem.rules.put("delete_file", "ask me before you delete anything", priority="critical")

    def answer(given: Any) -> bool:
        return AgentMemory(mem, on_ask=lambda decision: given).of().begin_now("delete_file", {"path": "a"}).stops

    assert [answer(True), answer(False), answer("yes")] == [False, True, True]
    assert "ask the user first" in AgentMemory(mem).of().begin_now("delete_file", {"path": "a"}).reason


def test_a_call_that_is_stopped_ends_as_not_run_in_the_log_of_decisions(mem: ToolMem) -> None:
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    AgentMemory(mem).of().begin_now("send_email", SARAH)
    assert outcomes(mem) == [("deny", "not_run")]
    assert list(mem.calls(["send_email"])) == []


@pytest.mark.parametrize("method", ["before", "after"])
def test_trouble_of_ours_stops_no_call(mem: ToolMem, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(CallGuard, method, broken)
    talk = AgentMemory(mem).of()
    call = talk.begin_now("send_email", BOB)
    assert not call.stops
    talk.end_now(call, "sent")


class _Unshowable(Exception):
    def __str__(self) -> str:
        raise ValueError("mine")


def test_objects_that_are_no_json_and_cannot_be_shown_are_kept_as_far_as_they_can(mem: ToolMem) -> None:
    talk = AgentMemory(mem, on_ask=lambda decision: 1 / 0).of()
    given = {"a": _Unshowable(), "b": float("nan"), "c": (1, 2), "d": b"x"}
    call = talk.begin_now("search", given)
    talk.end_now(call, error=_Unshowable())
    (kept,) = mem.calls(["search"])
    assert kept.input == {"a": "<_Unshowable>", "b": "nan", "c": [1, 2], "d": "b'x'"}
    assert kept.output == "_Unshowable: <_Unshowable>"
    for name, arguments in (("", None), ("x" * 5000, [1]), ("search", float("inf")), ("search", _Unshowable())):
        call = talk.begin_now(name, arguments, object())
        assert not call.stops
        talk.end_now(call, _Unshowable())


def test_a_store_that_is_away_stops_no_call_and_gives_an_empty_prompt(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    talk = AgentMemory(ToolMem(tmp_path / "memory.db")).of()
    assert talk.prompt_now(["send_email"], said="never email Sarah") == ""
    call = talk.begin_now("send_email", SARAH)
    assert not call.stops
    talk.end_now(call, "sent")


def test_tools_that_cannot_be_read_leave_the_others(mem: ToolMem) -> None:
    mem.rules.put("send_email", "never email Sarah", priority="critical")
    assert "never email Sarah" in AgentMemory(mem).of().prompt_now([{"x": 1}, "send_email"])


def test_async_and_synchronous_tools_share_one_conversation_whichever_memory_it_is(tmp_path: Path) -> None:
    async def work(memory: Any) -> list[bool]:
        talk = AgentMemory(memory, "c1").of()
        call = await talk.begin("search", {"q": "a"})
        await talk.end(call, error="Error: no index")
        again = talk.begin_now("search", {"q": "a"})  # in the thread of the running loop
        once_more = await talk.begin("search", {"q": "a"})
        return [call.stops, again.stops, once_more.stops]

    async def opened() -> list[bool]:
        async with AsyncToolMem(tmp_path / "other.db") as memory:
            return await work(memory)

    with ToolMem(tmp_path / "memory.db") as memory:
        assert asyncio.run(work(memory)) == [False, True, False]
    assert asyncio.run(opened()) == [False, True, False]


def test_calls_of_many_threads_are_each_kept(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()

    def work(number: int) -> None:
        talk.end_now(talk.begin_now("search", {"q": str(number)}), "found")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(call.input["q"]) for call in mem.calls(["search"])) == list(range(16))


# ---------------------------------------------------------------- what the model notes

SAID = "Sarah has left the company, so no mail to Sarah from us any more"
NOTE = {
    "quote": SAID,
    "effect": "deny",
    "lasting": "always",
    "tools": ["send_email"],
    "when": [{"target": "sarah@"}],
    "stops": [{"tool": "send_email", "arguments": SARAH}],
    "passes": [{"tool": "send_email", "arguments": BOB}],
}


def test_what_the_model_notes_of_the_users_words_holds_from_the_next_call_on(mem: ToolMem) -> None:
    talk = AgentMemory(mem).of()
    talk.prompt_now(["send_email"], said=SAID)
    assert not talk.begin_now("send_email", SARAH).stops
    answer = json.loads(talk.answer_now("note_demand", json.dumps(NOTE)))
    assert (answer["outcome"], answer["told"][:5]) == ("kept", "Kept:")
    assert SAID in talk.begin_now("send_email", SARAH).reason
    assert not talk.begin_now("send_email", BOB).stops
    assert SAID in talk.prompt_now(["send_email"], said="go on")
    (rule,) = mem.rules.list("@mail")
    assert (rule.by, rule.rule) == ("user", SAID)
    lifted = json.loads(talk.answer_now("lift_demand", {"quote": "never mind", "lifted": SAID}))
    assert lifted["outcome"] == "refused"


def test_async_code_is_answered_alike(tmp_path: Path) -> None:
    async def work() -> tuple[str, bool]:
        async with AsyncToolMem(tmp_path / "memory.db") as memory:
            talk = AgentMemory(memory).of()
            await talk.prompt(["send_email"], said=SAID)
            answer = json.loads(await talk.answer("note_demand", NOTE))
            return answer["outcome"], (await talk.begin("send_email", SARAH)).stops

    assert asyncio.run(work()) == ("kept", True)


@pytest.mark.parametrize("said", ["", "no mail to Bob", f"Mallory wrote:\n> {SAID}"])
def test_what_the_user_did_not_say_binds_nothing(mem: ToolMem, said: str) -> None:
    talk = AgentMemory(mem).of()
    talk.prompt_now(["send_email"], said=said)
    assert json.loads(talk.answer_now("note_demand", NOTE))["outcome"] in ("refused", "proposed")
    assert not talk.begin_now("send_email", SARAH).stops


def test_noting_is_no_call_of_the_agent_and_no_rule_stops_it(mem: ToolMem) -> None:
    mem.rules.put("note_demand", "never note anything", effect="deny", when=True, priority="critical")
    talk = AgentMemory(mem).of()
    call = talk.begin_now("note_demand", NOTE)
    assert not call.stops
    talk.end_now(call, "noted")
    assert list(mem.calls(["note_demand"])) == []
    assert outcomes(mem) == []


@pytest.mark.parametrize("options", [{"demand_tools": False}, {"capture": False}])
def test_the_two_tools_can_be_taken_away(tmp_path: Path, options: dict[str, Any]) -> None:
    with ToolMem(tmp_path / "memory.db") as memory:
        agent = AgentMemory(memory, **options)
        assert agent.own_tools == []
        assert not agent.of().answers("note_demand")
        agent.of().end_now(agent.of().begin_now("note_demand", {"quote": "own"}), "a tool of the agent's own")
        assert len(memory.calls(["note_demand"])) == 1
    with ToolMem(tmp_path / "memory.db", overrides=["rules.capture=false"]) as memory:
        assert AgentMemory(memory).own_tools == []


def test_the_schemas_say_what_the_session_and_the_mcp_server_say(mem: ToolMem) -> None:
    offered = {tool["name"]: tool for tool in AgentMemory(mem).own_tools}
    assert list(offered) == ["note_demand", "lift_demand"]
    assert offered["note_demand"]["inputSchema"]["required"] == ["quote", "effect"]


def test_a_store_that_is_away_is_told_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    talk = AgentMemory(ToolMem(tmp_path / "memory.db")).of()
    talk.prompt_now(["send_email"], said=SAID)
    answer = json.loads(talk.answer_now("note_demand", NOTE))
    assert answer["outcome"] == "refused"
    assert "cannot be reached" in answer["told"]


def test_only_a_memory_is_taken() -> None:
    with pytest.raises(RequestError, match="memory: expected a ToolMem or AsyncToolMem, got str"):
        AgentMemory("memory.db")  # type: ignore[arg-type]


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_an_adapter_without_its_framework_names_the_extra(extra: str) -> None:
    if not missing(extra):
        pytest.skip("the framework is installed here")
    with pytest.raises(ConfigError, match=re.escape(install_line(extra))):
        importlib.import_module(f"toolmem.hosts.adapters.{extra.replace('-', '_')}")


def test_every_adapter_is_a_short_file_with_an_extra_of_its_name() -> None:
    files = {path.stem: path for path in ADAPTERS.glob("*.py") if path.stem not in ("__init__", "common")}
    assert set(files) == {extra.replace("-", "_") for extra in FRAMEWORKS}
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files.items()}
    assert {name: lines for name, lines in lengths.items() if lines > 130} == {}
