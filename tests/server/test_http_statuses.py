"""Each outcome has its status, and every answer is a FlowResponse."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from toolmem.flow.op import Context, Op
from toolmem.flow.registry import register
from toolmem.models import FlowResponse
from toolmem.server.http.access import AccessControl
from toolmem.server.http.application import application
from toolmem.server.http.responses import answered
from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

SECRET = "the user's own words"


@register
class BrokenOnPurposeOp(Op):
    """Raises what no op should."""

    reads = ("workspace_id",)

    async def execute(self, context: Context) -> None:
        raise KeyError(SECRET)


@register
class WaitsToBeReleasedOp(Op):
    """Holds its request until the test lets it go."""

    reads = ("workspace_id",)
    released: asyncio.Event
    held = 0

    async def execute(self, context: Context) -> None:
        type(self).held += 1
        await type(self).released.wait()
        type(self).held -= 1


@asynccontextmanager
async def client_of(app: Any):
    transport = httpx.ASGITransport(application(app, AccessControl(None)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def post(app: Any, path: str, body: Any) -> httpx.Response:
    async with client_of(app) as client:
        return await client.post(path, json=body)


def flow_response(answer: httpx.Response) -> dict[str, Any]:
    body = answer.json()
    assert set(body) == {"answer", "success", "metadata"}
    assert answer.headers["content-type"] == "application/json"
    if answer.status_code != 200:
        assert body["success"] is False
        assert all({"type", "message"} <= set(error) for error in body["metadata"]["errors"])
        assert body["metadata"]["errors"]
    return body


# ---------------------------------------------------------------- 200


CALL = {"tool_name": "search", "input": {"q": "rain"}, "output": "umbrella", "success": True}


def test_the_published_demo_of_reme_runs_unchanged(served):
    """The requests of ReMe's tool memory demo, as its users send them: plain `requests.post(url, json=...)`."""
    import requests

    def call(flow: str, **body: Any) -> dict[str, Any]:
        answer = requests.post(f"{served.url}/{flow}", json={"workspace_id": "demo", **body}, timeout=30)
        answer.raise_for_status()
        body = answer.json()
        assert isinstance(body["metadata"], dict)
        return body

    call("vector_store", action="delete")
    results = [
        {
            "create_time": "2025-10-21 10:30:00",
            "tool_name": "web_search",
            "input": {"query": f"query {n}", "max_results": 10},
            "output": f"Found {n} relevant results",
            "token_cost": 150,
            "success": n % 5 != 0,
            "time_cost": 2.3,
        }
        for n in range(10)
    ]
    added = call("add_tool_call_result", tool_call_results=results)
    assert added["success"] is True
    assert added["metadata"]["memory_list"][0]["when_to_use"] == "web_search"
    assert call("summary_tool_memory", tool_names="web_search")["metadata"]["summarized"] == ["web_search"]
    [memory] = call("retrieve_tool_memory", tool_names="web_search")["metadata"]["memory_list"]
    assert memory["memory_type"] == "tool"
    assert memory["content"]
    assert call("vector_store", action="dump", path="./demo/")["success"] is True
    assert call("vector_store", action="delete")["metadata"]["deleted"] == 1
    assert call("vector_store", action="load", path="./demo/")["metadata"]["calls_added"] == 10
    assert len(call("vector_store", action="list")["metadata"]["memory_list"]) == 1


def test_what_is_not_found_and_what_is_partial_are_answers_without_success(served):
    missing = httpx.post(served.url + "/retrieve_tool_memory", json={"workspace_id": "none", "tool_names": "t"})
    assert missing.status_code == 200
    assert flow_response(missing)["metadata"]["not_found"] == ["t"]
    bad = {"workspace_id": "partly", "tool_call_results": [CALL, {"output": "whose?"}]}
    partial = httpx.post(served.url + "/add_tool_call_result", json=bad)
    assert partial.status_code == 200
    body = flow_response(partial)
    assert body["success"] is False
    assert body["metadata"]["partial"] is True


def test_a_lone_surrogate_in_an_answer_is_escaped():
    body = json.loads(answered(FlowResponse(answer="a\ud800b", metadata={"not_found": ["\udfff"]})).body)
    assert body == {"answer": "a\ud800b", "success": True, "metadata": {"not_found": ["\udfff"]}}


# ---------------------------------------------------------------- 404 and 422


def test_an_unknown_flow_names_the_known_ones_and_the_nearest(served):
    answer = httpx.post(served.url + "/retreive_tool_memory", json={})
    assert answer.status_code == 404
    body = flow_response(answer)
    assert "did you mean 'retrieve_tool_memory'?" in body["answer"]
    assert body["metadata"]["nearest"] == "retrieve_tool_memory"
    assert "add_tool_call_result" in body["metadata"]["flows"]


