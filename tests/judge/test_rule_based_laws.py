"""Laws of the rule-based check, for any call whatever."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolmem.judge.expectation import expectation
from toolmem.judge.failure_evidence import EXCERPT_LENGTH, text_at
from toolmem.judge.literals import read
from toolmem.judge.rule_based import RuleBasedCheck, find_evidence
from toolmem.models import ToolCallResult, ToolSchema

WHEN = datetime(2025, 1, 1, tzinfo=UTC)
FRAGMENTS = [
    "Error: ", "error", "not found", "Traceback (most recent call last):\n", "ValueError: x", "{", "}", "[", "]", '"',
    "'", ":", ",", '"error"', "'error': ", '"message": ', '"status": 404', '"success": false', "null", "None", "True",
    "\n", "\\", "\\ud800", "bash: line 1: ", "command not found", "exit code: 1", "HTTP/1.1 404 Not Found", "<title>",
    "404 Not Found", "</title>", "find: ", "cannot ", "错误：", "失败", "0", "1.5", " ", "\t", "E" * 50, "no results",
]  # fmt: skip
KEYS = [
    "error",
    "errors",
    "message",
    "msg",
    "status",
    "code",
    "success",
    "ok",
    "data",
    "response",
    "detail",
    "result",
    "exit_code",
    "stderr",
    "stdout",
    "content",
    "id",
    "isError",
    "statusCode",
    "reason",
]
texts = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=8)), inner, max_size=5),
    ),
    max_leaves=12,
)
outputs = st.one_of(
    texts, json_values.map(json.dumps), json_values.map(str), json_values.map(json.dumps).map(json.dumps)
)
tool_names = st.one_of(
    st.sampled_from(["bash", "read_file", "search", "python", "sql_query", "send_email", "f", "翻译", "getOrder"]),
    st.text(min_size=1, max_size=20),
)
inputs = st.one_of(
    st.dictionaries(st.sampled_from(["command", "query", "path", "a"]), json_values, max_size=3),
    texts,
    st.lists(json_values, max_size=3),
)
schemas = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["type", "properties", "required", "additionalProperties", "anyOf", "enum"]), json_values
    ).map(lambda parameters: ToolSchema(name="t", parameters=parameters)),
)


def call(tool_name: str, given_input: Any, output: str, **more: Any) -> ToolCallResult:
    return ToolCallResult.model_construct(
        tool_name=tool_name, input=given_input, output=output, create_time=WHEN, success=None, metadata={}, **more
    )


@given(tool_names, inputs, outputs, schemas, st.sampled_from([None, True, False]))
def test_it_never_raises_and_says_the_same_twice(
    tool_name: str, given_input: Any, output: str, schema: ToolSchema | None, success: bool | None
) -> None:
    one = call(tool_name, given_input, output).model_copy(update={"success": success})
    first = RuleBasedCheck().check(one, schema)
    assert first == RuleBasedCheck().check(one, schema)
    assert first.execution_failed is not None
    assert first.score == 0.0 or not first.execution_failed
    if success is False:
        assert first.execution_failed
    first.model_dump_json()  # no half of a surrogate pair


@given(
    tool_names, outputs, st.dictionaries(st.sampled_from(["success", "soft_error", "exit_code", "error"]), json_values)
)
def test_metadata_never_changes_the_verdict(tool_name: str, output: str, metadata: dict[str, Any]) -> None:
    bare = call(tool_name, {}, output)
    assert RuleBasedCheck().check(bare) == RuleBasedCheck().check(bare.model_copy(update={"metadata": metadata}))


@given(tool_names, inputs, outputs)
def test_the_place_it_names_holds_the_excerpt(tool_name: str, given_input: Any, output: str) -> None:
    evidence = find_evidence(output, expectation(tool_name, given_input))
    if evidence is None:
        return
    assert text_at(output, evidence) == evidence.message
    assert evidence.message.startswith(evidence.excerpt)
    assert len(evidence.excerpt) <= EXCERPT_LENGTH
    if not evidence.path and evidence.line is not None:
        assert output[: evidence.start].count("\n") + 1 == evidence.line


@given(st.one_of(st.lists(json_values, max_size=3), st.dictionaries(st.text(max_size=5), json_values, max_size=4)))
def test_the_reader_gives_back_what_json_holds(value: Any) -> None:
    reading = read(json.dumps(value))
    assert reading.found
    assert reading.complete
    assert json.dumps(reading.value) == json.dumps(value)


@given(json_values, st.integers(min_value=0, max_value=400))
def test_the_reader_never_raises_on_a_cut_literal(value: Any, length: int) -> None:
    read(str(value)[:length])
    read(json.dumps(value)[:length])
