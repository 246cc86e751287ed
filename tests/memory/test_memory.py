"""ToolMem and AsyncToolMem, and the operations on them."""

import asyncio
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from model_settings import NO_WAIT
from msgspec.structs import replace

from toolmem import AsyncToolMem, ToolMem
from toolmem.errors import ConfigError, RequestError, StoreClosed
from toolmem.llm.tokens import estimated_tokens
from toolmem.operations import OPERATIONS
from toolmem.testing.scripted import ScriptedJudge


def test_async_methods_leave_the_loop_free(path, records):
    async def slowly(call):
        await asyncio.sleep(0.01)
        return judge.good(call)

    judge = ScriptedJudge(slowly)
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def work():
        async with AsyncToolMem(path, judges={"default": judge}, overrides=NO_WAIT) as memory:
            ticking = asyncio.create_task(tick())
            others = memory.workspace("team").add(records(5, "calc"))
            added = await asyncio.gather(memory.add(records(5)), others)
            ticking.cancel()
            assert all(each.success for each in added)
            assert (await memory.summarize()).summarized == ["search"]
            assert 'worked: {"q": 4}' in (await memory.guidance("search")).text
            with pytest.raises(RequestError, match="recent"):
                await memory.calls(recent=0)

    asyncio.run(work())
    assert ticks > 3


def test_the_plain_memory_works_inside_a_running_loop(scripted, records):
    async def cell():
        scripted.add(records(3))
        return scripted.summarize().summarized

    assert asyncio.run(cell()) == ["search"]


def test_a_method_is_called_on_the_class_too_and_a_wrong_call_names_the_nearest_argument(memory):
    assert ToolMem.add(memory, [{"tool_name": "search", "output": "[]"}]).success
    assert [tool.tool_name for tool in ToolMem.tools(memory)] == ["search"]
    meant = r"^add\(\) has no argument 'tol_call_results' \(did you mean 'tool_call_results'\?\)$"
    with pytest.raises(TypeError, match=meant):
        memory.add(tol_call_results=[])
    with pytest.raises(TypeError, match=r"session_id: `conversation_id` says the same"):
        memory.capture_rules("Never push", session_id="a", conversation_id="b")
    with pytest.raises(TypeError, match=r"^add\(\): missing .*'tool_call_results'"):
        memory.add()


def test_an_operation_says_what_is_wrong_with_a_request(memory):
    for name, given, told in [
        ("add", {}, "tool_call_results: missing"),
        ("calls", {"resent": 1}, "did you mean 'recent'"),
        ("calls", {"recent": "1"}, "recent: expected `int"),
        ("calls", {"recent": 0}, "recent"),
        ("prompt", {"guidance_tokens": -1}, "guidance_tokens"),
    ]:
        with pytest.raises(RequestError, match=told):
            memory.perform(OPERATIONS[name], given)
    with pytest.raises(RequestError, match="workspace"):
        memory.workspace("bad id!")
    properties = OPERATIONS["ledger"].schema()["properties"]
    assert properties.keys() == {"newest"}


def test_what_lacks_a_method_of_its_protocol_is_refused_when_it_is_handed_over():
    with pytest.raises(ConfigError, match="judges.strict: str lacks identity, asks_model, judge"):
        ToolMem(":memory:", judges={"strict": "yes"})


def test_the_calls_of_a_conversation_are_there_when_they_left_the_window(path):
    limit = ["op.parse_tool_call_result_op.params.max_history_tool_call_cnt=2"]
    with ToolMem(path, overrides=limit) as memory:
        for n in range(5):
            call = {"tool_name": "search", "input": {"q": n}, "conversation_id": f"talk {n % 2}"}
            memory.add([call])
        found = memory.calls(conversation_id="talk 0")
        assert [call.input["q"] for call in found] == [0, 2, 4]
        assert memory.calls(["calc"], conversation_id="talk 0") == []


