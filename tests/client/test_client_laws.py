"""Laws of the client: what is sent can be read, and whatever comes back is a value or an error of toolmem's tree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.client.answers import HttpAnswer
from toolmem.client.requests import as_json, batch_call, call_of, flow_call, rpc_call
from toolmem.client.retrying import may_go_again
from toolmem.errors import ServiceUnreachable, StoreError, ToolMemError
from toolmem.operations import add, health, retrieve, tool_rules, workspace_actions

text = st.text(st.characters(), max_size=20)  # lone surrogates among them
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
CALLS = [
    flow_call("retrieve_tool_memory", {"tool_names": "t"}, lambda answer: answer, "w"),
    call_of(retrieve.retrieve, "w", "t"),
    call_of(workspace_actions.memories, "w"),
    call_of(health.health, None),
    call_of(tool_rules.put_rule, None, "t", "one"),
    call_of(tool_rules.get_rule, None, "t", "x"),
    call_of(tool_rules.list_rules, None, "t"),
    call_of(tool_rules.delete_rule, None, "t", "x"),
    call_of(tool_rules.rules_for_prompt, None),
    call_of(tool_rules.rules_json, None, "t"),
    rpc_call("memory.recall", {}, lambda value: value, "w"),
    batch_call((call_of(tool_rules.get_rule, None, "t", "x"), call_of(tool_rules.list_rules, None, "t"))),
]


@given(values)
def test_what_is_sent_reads_as_what_was_given(value):
    assert json.loads(as_json({"value": value})) == {"value": value}


def nearly(value: Any) -> st.SearchStrategy[Any]:
    """Bodies that look like toolmem's, with anything in the places that are read."""
    return st.fixed_dictionaries(
        {},
        optional={
            "answer": st.just("ok") | value,
            "success": st.booleans() | value,
            "metadata": st.fixed_dictionaries(
                {}, optional={"memory_list": st.lists(value, max_size=2) | value, "errors": value}
            )
            | value,
            "result": st.fixed_dictionaries({}, optional={"rendered": value, "rules": value}) | value,
            "error": st.fixed_dictionaries({}, optional={"code": value | st.just(-32602), "data": value}) | value,
            "id": st.sampled_from([1, 2]) | value,
        },
    )


bodies = (
    nearly(values).map(json.dumps).map(str.encode)
    | st.lists(nearly(values), max_size=3).map(json.dumps).map(str.encode)
    | values.map(json.dumps).map(str.encode)
    | st.binary(max_size=40)
)


@pytest.mark.parametrize("exchange", CALLS, ids=lambda call: call.name)
@given(status=st.sampled_from([200, 200, 200, 204, 302, 401, 403, 404, 413, 422, 429, 500, 502, 503]), content=bodies)
def test_whatever_comes_back_is_a_value_or_an_error_of_toolmems_tree(exchange, status, content):
    answer = HttpAnswer(status, content, "http://127.0.0.1:8002", token_sent=False)
    error: ToolMemError | None = None
    try:
        exchange.read(answer)
    except ToolMemError as raised:
        error = raised
    assert (error is None) <= (status == 200)
    if error is not None and may_go_again(error, exchange):  # nothing but what is safe
        assert exchange.repeatable or (isinstance(error, ServiceUnreachable) and not error.sent)
        assert isinstance(error, ServiceUnreachable | StoreError)


@given(st.lists(st.fixed_dictionaries({"tool_name": st.just("t")}, optional={"id": text | st.none()}), max_size=4))
def test_calls_are_sent_again_only_where_each_has_an_id(records):
    described = call_of(add.add, "w", records)
    assert described.repeatable == (bool(records) and all((record.get("id") or "").strip() for record in records))
