"""One program, four objects: ToolMem and Client, AsyncToolMem and AsyncClient answer the same calls alike."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem import AsyncClient, AsyncToolMem, Client, RequestError, ToolCall, ToolMem
from toolmem.models import ToolMemory, ToolMemoryRule
from toolmem.operations.methods import Methods, RuleMethods
from toolmem.operations.operation import Operation
from toolmem.testing.service_process import ServiceProcess

SARAH = "never email Sarah at sarah@example.com"
CALLS = [
    ToolCall("search", {"query": "rain", "limit": 50}, output="Error: limit is at most 10", success=False),
    ToolCall("search", {"query": "rain", "limit": 10}, output='["umbrella"]', success=True),
]
KINDS = ("ToolMem", "AsyncToolMem", "Client", "AsyncClient")
_numbers = itertools.count()


class Awaited:
    """Any of the four, its methods awaited."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name == "rules":
            return Awaited(found)
        if not callable(found):
            return found

        async def method(*args: Any, **kwargs: Any) -> Any:
            answer = await asyncio.to_thread(found, *args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

        return method


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(params=KINDS)
async def mem(request: pytest.FixtureRequest, service: ServiceProcess) -> AsyncIterator[Awaited]:
    workspace = f"w{next(_numbers)}"
    if request.param == "ToolMem":
        with ToolMem("memory.db", workspace=workspace) as opened:
            yield Awaited(opened)
    elif request.param == "AsyncToolMem":
        async with AsyncToolMem("memory.db", workspace=workspace) as opened:
            yield Awaited(opened)
    elif request.param == "Client":
        with Client(service.url, workspace_id=workspace) as opened:
            yield Awaited(opened)
    else:
        async with AsyncClient(service.url, workspace_id=workspace) as opened:
            yield Awaited(opened)


async def test_calls_are_added_summarized_and_read(mem: Awaited) -> None:
    added = await mem.add(CALLS)
    assert (added.stored, added.duplicates, added.failures, added.success) == (2, 0, [], True)
    assert [tuple(each)[:2] for each in await mem.summarize("search")] == [("search", "summarized")]
    assert [each.action for each in await mem.summarize(["search", "nosuch"])] == ["skipped", "not_found"]
    await mem.add([ToolCall("translate", {"text": "rain"}, output="Regen", success=True)])
    assert {tuple(each)[:2] for each in await mem.summarize()} == {("search", "skipped"), ("translate", "summarized")}
    assert "limit is at most 10" in (await mem.guidance("search")).text
    assert str(await mem.guidance("search")) == (await mem.guidance("search")).text
    assert (await mem.guidance("nosuch")).text == ""
    found = await mem.retrieve(["search", "nosuch"])
    assert [type(each) for each in found] == [ToolMemory]
    assert (found.not_found, found.success) == (["nosuch"], True), "what is known is answered"
    unknown = await mem.retrieve(["nosuch"])
    assert (list(unknown), unknown.not_found, unknown.success) == ([], ["nosuch"], False)


async def test_a_bad_record_is_named_and_the_others_are_kept(mem: Awaited) -> None:
    added = await mem.add([*CALLS, {"output": "no tool"}])
    assert (added.stored, added.partial, added.success) == (2, True, False)
    assert [(each.index, "tool_name" in each.error) for each in added.failures] == [(2, True)]


async def test_the_same_ids_count_once(mem: Awaited) -> None:
    call = ToolCall("search", id="c-1", output="x")
    assert (await mem.add([call])).stored == 1
    again = await mem.add([call])
    assert (again.stored, again.duplicates) == (0, 1)


async def test_tools_are_listed_and_shown_and_their_calls_are_records(mem: Awaited) -> None:
    await mem.add(CALLS)
    (overview,) = await mem.tools()
    assert (overview.tool_name, overview.calls_ever, overview.window.success_rate) == ("search", 2, 0.5)
    assert (await mem.tool("search")).new_calls == 2
    assert await mem.tool("nosuch") is None
    calls = await mem.calls(["search"], recent=1)
    assert [call.output for call in calls.records()] == ['["umbrella"]']
    assert list(calls) == calls.records()
    assert list(calls.to_frame()["tool_name"]) == ["search"]


async def test_calls_of_a_conversation_and_those_beyond_the_window_come_from_the_log(mem: Awaited) -> None:
    def said(number: int, tool: str, conversation: str) -> ToolCall:
        made = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        return ToolCall(tool, {"n": number}, output=f"{number}", conversation_id=conversation, create_time=made)

    async def outputs(*args: Any, **asked: Any) -> list[str]:
        return [call.output for call in await mem.calls(*args, **asked)]

    await mem.add([said(number, "ab"[number % 2], f"c{number // 3}") for number in range(9)])
    await mem.add([said(number, "b", "long") for number in range(10, 115)])
    assert len(await outputs(["b"])) == 100
    logged = await outputs(["b"], limit=1000)
    assert (len(logged), logged[0], logged[-1]) == (109, "1", "114")
    assert await outputs(conversation_id="c1") == ["3", "4", "5"]
    assert await outputs(["a"], conversation_id="c1") == ["4"]
    assert await outputs(["b", "a", "unknown", "a"], conversation_id="c1", limit=2) == ["4", "5"]
    assert await outputs(limit=2) == ["113", "114"]
    assert await outputs(conversation_id="unknown") == []
    for wrong in ({"limit": 0}, {"limit": 5, "recent": 5}):
        with pytest.raises(RequestError, match="|".join(wrong)):
            await mem.calls(**wrong)


async def test_rules_are_put_read_pinned_and_deleted(mem: Awaited) -> None:
    rule = await mem.rules.put("send_email", SARAH, priority="critical")
    assert isinstance(rule, ToolMemoryRule)
    assert await mem.rules.get("send_email", rule.id) == rule
    assert await mem.rules.list("send_email") == [rule]
    assert [each["rule"] for each in await mem.rules.json("send_email")] == [SARAH]
    assert (await mem.rules.for_prompt()).rules == [rule]
    assert SARAH in (await mem.rules_block("send_email")).text
    assert await mem.rules.delete("send_email", rule.id) is True
    assert await mem.rules.get("send_email", rule.id) is None


async def test_health_tells_of_what_it_is_made(mem: Awaited) -> None:
    told = await mem.health()
    assert (told["status"], told["store"]["backend"], told["models"]["default"]["backend"]) == (
        "ok",
        "sqlite",
        "offline",
    )
    assert "add_tool_call_result" in told["flows"]


async def test_the_prompt_holds_rules_and_guidance(mem: Awaited) -> None:
    await mem.add(CALLS)
    await mem.summarize("search")
    await mem.rules.put("send_email", SARAH, priority="critical")
    prompt = await mem.prompt(["search", "send_email"], base_prompt="You help.")
    assert prompt.startswith("You help.\n")
    assert SARAH in prompt
    assert "limit is at most 10" in prompt


async def test_a_turn_gives_rules_for_good_and_for_the_session(mem: Awaited) -> None:
    captured = await mem.capture_rules(SARAH, tool_calls=[{"name": "send_email"}], session_id="s")
    assert [rule.rule for rule in captured.rules] == [SARAH]
    later = await mem.capture_rules("do not send it yet", tool_calls=[{"name": "send_email"}], session_id="s")
    assert [each["rule"] for each in later.session] == ["do not send it yet"]


async def test_general_memory_is_stored_recalled_and_forgotten(mem: Awaited) -> None:
    entry = await mem.remember("Reports are due on Friday.")
    assert [each.content for each in await mem.recall("reports")] == ["Reports are due on Friday."]
    assert await mem.forget(entry.id) is True
    assert await mem.recall("reports") == []


async def test_verdicts_are_tried_again_and_nothing_was_asked_of_a_model(mem: Awaited) -> None:
    await mem.add(CALLS)
    assert (await mem.retry_evaluations("search")).success
    assert (await mem.rejudge("search", force=True)).success
    assert await mem.ledger() == []


async def test_a_workspace_is_dumped_loaded_copied_and_deleted(mem: Awaited) -> None:
    await mem.add(CALLS)
    (memory,) = await mem.memories()
    assert len(memory.tool_call_results) == 2
    assert (await mem.dump()).success
    assert (await mem.load()).metadata["calls_added"] == 0
    copy = f"{memory.workspace_id}-copy"
    assert (await mem.copy_workspace(memory.workspace_id, workspace_id=copy)).metadata["copied"] == 1
    assert (await mem.delete_memories([memory.memory_id])).metadata["deleted"] == 1
    assert (await mem.delete_tools(workspace_id=copy)).success
    await mem.rules.put("t", "one")
    assert (await mem.delete_workspace()).metadata["counts"]["rules"] == 1


@pytest.mark.parametrize(
    ("method", "arguments", "field"),
    [
        ("summarize", {"tool_names": 5}, "tool_names"),
        ("retrieve", {"tool_names": "t", "top_k": "three"}, "top_k"),
        ("retrieve", {"tool_names": "t", "workspace_id": "../escape"}, "workspace_id"),
        ("recall", {"limit": "five"}, "limit"),
        ("tool", {"tool_name": 5}, "tool_name"),
        ("dump", {"path": "../../outside"}, "path"),
    ],
)
async def test_a_wrong_argument_is_refused_by_name(mem: Awaited, method: str, arguments: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        await getattr(mem, method)(**arguments)
    assert caught.value.field == field


def test_every_operation_is_a_method_with_its_own_words() -> None:
    for name, method in {**vars(Methods), **vars(RuleMethods)}.items():
        if isinstance(method, Operation):
            assert method.__doc__, name
            assert "workspace_id" in method.signature.parameters, name


@pytest.mark.parametrize("kind", [ToolMem, Client])
def test_a_misspelt_argument_is_refused_before_anything_is_asked(kind: Any) -> None:
    with pytest.raises(TypeError, match="tool_nams"):
        kind().summarize("search", tool_nams="search")


def test_a_client_that_names_no_workspace_works_in_the_one_of_a_memory_that_names_none(service: ServiceProcess) -> None:
    with Client(service.url) as client, Client(service.url, workspace_id="default") as named:
        client.add([ToolCall("moved", output="[]")])
        assert [call.tool_name for call in named.calls(["moved"])] == ["moved"]


def test_a_closed_memory_says_so_and_opens_no_other_store() -> None:
    with ToolMem(":memory:") as mem:
        mem.rules.put("send_email", SARAH, priority="critical")
    with pytest.raises(RequestError, match="this ToolMem is closed"):
        mem.prompt(tools=["send_email"])


async def test_so_does_a_closed_memory_of_async_code() -> None:
    async with AsyncToolMem(":memory:") as mem:
        await mem.tools()
    with pytest.raises(RequestError, match="this AsyncToolMem is closed"):
        await mem.tools()


def test_a_misspelt_field_of_a_call_is_refused() -> None:
    with pytest.raises(TypeError, match="sucess"):
        ToolCall("search", output="fine", sucess=False)  # type: ignore[call-arg]


@pytest.mark.parametrize("calls", [CALLS[0], CALLS[0].record(), "search", 5])
async def test_calls_that_are_no_list_are_refused_by_all_four_alike(mem: Awaited, calls: Any) -> None:
    with pytest.raises(RequestError, match="tool_call_results: expected a list, got") as refused:
        await mem.add(calls)
    assert refused.value.field == "tool_call_results"


async def test_a_record_that_is_none_is_named_by_all_four_alike(mem: Awaited) -> None:
    done = await mem.add([CALLS[0], 5])
    assert [failure.index for failure in done.failures] == [1]