def test_a_prompt_holds_the_guidance_of_the_tools_at_hand(memory, records):
    memory.add(records(2) + records(2, "calc") + records(1, "unused"))
    memory.summarize(["search", "calc"])
    text = memory.prompt(["search", {"name": "calc"}, "unused", "none"], base_prompt="Be brief.")
    assert text.startswith("Be brief.\n\n## What is known of your tools")
    assert text.index("### `search`\n- worked:") < text.index("### `calc`\n- worked:")
    assert "unused" not in text
    assert memory.prompt() == memory.prompt(["calc", "search"])
    assert memory.prompt(["none"]) == ""


def test_a_prompt_keeps_to_its_number_of_tokens_and_holds_whole_lines(memory, records):
    memory.add([each for n in range(30) for each in records(3, f"tool_{n}")])
    memory.summarize()
    whole = memory.prompt(guidance_tokens=100_000)
    for tokens in (100, 400, 1_200):
        text = memory.prompt(guidance_tokens=tokens)
        assert 0 < estimated_tokens(text) <= tokens
        assert set(text.splitlines()) <= set(whole.splitlines())
    assert memory.prompt(guidance_tokens=20) == ""
    assert memory.prompt() == memory.prompt(guidance_tokens=1_200)


def test_guidance_is_written_and_handed_out_within_the_configured_number_of_tokens(path):
    broken = [
        {"tool_name": "t", "input": {"field": f"value-{n}"}, "output": f"Error: no column_{chr(n)}"}
        for n in range(65, 91)
    ]
    with ToolMem(path) as memory:
        memory.add(broken)
        memory.summarize()
        assert 150 < estimated_tokens(memory.guidance("t").memory_list[0].content) <= 300
    with ToolMem(path, overrides=["guidance.max_tokens=60"]) as memory:
        assert 0 < estimated_tokens(memory.guidance("t").text) <= 70
        memory.summarize(force=True)
        assert estimated_tokens(memory.guidance("t").memory_list[0].content) <= 60


def test_retrieval_answers_what_is_known_and_names_what_is_not_or_does_not_fit(memory, records):
    nothing = memory.retrieve("zebra")
    assert (nothing.success, nothing.answer) == (True, "No tool memory fits the query")
    unknown = memory.guidance(["zebra", "lion"])
    assert (unknown.success, unknown.not_found) == (False, ["zebra", "lion"])
    assert unknown.answer == "No tool memory found: zebra, lion"
    memory.add(records(2) + records(1, "calc"))
    memory.summarize()
    found = memory.guidance(["none", "search"])
    assert (found.success, found.partial, found.not_found) == (True, True, ["none"])
    best = memory.retrieve("search", top_k=1)
    assert [each.when_to_use for each in best.memory_list] == ["search"]
    assert memory.guidance("none").text == ""
    assert str(found) == found.text != ""
    (whole,) = memory.retrieve(tool_names="search", include_calls=True).memory_list
    assert [call.output for call in whole.tool_call_results] == ["0", "1"]
    with pytest.raises(RequestError, match="tool_names or query"):
        memory.guidance()


def test_a_bad_record_is_named_and_the_others_go_on(memory, records):
    endless = {"tool_name": "t", "input": {"a": float("nan")}}
    bad = [{"tool_name": 3}, {"output": "x"}, "no", endless]
    done = memory.add([*records(1), *bad, *records(1)])
    assert (done.success, done.partial) == (False, True)
    assert sorted(each.index for each in done.evaluation.failures) == [1, 2, 3, 4]
    assert done.answer.endswith("1 could not be stored")
    assert len(memory.calls()) == 2
    assert memory.add([{"tool_name": "t", "colour": "red", "score": 1.0}]).success
    assert memory.calls(["t"])[0].metadata == {"colour": "red"}


LOGIN = {
    "tool_name": "login",
    "input": {"user": "bob", "password": "Sunshine7"},
    "output": "welcome bob",
    "context": "log in with Sunshine7",
}


def stored_bytes(path):
    return b"".join(each.read_bytes() for each in Path(path).parent.glob("memory.db*"))