def test_without_a_near_name_the_flows_are_listed_in_the_same_sentence(served):
    body = flow_response(httpx.post(served.url + "/xyz", json={}))
    assert body["answer"].startswith("no flow is called 'xyz'; there are: add_tool_call_result, ")


def test_the_bare_address_points_to_the_page_that_describes_the_rest(served):
    answer = httpx.get(served.url)
    assert answer.status_code == 404
    body = flow_response(answer)
    assert "GET /docs describes" in body["answer"]
    assert httpx.get(served.url + body["metadata"]["docs"]).status_code == 200


async def test_a_flow_of_another_memory_is_told_apart_from_an_unknown_one(make_app):
    async with make_app("flow.retrieve_task_memory.flow_content=recall_vector_store_op") as app:
        answer = await post(app, "/retrieve_task_memory", {"workspace_id": "w", "query": "x"})
    assert answer.status_code == 404
    assert flow_response(answer)["answer"] == "not provided by toolmem: recall_vector_store_op"


async def test_a_flow_that_is_switched_off_says_so(make_app):
    async with make_app('disabled_flows=["vector_store"]') as app:
        answer = await post(app, "/vector_store", {"workspace_id": "w", "action": "list"})
    assert answer.status_code == 404
    assert "disabled_flows" in flow_response(answer)["answer"]


@pytest.mark.parametrize(
    ("flow", "body", "field"),
    [
        ("retrieve_tool_memory", {"tool_names": "t"}, "workspace_id"),
        ("retrieve_tool_memory", {"workspace_id": "../etc", "tool_names": "t"}, "workspace_id"),
        ("retrieve_tool_memory", {"workspace_id": "w", "tool_name": "t"}, "tool_name"),
        ("retrieve_tool_memory", {"workspace_id": "w", "tool_names": 3}, "tool_names"),
        ("retrieve_tool_memory", {"workspace_id": "w"}, "tool_names"),
        ("retrieve_tool_memory", {"workspace_id": "w", "query": "x", "top_k": 0}, "top_k"),
        ("summary_tool_memory", {"workspace_id": "w", "tool_names": "t", "force": "yes"}, "force"),
        ("summary_tool_memory", {"workspace_id": "w", "tool_names": "t", "data_from": "soon"}, "data_from"),
        ("vector_store", {"workspace_id": "w", "action": "dmp"}, "action"),
        ("vector_store", {"workspace_id": "w", "action": "copy", "src_workspace_id": "../w"}, "src_workspace_id"),
        ("add_tool_call_result", {"workspace_id": "w", "tool_call_results": {}}, "tool_call_results"),
        ("capture_tool_rules", {"workspace_id": "w"}, "user_message"),
    ],
)
def test_what_the_command_line_refuses_is_refused_and_the_field_is_named(served, flow, body, field):
    answer = httpx.post(f"{served.url}/{flow}", json=body)
    assert answer.status_code == 422
    [error] = flow_response(answer)["metadata"]["errors"]
    assert error["type"] == "RequestError"
    assert error["field"] == field
    assert field in answer.json()["answer"]


