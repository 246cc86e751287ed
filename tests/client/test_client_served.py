"""Both clients against a real service: every method, through HTTP and back, as typed values."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from toolmem import AsyncClient, Client
from toolmem.client import PromptRules
from toolmem.errors import NotProvided, RequestError, ServiceDenied
from toolmem.models import FlowResponse, ToolCallResult, ToolMemory, ToolMemoryRule
from toolmem.operations.methods import Methods
from toolmem.operations.operation import Operation

SARAH = "never email Sarah at sarah@example.com"
CALLS = [
    {"tool_name": "search", "input": {"query": "rain", "limit": 50}, "output": "Error: limit is at most 10"},
    {"tool_name": "search", "input": {"query": "rain", "limit": 10}, "output": '["umbrella"]', "success": True},
]
_numbers = itertools.count()
TOKEN = "a-token-for-tests-83b1"


@pytest.fixture(params=["sync", "async"])
async def client(request, service):
    """Awaits the async client's methods, and turns the sync client's into awaitables: one set of tests for both."""
    workspace = f"{request.param}-{next(_numbers)}"
    if request.param == "async":
        async with AsyncClient(service.url, token=TOKEN, workspace_id=workspace) as client:
            yield client
    else:
        with Client(service.url, token=TOKEN, workspace_id=workspace) as client:
            yield _Awaitable(client)


class _Awaitable:
    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        found = getattr(self._target, name)
        if name == "batch":
            return lambda: _Awaitable(found())
        if name == "rules":
            return _Awaitable(found)
        return found if not callable(found) else lambda *a, **k: _soon(found, *a, **k)


async def _soon(function, *args, **kwargs):
    return await asyncio.to_thread(function, *args, **kwargs)


async def test_calls_are_added_summarized_and_retrieved(client):
    added = await client.add(CALLS)
    assert isinstance(added, FlowResponse)
    assert added.metadata["evaluation"]["evaluated"] == 2
    assert (await client.summarize("search")).metadata["summarized"] == ["search"]
    assert (await client.summarize(["search"])).metadata["skipped"] == ["search"]
    (memory,) = await client.retrieve("search")
    assert isinstance(memory, ToolMemory)
    assert (memory.when_to_use, memory.workspace_id) == ("search", client.workspace_id)
    assert memory.content
    assert memory.tool_call_results == []
    (whole,) = await client.retrieve(["search"], include_calls=True)
    assert [call.output for call in whole.tool_call_results] == [call["output"] for call in CALLS]
    assert (await client.retrieve(query="search the web for rain", top_k=1))[0].when_to_use == "search"
    assert await client.retrieve("nosuch") == []
    assert (await client.run("retrieve_tool_memory", tool_names="nosuch")).metadata["not_found"] == ["nosuch"]


async def test_records_may_be_toolmems_own_type_and_hold_times(client):
    call = ToolCallResult(tool_name="a,b", output="done", id="one", create_time=datetime(2026, 1, 2, 3, tzinfo=UTC))
    plain = {"tool_name": "a,b", "output": "x", "create_time": datetime(2026, 1, 2, 4, tzinfo=UTC), "id": "two"}
    assert (await client.add([call, plain])).success
    again = await client.add([call])
    assert again.metadata["evaluation"]["duplicates"] == 1
    (memory,) = await client.retrieve(["a,b"], include_calls=True)
    assert [(each.id, each.create_time.hour) for each in memory.tool_call_results] == [("one", 3), ("two", 4)]


async def test_a_partial_answer_is_an_answer(client):
    added = await client.add([*CALLS, {"output": "no tool"}])
    assert not added.success
    assert added.metadata["partial"]
    assert added.metadata["evaluation"]["failures"][0]["index"] == 2


async def test_a_workspace_is_listed_dumped_loaded_copied_and_deleted(client):
    here, other = client.workspace_id, f"{client.workspace_id}-copy"
    await client.add(CALLS)
    (memory,) = await client.memories()
    assert len(memory.tool_call_results) == 2
    assert (await client.dump()).metadata["dumped"] == 1
    assert (await client.load()).metadata["calls_added"] == 0
    assert (await client.copy_workspace(here, workspace_id=other)).metadata["copied"] == 1
    assert len(await client.memories(workspace_id=other)) == 1
    gone = await client.delete_memories([memory.memory_id, "nosuch"])
    assert (gone.metadata["deleted"], gone.metadata["not_found"]) == (1, ["nosuch"])
    assert await client.memories() == []
    await client.rules.put("send_email", SARAH, workspace_id=other)
    assert (await client.delete_tools(workspace_id=other)).metadata["rules_kept"] == 1
    gone = (await client.delete_workspace(workspace_id=other)).metadata["counts"]
    assert (gone["tool_memories"], gone["rules"]) == (0, 1)
    assert await client.rules.list("send_email", workspace_id=other) == []


async def test_verdicts_are_tried_again_and_given_anew(client):
    await client.add(CALLS)
    assert (await client.retry_evaluations("search")).success
    assert (await client.rejudge(force=True)).success


async def test_a_rule_is_put_read_listed_and_deleted(client):
    rule = await client.rules.put("send_email", SARAH, priority="critical", tags=["mail"])
    assert isinstance(rule, ToolMemoryRule)
    changed = await client.rules.put("send_email", "never email anyone", id=rule.id)
    assert (changed.priority, changed.tags, changed.created_at) == ("critical", ["mail"], rule.created_at)
    assert await client.rules.get("send_email", rule.id) == changed
    assert await client.rules.list("Send_Email") == [changed]
    assert [each["id"] for each in await client.rules.json("send_email")] == [rule.id]
    block = await client.rules.for_prompt(["send_email", {"name": "search"}])
    assert isinstance(block, PromptRules)
    assert block.rendered.endswith("### `send_email`\n- **[critical]** never email anyone")
    assert (block.rules, block.left_out, block.damaged) == ([changed], [], [])
    assert "工具" in (await client.rules.for_prompt(language="zh")).rendered
    assert await client.rules.delete("send_email", rule.id) is True
    assert await client.rules.delete("send_email", rule.id) is False
    assert await client.rules.get("send_email", rule.id) is None
    assert (await client.rules.for_prompt()).rendered == ""


async def test_a_turn_is_captured_and_any_method_can_be_called(client):
    captured = await client.capture_rules(SARAH, tool_calls=[{"name": "send_email"}], session_id="s")
    assert captured.success
    assert [rule.rule for rule in await client.rules.list("send_email")] == [SARAH]
    await client.call("memory.store", content="Reports are due on Friday.")
    assert len(await client.call("memory.recall", query="reports")) == 1


async def test_a_batch_is_one_request_with_one_result_each(client):
    batch = client.batch()
    if isinstance(batch, _Awaitable):
        batch = batch._target
    batch.put_rule("t", "one", priority="critical")
    batch.put_rule("t", " ")
    batch.rules_for_prompt()
    results = batch.results()
    rule, refused, block = await results if inspect.isawaitable(results) else results
    assert isinstance(refused, RequestError)
    assert refused.field == "rule"
    assert block.rules == [rule]


async def test_what_the_service_refuses_says_which_field_and_what_would_be_right(client):
    with pytest.raises(RequestError, match="top_k: expected an integer") as caught:
        await client.run("retrieve_tool_memory", tool_names="x", top_k="three")
    assert caught.value.field == "top_k"
    with pytest.raises(RequestError, match=r"tool_nmes: unknown .did you mean 'tool_names'") as caught:
        await client.run("summary_tool_memory", tool_nmes="x")
    assert caught.value.field == "tool_nmes"
    with pytest.raises(RequestError, match="did you mean 'rejudge'"):
        await client.run("rejuge")
    with pytest.raises(RequestError, match="priority") as caught:
        await client.rules.put("t", "one", priority="urgent")
    assert caught.value.field == "priority"
    with pytest.raises(RequestError, match="Method not found"):
        await client.call("memory.nosuch")
    with pytest.raises(RequestError, match="workspace_id") as caught:
        await client.retrieve("x", workspace_id="../escape")
    assert caught.value.field == "workspace_id"
    with pytest.raises(RequestError) as caught:
        await client.dump("../../outside")
    assert caught.value.field == "path"


@pytest.mark.parametrize("flow", ["", "a/b", "..", ".", 7])
async def test_a_flow_is_a_name_not_a_path(client, flow):
    with pytest.raises(RequestError, match="flow: expected the name"):
        await client.run(flow)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {("a", 1): 2}])
async def test_what_is_no_json_is_refused_before_it_is_sent(client, value):
    with pytest.raises(RequestError, match="the request is not JSON"):
        await client.add([{"tool_name": "t", "input": {"x": value}}])


async def test_any_text_arrives_as_it_was_sent(client):
    text = 'naïve 邮件 \U0001f600 \x00 \ud800 "quoted" \r\n'
    await client.add([{"tool_name": "text", "output": text}])
    (memory,) = await client.retrieve("text", include_calls=True)
    assert memory.tool_call_results[0].output == text.replace("\ud800", "\ufffd")


async def test_the_health_of_the_service_can_be_asked(client):
    from toolmem import __version__

    assert (await client.health())["version"] == __version__


def test_a_wrong_or_missing_token_is_told(service):
    for token, says in (("wrong", "does not accept"), ("", "asks for a token")):
        with Client(service.url, token=token, workspace_id="x") as asking:
            with pytest.raises(ServiceDenied, match=says):
                asking.retrieve("x")
            with pytest.raises(ServiceDenied, match=says):
                asking.rules.put("t", "one")


def test_a_flow_of_ones_own_needs_a_workspace_and_methods_have_a_default_one(service):
    with Client(service.url, token=TOKEN) as asking:
        with pytest.raises(RequestError, match="workspace_id: missing"):
            asking.run("retrieve_tool_memory", tool_names="x")
        assert asking.retrieve("x").not_found == ["x"]
        rule = asking.rules.put("t", "one")
        assert asking.rules.get("t", rule.id, workspace_id="default") == rule


def test_a_flow_of_another_toolkit_is_named_as_such(tmp_path):
    from toolmem.testing.service_process import ServiceProcess

    config = tmp_path / "reme.yaml"
    config.write_text("flow:\n  retrieve_task_memory:\n    flow_content: RecallVectorStoreOp()\n", encoding="utf-8")
    with (
        ServiceProcess(tmp_path, "--config", str(config)) as service,
        Client(service.url, workspace_id="x") as asking,
        pytest.raises(NotProvided, match="not provided by toolmem"),
    ):
        asking.run("retrieve_task_memory", query="x")


async def test_one_client_serves_many_tasks_and_threads(service):
    with Client(service.url, token=TOKEN, workspace_id="many-threads") as asking:
        await asyncio.gather(*(asyncio.to_thread(asking.add, [{"tool_name": "t", "id": str(n)}]) for n in range(16)))
        assert len(asking.retrieve("t", include_calls=True)[0].tool_call_results) == 16
    async with AsyncClient(service.url, token=TOKEN, workspace_id="many-tasks") as asking:
        await asyncio.gather(*(asking.add([{"tool_name": "t", "id": str(n)}]) for n in range(16)))
        assert len((await asking.retrieve("t", include_calls=True))[0].tool_call_results) == 16


# ---------------------------------------------------------------- the class itself


def test_every_described_call_is_a_method_of_both_clients_with_its_signature_and_words():
    methods = {name: method for name, method in vars(Methods).items() if isinstance(method, Operation)}
    assert len(methods) >= 20
    with Client() as asking:
        for name, method in methods.items():
            assert inspect.signature(getattr(asking, name)) == method.signature
            assert getattr(AsyncClient, name) is getattr(Client, name)
            assert method.__doc__


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"base_url": "127.0.0.1:8002"}, "base_url"),
        ({"base_url": "ftp://127.0.0.1"}, "base_url"),
        ({"base_url": "http://user:secret@127.0.0.1"}, "base_url"),
        ({"base_url": "http://127.0.0.1/?a=1"}, "base_url"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(given, field):
    with pytest.raises(RequestError) as caught:
        Client(**given)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


def test_importing_the_client_loads_neither_http_nor_numpy():
    loaded = subprocess.run(
        [sys.executable, "-c", "from toolmem import Client, AsyncClient; import sys; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"httpx", "numpy", "tenacity", "anyio", "apsw"} & set(loaded)