@pytest.mark.parametrize("levels", [199, 400, 900, 3_000])
def test_a_call_that_is_nested_too_deeply_is_named_and_the_others_go_on(memory, levels):
    value = [1]
    for _ in range(levels):
        value = [value]
    deep = {"tool_name": "deep", "input": {"x": value}, "output": "y"}
    added = memory.add([deep, {"tool_name": "search", "output": "3 hits"}])
    assert added.evaluation.failures[0].error == "nested deeper than 200 levels"
    assert [tool.tool_name for tool in memory.tools()] == ["search"]


def test_a_secret_of_a_call_never_reaches_the_file_and_the_judge_sees_it(path):
    def repeating(call):
        return replace(judge.good(call), evaluation="Sunshine7 was taken")

    judge = ScriptedJudge(repeating)
    with ToolMem(path, judges={"default": judge}) as memory:
        memory.add([LOGIN, {**LOGIN, "context": ""}])
        memory.summarize()
        calls = memory.calls()
        assert "Sunshine7" not in memory.guidance("login").text
        assert b"Sunshine7" not in stored_bytes(path)
    assert [call.input["user"] for call in calls] == ["bob", "bob"]
    assert calls[0].input == calls[1].input  # equal secrets have one mark
    assert {call.input["password"] for call in judge.asked} == {"Sunshine7"}
    with ToolMem(":memory:", overrides=["secrets.mask=false"]) as memory:
        memory.add([LOGIN])
        assert memory.calls()[0].input == LOGIN["input"]


def test_a_call_that_was_stopped_is_neither_judged_nor_stored(memory):
    stopped = {"tool_name": "login", "output": "Error: toolmem: not run. The user said: no."}
    done = memory.add([LOGIN, stopped])
    assert done.success
    assert done.evaluation.evaluated == 1
    assert [call.output for call in memory.calls()] == ["welcome bob"]


def test_a_store_that_was_made_elsewhere_is_told_of_once(tmp_path, records, caplog):
    with ToolMem(tmp_path / "a.db") as memory:
        memory.add(records(1))
    shutil.copy(tmp_path / "a.db", tmp_path / "cloned.db")
    with ToolMem(tmp_path / "cloned.db") as memory:
        memory.calls()
        memory.tools()
        for ask in (memory.guidance, memory.retrieve):
            with pytest.raises(RequestError, match="toolmem store trust --store .*cloned.db"):
                ask("search")
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "cloned.db is not known to be made by this user's toolmem" in caplog.text
    assert f"toolmem store trust --store {tmp_path / 'cloned.db'}" in caplog.text


@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_a_closed_memory_is_no_new_one(tmp_path, place, records):
    memory = ToolMem(str(tmp_path / "memory.db") if place == "file" else place)
    memory.add(records(1))
    memory.close()
    for ask in (memory.calls, memory.tools, lambda: memory.add(records(1))):
        with pytest.raises(StoreClosed):
            ask()


def test_a_memory_that_is_closed_before_its_first_use_opens_nothing(path):
    memory = ToolMem(path)
    memory.close()
    with pytest.raises(StoreClosed):
        memory.calls()
    assert not os.path.exists(path)


def test_a_cancelled_coroutine_does_not_leave_a_thread_that_waits_for_a_model(path, records):
    judge = ScriptedJudge(lambda call: asyncio.sleep(60))

    async def work():
        async with AsyncToolMem(path, judges={"default": judge}, overrides=NO_WAIT) as memory:
            adding = asyncio.create_task(memory.add(records(3)))
            while not judge.asked:
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            await adding

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    waiting = [each.name for each in threading.enumerate() if each.name.startswith("asyncio_")]
    assert waiting == []


def test_a_method_that_a_subclass_overrides_is_the_one_that_is_awaited():
    class Named(ToolMem):
        def tools(self):
            return ["mine"]

    memory = AsyncToolMem(":memory:")
    memory.plain = Named(":memory:")
    assert asyncio.run(memory.tools()) == ["mine"]
