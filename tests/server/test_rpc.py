"""JSON-RPC 2.0: methods, aliases, batches, errors."""

import json

import httpx
import pytest

from toolmem.server.rpc import Rpc


@pytest.fixture
def rpc(memory):
    service = Rpc(memory.workspace)

    def ask(value):
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        answer = service.answer(text)
        return None if answer is None else json.loads(answer)

    return ask


@pytest.fixture
def call(rpc):
    def make(method, params=None, **more):
        return rpc({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **more})

    return make


def test_the_six_methods_of_rules(call):
    given = {"tool_name": "Shell", "rule": "Never use sudo", "priority": "critical"}
    made = call("memory.tool_rule_put", given)["result"]
    defaults = {"source": "programmatic", "tags": []}
    assert made == {**made, **given, **defaults} and {"created_at", "updated_at"} <= made.keys()
    named = {"tool_name": "shell", "id": made["id"]}
    assert call("memory.tool_rule_get", named)["result"] == made
    assert call("memory.tool_rule_get", {**named, "id": "x"})["result"] is None
    assert call("memory.tool_rule_list", {"tool_name": "shell"})["result"] == [made]
    shown = call("memory.tool_rules_for_prompt")["result"]
    assert "Never use sudo" in shown["rendered"] and shown["rules"] == [made]
    raw = call("memory.tool_rules_json", {"tool_name": "shell"})["result"]
    assert [each["id"] for each in raw] == [made["id"]]
    assert call("memory.tool_rule_delete", named)["result"] is True
    assert call("memory.tool_rule_delete", named)["result"] is False


def test_names_of_the_source_system_answer_in_its_envelope(call):
    given = {"tool_name": "t", "rule": "r"}
    answer = call("openhuman.memory_tool_rule_put", given)["result"]
    assert answer["logs"] == [] and answer["result"]["rule"] == "r"


def test_workspaces_are_apart_and_positional_parameters_are_read(call):
    call("memory.tool_rule_put", {"tool_name": "t", "rule": "r", "workspace_id": "w"})
    assert call("memory.tool_rule_list", {"tool_name": "t"})["result"] == []
    assert len(call("memory.tool_rule_list", ["t", "w"])["result"]) == 1


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"{", -32700),
        (b"[" * 200_000, -32700),
        ([], -32600),
        (7, -32600),
        ({"id": 1, "method": "memory.recall"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "memory.recall"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_putt"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": 3}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_put", "params": {}}, -32602),
    ],
)
def test_errors_have_their_codes(rpc, value, code):
    assert rpc(value)["error"]["code"] == code


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"rule": "x"}, "tool_name"),
        ({"tool_name": "t", "rule": "x", "prio": "high"}, "prio"),
        ({"tool_name": "t", "rule": ["x"]}, "rule"),
        ({"tool_name": "t", "rule": "x", "workspace": 7}, "workspace"),
    ],
)
def test_a_wrong_parameter_is_named(call, params, field):
    error = call("memory.tool_rule_put", params)["error"]
    assert (error["code"], error["data"]) == (-32602, {"parameter": field})


def test_older_calls_are_asked_for_with_the_member_beside_a_result(call, memory, records):
    memory.add(records(5))
    seen, params = [], {"limit": 2}
    while params.get("before", 1):
        answer = call("memory.calls", params)
        seen = [each["input"]["q"] for each in answer["result"]] + seen
        params["before"] = answer.get("next")
    assert seen == [0, 1, 2, 3, 4]
    assert "next" not in answer and call("openhuman.memory_calls", {"limit": 2})["next"]


def test_batches_and_notifications(rpc):
    put = {"jsonrpc": "2.0", "method": "memory.tool_rule_put"}
    silent = {**put, "params": {"tool_name": "t", "rule": "silent"}}
    assert rpc(silent) is None
    assert rpc([silent, {**put, "params": {}}]) is None
    with_null = {"jsonrpc": "2.0", "id": None, "method": "memory.tool_rule_list"}
    asked = {**with_null, "params": {"tool_name": "t"}}
    answers = rpc([silent, {**asked, "id": "a"}, 3, asked])
    assert [each.get("id") for each in answers] == ["a", None, None]
    assert [rule["rule"] for rule in answers[0]["result"]] == ["silent"]
    assert answers[1]["error"]["code"] == -32600
    assert len(answers[2]["result"]) == 1
    assert rpc([asked] * 1_001)["error"]["code"] == -32600


def test_over_http_notifications_are_answered_by_204(url):
    headers = {"Content-Type": "application/json"}

    def post(value):
        content = json.dumps(value)
        return httpx.post(f"{url}/rpc", content=content, headers=headers, trust_env=False)

    put = {"jsonrpc": "2.0", "method": "memory.tool_rule_put"}
    given = {**put, "params": {"tool_name": "t", "rule": "x"}}
    assert post(given).status_code == 204
    assert post([{**given, "id": 1}]).json()[0]["result"]["rule"] == "x"