@pytest.mark.parametrize(
    "path", ["../x", "../../etc/passwd", "/etc/passwd", "a/../../b", "a\0b", "\ud800", "x" * 5000, "x/" * 3000]
)
@pytest.mark.parametrize("action", ["dump", "load"])
def test_no_path_leaves_the_dump_folder(served, action, path):
    body = json.dumps({"workspace_id": "paths", "action": action, "path": path})
    answer = httpx.post(served.url + "/vector_store", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert flow_response(answer)["metadata"]["errors"][0]["field"] == "path"
    assert not list(served.folder.parent.glob("*.jsonl"))


def test_a_link_out_of_the_dump_folder_is_not_followed(served, tmp_path):
    dumps = served.folder / "dumps"
    dumps.mkdir(exist_ok=True)
    (dumps / "out").symlink_to(tmp_path)
    answer = httpx.post(served.url + "/vector_store", json={"workspace_id": "w", "action": "dump", "path": "out"})
    assert answer.status_code == 422
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- 429, 500, 502, 503

EMBEDDER = (
    "embedding_model.default.backend=openai_compatible",
    "embedding_model.default.model_name=text-embedding-v4",
    "embedding_model.default.params.dimensions=64",
    "embedding_model.default.params.api_key=any",
    "embedding_model.default.params.max_retries=0",
)
QUERY = {"workspace_id": "w", "query": "what is there for rain?"}


async def test_a_model_that_is_not_there_is_a_bad_gateway(make_app):
    with ModelServer(Script()) as server:
        address = server.openai_url
    async with make_app(*EMBEDDER, f"embedding_model.default.params.base_url={address}") as app:
        answer = await post(app, "/retrieve_tool_memory", QUERY)
    assert answer.status_code == 502
    assert flow_response(answer)["metadata"]["errors"][0]["type"] == "ModelUnreachable"


async def test_a_spent_budget_is_too_many_requests(make_app):
    with ModelServer(Script()) as server:
        address = f"embedding_model.default.params.base_url={server.openai_url}"
        async with make_app(*EMBEDDER, address, "budget.max_tokens=2") as app:
            answer = await post(app, "/retrieve_tool_memory", QUERY)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert flow_response(answer)["metadata"]["errors"][0]["type"] == "BudgetReached"


async def test_calls_that_a_budget_left_unjudged_are_kept_and_named(make_app):
    with ModelServer(Script()) as server:
        asked = (
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=qwen-plus",
            "llm.default.params.api_key=any",
            f"llm.default.params.base_url={server.openai_url}",
            "budget.max_tokens=1",
        )
        async with make_app(*asked) as app:
            answer = await post(app, "/add_tool_call_result", {"workspace_id": "w", "tool_call_results": [CALL]})
    assert answer.status_code == 200
    body = flow_response(answer)
    assert body["success"] is False
    assert body["metadata"]["stopped_by"] == "budget"


async def test_a_store_that_is_closed_is_unavailable(make_app):
    async with make_app() as app:
        await (await app.services.store_named()).close()
        answer = await post(app, "/retrieve_tool_memory", {"workspace_id": "w", "tool_names": "t"})
        async with client_of(app) as client:
            health = await client.get("/health")
    assert answer.status_code == 503
    assert flow_response(answer)["metadata"]["errors"][0]["type"] == "StoreClosed"
    assert health.status_code == 503
    assert flow_response(health)["success"] is False


async def test_a_defect_of_ours_is_told_without_its_internals(make_app, caplog):
    async with make_app("flow.broken.flow_content=broken_on_purpose_op") as app:
        answer = await post(app, "/broken", {"workspace_id": "w"})
    assert answer.status_code == 500
    body = flow_response(answer)
    assert body["answer"] == (
        "internal error (KeyError, raised by the op 'broken_on_purpose_op' in the flow 'broken'); "
        "the service's log says where"
    )
    assert SECRET not in answer.text
    [record] = [each for each in caplog.records if each.name == "toolmem.service"]
    assert "test_http_statuses.py" in record.getMessage()
    assert SECRET not in record.getMessage()


async def test_more_requests_than_allowed_are_turned_away_and_health_is_not(make_app):
    WaitsToBeReleasedOp.released = asyncio.Event()
    async with (
        make_app("flow.waits.flow_content=waits_to_be_released_op", "http.limit_concurrency=2") as app,
        client_of(app) as client,
    ):
        held = [asyncio.create_task(client.post("/waits", json={"workspace_id": "w"})) for _ in range(2)]
        async with asyncio.timeout(60):
            while WaitsToBeReleasedOp.held < 2:
                await asyncio.sleep(0.01)
        turned_away = await client.post("/waits", json={"workspace_id": "w"})
        health = await client.get("/health")
        WaitsToBeReleasedOp.released.set()
        answers = await asyncio.gather(*held)
        later = await client.post("/waits", json={"workspace_id": "w"})
    assert turned_away.status_code == 503
    assert flow_response(turned_away)["metadata"]["errors"][0]["type"] == "Busy"
    assert "Retry-After" in turned_away.headers
    assert [each.status_code for each in (*answers, health, later)] == [200] * 4


# ---------------------------------------------------------------- JSON-RPC


def test_json_rpc_answers_and_stays_silent_as_its_specification_says(served):
    def rpc(body: Any) -> httpx.Response:
        return httpx.post(served.url + "/rpc", json=body)

    put = {"workspace_id": "rpc", "tool_name": "send_email", "rule": "never email Sarah", "priority": "critical"}
    one = {"jsonrpc": "2.0", "id": 7, "method": "memory.tool_rule_put", "params": put}
    assert rpc(one).json()["result"]["rule"] == "never email Sarah"
    ask = {"jsonrpc": "2.0", "id": 8, "method": "memory.tool_rules_for_prompt", "params": {"workspace_id": "rpc"}}
    silent = {"jsonrpc": "2.0", "method": "memory.store", "params": {"workspace_id": "rpc", "content": "x"}}
    batch = rpc([ask, silent, {"jsonrpc": "2.0", "id": 9, "method": "memory.nosuch"}]).json()
    assert [each["id"] for each in batch] == [8, 9]
    assert "- **[critical]** never email Sarah" in batch[0]["result"]["rendered"]
    assert batch[1]["error"]["code"] == -32601
    quiet = rpc([silent, silent])
    assert quiet.status_code == 204
    assert quiet.content == b""
    wrong = rpc({"jsonrpc": "2.0", "id": 1, "method": "memory.recall", "params": {"limit": "five"}})
    assert wrong.status_code == 200
    assert wrong.json()["error"] == {
        "code": -32602,
        "message": "Invalid params: limit: expected an integer, got 'five'",
        "data": {"parameter": "limit"},
    }
