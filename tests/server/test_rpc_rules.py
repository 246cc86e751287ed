"""JSON-RPC 2.0 over rules and memories: text in, text out."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config import Settings
from toolmem.errors import StoreUnavailable
from toolmem.flow.runner import SystemClock
from toolmem.providers.hashing import HashingEmbedder
from toolmem.server.rpc import MAX_BATCH, RpcService, alias, methods
from toolmem.store.sqlite import SqliteStore

SARAH = "never email Sarah at sarah@example.com"


class PlainServices:
    """The services of the default configuration, without reading it anew for each test."""

    def __init__(self, store: SqliteStore, embedder: HashingEmbedder) -> None:
        self.clock = SystemClock()
        self.settings = Settings()
        self._store, self._embedder = store, embedder

    async def store(self, op: Any) -> SqliteStore:
        return self._store

    async def embedder(self, op: Any) -> HashingEmbedder:
        return self._embedder

    def untrusted(self, store: str = "default") -> str:
        return ""


@pytest.fixture
async def rpc(tmp_path):
    embedder = HashingEmbedder()
    async with SqliteStore(tmp_path / "memory.db", clock=SystemClock(), embedder=embedder.identity) as store:
        yield RpcService(PlainServices(store, embedder))  # type: ignore[arg-type]


async def test_the_services_of_an_app_serve_it(make_app):
    async with make_app("rules.max_in_prompt=1") as app:
        rpc = RpcService(app.services)
        for n in range(2):
            await result(rpc, "memory.tool_rule_put", tool_name="t", rule=f"rule {n}", priority="high")
        assert len((await result(rpc, "memory.tool_rules_for_prompt"))["rules"]) == 1


def request(method: str, params: Any = None, id: Any = 1, **more: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": id, "method": method, **more}
    return body if params is None else {**body, "params": params}


async def answer(rpc: RpcService, method: str, params: Any = None, **more: Any) -> dict[str, Any]:
    text = await rpc.dispatch(json.dumps(request(method, params, **more)))
    assert text is not None
    return json.loads(text)


async def result(rpc: RpcService, method: str, **params: Any) -> Any:
    answered = await answer(rpc, method, params)
    assert answered["jsonrpc"] == "2.0"
    assert "error" not in answered, answered
    return answered["result"]


# ---------------------------------------------------------------- methods


async def test_a_rule_is_put_read_listed_and_deleted(rpc):
    rule = await result(rpc, "memory.tool_rule_put", tool_name="Send_Email", rule=SARAH, priority="critical")
    assert set(rule) == {
        *("id", "tool_name", "rule", "priority", "source", "tags", "created_at", "updated_at", "status", "said"),
        *("effect", "unchecked", "expires_at", "superseded_by", "when"),
    }
    assert (rule["status"], rule["said"]["by"]) == ("active", "program")
    key = {"tool_name": "send_email", "id": rule["id"]}
    assert await result(rpc, "memory.tool_rule_get", **key) == rule
    assert await result(rpc, "memory.tool_rule_list", tool_name="SEND_EMAIL") == [rule]
    assert await result(rpc, "memory.tool_rules_json", tool_name="send_email") == [rule]
    pinned = await result(rpc, "memory.tool_rules_for_prompt", tools=[])
    assert pinned["rules"] == [rule]
    assert pinned["rendered"].endswith(f"### `Send_Email`\n- **[critical]** {SARAH}")
    assert await result(rpc, "memory.tool_rule_delete", **key) is True
    assert await result(rpc, "memory.tool_rule_delete", **key) is False
    assert await result(rpc, "memory.tool_rule_get", **key) is None
    assert await result(rpc, "memory.tool_rules_for_prompt") == {"rendered": "", "rules": []}


async def test_a_put_with_an_id_keeps_what_it_leaves_out(rpc):
    rule = await result(rpc, "memory.tool_rule_put", tool_name="t", rule="one", priority="critical", tags=["a"])
    again = await result(rpc, "memory.tool_rule_put", tool_name="t", rule="two", id=rule["id"], priority=None)
    assert (again["priority"], again["tags"], again["created_at"]) == ("critical", ["a"], rule["created_at"])


@pytest.mark.parametrize("name", methods())
def test_every_method_has_its_alias(name):
    assert alias(name) == "openhuman.memory_" + name.split(".", 1)[1]


async def test_the_aliases_do_the_same_and_answer_in_openhumans_envelope(rpc):
    async def enveloped(method: str, **params: Any) -> Any:
        told = await result(rpc, method, **params)
        assert set(told) == {"result", "logs"}
        assert told["logs"] == []
        return told["result"]

    put = await enveloped("openhuman.memory_tool_rule_put", tool_name="t", rule=SARAH, priority="high")
    assert await enveloped("openhuman.memory_tool_rule_list", tool_name="t") == [put]
    assert (await enveloped("openhuman.memory_tool_rules_for_prompt", tools=["t"]))["rules"] == [put]
    assert await enveloped("openhuman.memory_tool_rule_get", tool_name="t", id="nosuch") is None
    assert await result(rpc, "memory.tool_rule_list", tool_name="t") == [put]
    refused = await answer(rpc, "openhuman.memory_tool_rule_put", {"tool_name": "t"})
    assert refused["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["memory.tool_rules_for_prompt", "openhuman.memory_tool_rules_for_prompt"])
async def test_params_that_are_null_are_none(rpc, method):
    told = await rpc.dispatch(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": None}))
    assert "error" not in json.loads(told)
    told = await rpc.dispatch(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_list", "params": None})
    )
    assert json.loads(told)["error"]["data"] == {"parameter": "tool_name"}


async def test_an_exported_list_is_put_back_as_it_is(rpc):
    for number, priority in enumerate(("critical", "high", "normal", "critical")):
        await result(rpc, "memory.tool_rule_put", tool_name="t", rule=f"rule {number}", priority=priority, tags=["a"])
    exported = await result(rpc, "memory.tool_rules_json", tool_name="t")
    listed = await result(rpc, "memory.tool_rule_list", tool_name="t")
    for workspace in ("elsewhere", "default"):  # where nothing is, and over what is there
        for rule in listed:
            assert await result(rpc, "memory.tool_rule_put", **rule, workspace_id=workspace) == rule
        assert await result(rpc, "memory.tool_rule_list", tool_name="t", workspace_id=workspace) == listed
        assert await result(rpc, "memory.tool_rules_json", tool_name="t", workspace_id=workspace) == exported


async def test_a_list_that_openhuman_wrote_is_put_back_with_its_times(rpc):
    times = {"created_at": "2025-01-02T03:04:05.123456789Z", "updated_at": "2025-02-02T03:04:05+00:00"}
    rule = {
        "id": "b3c1",
        "tool_name": "t",
        "rule": "one",
        "priority": "high",
        "source": "post_turn",
        "tags": [],
        **times,
    }
    put = await result(rpc, "openhuman.memory_tool_rule_put", **rule)
    assert put["result"]["created_at"].startswith("2025-01-02T03:04:05.123456")
    assert put["result"]["updated_at"].startswith("2025-02-02T03:04:05")


@pytest.mark.parametrize("field", ["created_at", "updated_at"])
@pytest.mark.parametrize("time", ["yesterday", "2025-01-02T03:04:05", ""])
async def test_a_time_without_a_zone_or_no_time_at_all_is_refused(rpc, field, time):
    refused = await answer(rpc, "memory.tool_rule_put", {"tool_name": "t", "rule": "one", field: time})
    assert refused["error"]["data"] == {"parameter": field}


@pytest.mark.parametrize("said", [{"by": "user"}, {"by": "program"}, {"by": "user", "sentence": "never"}])
async def test_no_field_of_a_request_makes_a_rule_the_users(rpc, said):
    put = await result(rpc, "memory.tool_rule_put", tool_name="t", rule="one", priority="critical", said=said)
    assert put["said"]["by"] == "program"


async def test_what_an_agent_said_stays_an_agents_where_it_is_put_back(rpc):
    put = await result(
        rpc, "memory.tool_rule_put", tool_name="t", rule="one", priority="critical", said={"by": "agent"}
    )
    assert (put["said"]["by"], put["status"]) == ("agent", "proposed")
    assert await result(rpc, "memory.tool_rules_for_prompt") == {"rendered": "", "rules": []}


@pytest.mark.parametrize("said", [{"by": "god"}, {}, {"by": "agent", "time": "noon"}, "user"])
async def test_a_wrong_speaker_is_refused_by_name(rpc, said):
    refused = await answer(rpc, "memory.tool_rule_put", {"tool_name": "t", "rule": "one", "said": said})
    assert refused["error"]["data"] == {"parameter": "said"}


async def test_rules_that_wait_are_reviewed_approved_and_rejected(rpc):
    waiting = [
        await result(rpc, "memory.tool_rule_put", tool_name=tool, rule="one", priority="critical", said={"by": "agent"})
        for tool in ("a", "b")
    ]
    assert await result(rpc, "memory.tool_rule_review") == waiting
    assert await result(rpc, "memory.tool_rule_review", tool_name="B") == waiting[1:]
    for method in ("tool_rule_list", "tool_rules_json"):
        assert await result(rpc, f"memory.{method}", tool_name="a") == []
    assert await result(rpc, "memory.tool_rule_get", tool_name="a", id=waiting[0]["id"]) is None
    approved = await result(rpc, "memory.tool_rule_set_status", id=waiting[0]["id"][:8], status="active")
    assert approved["status"] == "active"
    assert await result(rpc, "memory.tool_rule_list", tool_name="a") == [approved]
    assert "- **[critical]** one" in (await result(rpc, "memory.tool_rules_for_prompt"))["rendered"]
    rejected = await result(rpc, "memory.tool_rule_set_status", id=waiting[1]["id"], status="withdrawn", tool_name="b")
    assert await result(rpc, "memory.tool_rule_review") == [rejected]
    assert await result(rpc, "memory.tool_rule_set_status", id="nosuch", status="active") is None
    refused = await answer(rpc, "memory.tool_rule_set_status", {"id": "x", "status": "approved"})
    assert refused["error"]["data"] == {"parameter": "status"}


async def test_tools_may_be_names_or_schemas(rpc):
    for tool in ("a", "b"):
        await result(rpc, "memory.tool_rule_put", tool_name=tool, rule="one", priority="critical")
    schemas = [{"type": "function", "function": {"name": "A"}}, {"name": "zzz", "inputSchema": {}}]
    pinned = await result(rpc, "memory.tool_rules_for_prompt", tools=schemas)
    assert [rule["tool_name"] for rule in pinned["rules"]] == ["A"]
    assert "工具" in (await result(rpc, "memory.tool_rules_for_prompt", tools=["a"], language="zh"))["rendered"]


async def test_what_does_not_fit_the_prompt_is_named(rpc):
    for n in range(31):
        await result(rpc, "memory.tool_rule_put", tool_name="t", rule=f"rule {n}", priority="high")
    pinned = await result(rpc, "memory.tool_rules_for_prompt")
    assert len(pinned["rules"]) == 30
    assert [each["tool_name"] for each in pinned["left_out"]] == ["t"]


async def test_memories_are_stored_recalled_and_forgotten(rpc):
    stored = await result(rpc, "memory.store", content="Reports are due on Friday.", tags=["work"])
    found = await result(rpc, "memory.recall", query="reports", limit=1)
    assert found == [stored]
    assert await result(rpc, "memory.recall", namespace="skill-1") == []
    assert await result(rpc, "memory.forget", id=stored["id"]) is True
    assert (await result(rpc, "openhuman.memory_recall"))["result"] == []


async def test_workspaces_are_apart_and_optional(rpc):
    await result(rpc, "memory.tool_rule_put", tool_name="t", rule="one", workspace_id="team")
    assert await result(rpc, "memory.tool_rule_list", tool_name="t") == []
    assert len(await result(rpc, "memory.tool_rule_list", tool_name="t", workspace_id="team")) == 1


async def test_parameters_may_come_by_position(rpc):
    put = await answer(rpc, "memory.tool_rule_put", ["t", "one", "high"])
    assert put["result"]["priority"] == "high"
    assert len((await answer(rpc, "memory.tool_rule_list", ["t"]))["result"]) == 1
    assert (await answer(rpc, "memory.tool_rule_list", ["t", "default", 3]))["error"]["code"] == -32602


# ---------------------------------------------------------------- parameters that are wrong

PUT = {"tool_name": "t", "rule": "one"}


@pytest.mark.parametrize(
    ("method", "params", "parameter", "says"),
    [
        ("memory.tool_rule_put", {"tool_name": "t"}, "rule", "missing"),
        ("memory.tool_rule_put", {"rule": "one"}, "tool_name", "missing"),
        ("memory.tool_rule_put", None, "tool_name", "missing"),
        ("memory.tool_rule_put", {**PUT, "rule": None}, "rule", "missing"),
        ("memory.tool_rule_put", {**PUT, "tool": "t"}, "tool", "unknown"),
        ("memory.tool_rule_put", {**PUT, "prioritty": "high"}, "prioritty", "did you mean 'priority'"),
        ("memory.tool_rule_put", {**PUT, "created": "2001-01-01T00:00:00Z"}, "created", "unknown"),
        ("memory.tool_rule_put", {**PUT, "rule": 7}, "rule", "expected a string, got 7"),
        ("memory.tool_rule_put", {**PUT, "tool_name": ["t"]}, "tool_name", 'got ["t"]'),
        ("memory.tool_rule_put", {**PUT, "tags": "a"}, "tags", "a list of strings, got 'a'"),
        ("memory.tool_rule_put", {**PUT, "tags": [1]}, "tags", "a list of strings"),
        ("memory.tool_rule_put", {**PUT, "priority": "urgent"}, "priority", "critical, high, normal"),
        ("memory.tool_rule_put", {**PUT, "source": "me"}, "source", "user_explicit"),
        ("memory.tool_rule_put", {**PUT, "rule": " "}, "rule", "rule is required"),
        ("memory.tool_rule_put", {**PUT, "tool_name": " "}, "tool_name", "tool_name is required"),
        ("memory.tool_rule_put", {**PUT, "rule": "x" * 1_000_000}, "rule", "the limit is 2,000"),
        ("memory.tool_rule_put", {**PUT, "workspace_id": "../escape"}, "workspace_id", "letters"),
        ("memory.tool_rule_put", {**PUT, "workspace_id": 3}, "workspace_id", "letters"),
        ("memory.tool_rule_get", {"tool_name": "t"}, "id", "missing"),
        ("memory.tool_rules_for_prompt", {"tools": "t"}, "tools", "a list"),
        ("memory.tool_rules_for_prompt", {"tools": [3]}, "tools", "schema"),
        ("memory.recall", {"limit": True}, "limit", "an integer, got true"),
        ("memory.recall", {"limit": 0}, "limit", "1 to 100"),
        ("memory.recall", {"namespace": "x"}, "namespace", "global"),
        ("memory.store", {}, "content", "missing"),
        ("memory.forget", {}, "id", "missing"),
    ],
)
async def test_a_wrong_parameter_is_named(rpc, method, params, parameter, says):
    error = (await answer(rpc, method, params))["error"]
    assert error["code"] == -32602
    assert error["data"]["parameter"] == parameter
    assert parameter in error["message"]
    assert says in error["message"]
    assert len(error["message"]) < 500


async def test_an_id_of_another_tool_is_refused(rpc):
    rule = await result(rpc, "memory.tool_rule_put", tool_name="a", rule="one")
    error = (await answer(rpc, "memory.tool_rule_put", {"tool_name": "b", "rule": "one", "id": rule["id"]}))["error"]
    assert (error["code"], error["data"]["parameter"]) == (-32602, "id")


# ---------------------------------------------------------------- the protocol


async def test_an_unknown_method_is_answered_with_the_nearest(rpc):
    error = (await answer(rpc, "memory.tool_rule_putt", {}))["error"]
    assert error["code"] == -32601
    assert "memory.tool_rule_put" in error["message"]


@pytest.mark.parametrize(
    "text", ["{", "", "nope", '{"a": NaN}', "[" * 100_000, b"\xff\xfe{}", b'{"jsonrpc": "\xe9"}', '{"a": 1} x']
)
async def test_what_is_no_json_is_a_parse_error(rpc, text):
    answered = json.loads(await rpc.dispatch(text))
    assert (answered["id"], answered["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    "body",
    [
        1,
        "text",
        None,
        {},
        {"jsonrpc": "1.0", "method": "memory.recall", "id": 1},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "method": 7, "id": 1},
        {"jsonrpc": "2.0", "method": "memory.recall", "id": {}},
        {"jsonrpc": "2.0", "method": "memory.recall", "id": 1, "params": "x"},
        [],
    ],
)
async def test_what_is_no_request_is_an_invalid_request(rpc, body):
    answered = json.loads(await rpc.dispatch(json.dumps(body)))
    assert (answered["id"], answered["error"]["code"]) == (None, -32600)
    reason = answered["error"]["data"]["reason"]
    assert reason
    assert answered["error"]["message"] == f"Invalid Request: {reason}"


@pytest.mark.parametrize("language", ["fr", "EN", "z"])
async def test_a_language_that_the_block_has_no_words_in_is_refused(rpc, language):
    answered = await answer(rpc, "memory.tool_rules_for_prompt", {"language": language})
    assert answered["error"]["code"] == -32602
    assert answered["error"]["data"] == {"parameter": "language"}
    assert "expected one of , en, zh" not in answered["error"]["message"]
    assert "en, zh" in answered["error"]["message"]


async def test_a_word_that_is_none_of_the_known_ones_lists_them_once(rpc):
    put = {"tool_name": "t", "rule": "r", "priority": "urgent"}
    message = (await answer(rpc, "memory.tool_rule_put", put))["error"]["message"]
    assert message == "Invalid params: priority: expected one of critical, high, normal; got 'urgent'"
    message = (await answer(rpc, "memory.tool_rule_put", {**put, "priority": "critcal"}))["error"]["message"]
    assert message.endswith("; got 'critcal' (did you mean 'critical'?)")


async def test_a_batch_is_answered_request_by_request(rpc):
    batch = [
        request("memory.tool_rule_put", {"tool_name": "t", "rule": "one"}, id="a"),
        1,
        request("memory.tool_rule_list", {"tool_name": "t"}, id=2),
        {"jsonrpc": "2.0", "method": "memory.tool_rule_put", "params": {"tool_name": "t", "rule": "two"}},
        request("memory.nothing", id=3),
        request("memory.tool_rule_list", {"tool_name": "t"}, id="a"),
        [],
    ]
    answers = json.loads(await rpc.dispatch(json.dumps(batch)))
    assert [each["id"] for each in answers] == ["a", None, 2, 3, "a", None]
    assert [each.get("error", {}).get("code") for each in answers] == [None, -32600, None, -32601, None, -32600]
    assert len(answers[2]["result"]) == 1
    assert len(answers[4]["result"]) == 2


async def test_a_batch_that_is_too_large_is_refused_with_the_limit(rpc):
    answered = json.loads(await rpc.dispatch(json.dumps([1] * (MAX_BATCH + 1))))
    assert answered["error"]["code"] == -32600
    assert str(MAX_BATCH) in answered["error"]["message"]


async def test_notifications_are_done_and_not_answered(rpc):
    put = {"jsonrpc": "2.0", "method": "memory.tool_rule_put", "params": {"tool_name": "t", "rule": "one"}}
    assert await rpc.dispatch(json.dumps(put)) is None
    assert await rpc.dispatch(json.dumps([put, put])) is None
    assert await rpc.dispatch(json.dumps({**put, "params": {}})) is None
    assert len(await result(rpc, "memory.tool_rule_list", tool_name="t")) == 1


async def test_a_request_whose_id_is_null_is_answered(rpc):
    assert (await answer(rpc, "memory.recall", id=None)) == {"jsonrpc": "2.0", "id": None, "result": []}


async def test_bytes_are_read_as_utf_8(rpc):
    body = request("memory.tool_rule_put", {"tool_name": "t", "rule": "永远不要发邮件"})
    text = await rpc.dispatch(b"\xef\xbb\xbf" + json.dumps(body, ensure_ascii=False).encode())
    assert json.loads(text)["result"]["rule"] == "永远不要发邮件"


async def test_lone_surrogates_do_not_break_the_answer(rpc):
    text = await rpc.dispatch('{"jsonrpc": "2.0", "id": "\\ud800", "method": "memory.\\ud800"}')
    assert json.loads(text.encode())["error"]["code"] == -32601


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=8,
    )
)
def test_whatever_json_comes_the_answer_is_json_rpc(body):
    text = asyncio.run(RpcService(None).dispatch(json.dumps(body)))  # type: ignore[arg-type]
    answers = json.loads(text)
    for each in answers if isinstance(answers, list) else [answers]:
        assert each["jsonrpc"] == "2.0"
        assert each["error"]["code"] == -32600


# ---------------------------------------------------------------- failures


async def test_a_store_failure_is_a_server_error_and_nothing_is_logged_of_the_users_words(
    rpc, make_app, monkeypatch, caplog
):
    async def fail(*args, **named):
        raise StoreUnavailable("disk full")

    with caplog.at_level(logging.INFO):
        monkeypatch.setattr(SqliteStore, "put", fail)
        error = (await answer(rpc, "memory.tool_rule_put", {"tool_name": "t", "rule": SARAH}))["error"]
        assert (error["code"], error["message"]) == (-32000, "Server error: disk full")
        await answer(rpc, "memory.tool_rule_put", {"tool_name": "t", "rule": SARAH, "priority": "x"})
    assert "Sarah" not in caplog.text


async def test_an_unforeseen_failure_is_an_internal_error(rpc, monkeypatch):
    async def fail(*args, **named):
        raise RuntimeError("Sarah")

    monkeypatch.setattr(SqliteStore, "list_raw", fail)
    error = (await answer(rpc, "memory.tool_rule_list", {"tool_name": "t"}))["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error: RuntimeError")
