"""What makes a record good, and what is said of a bad one."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from toolmem.errors import RecordError, RequestError
from toolmem.formats import RecordNotes, read_record, read_records
from toolmem.readers.json_values import MAX_DEPTH, NotJsonError, Repairs, clean_value
from toolmem.testing.clock import ManualClock

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def read(record: Any, **options: Any) -> Any:
    return read_record(record, 3, clock=ManualClock(NOW), notes=RecordNotes(), **options)


def nested(levels: int) -> Any:
    value: Any = "inside"
    for _ in range(levels):
        value = [value]
    return value


def test_a_name_alone_is_a_good_record() -> None:
    call = read({"tool_name": " ping "})
    assert (call.tool_name, call.input, call.output, call.success) == ("ping", {}, "", None)
    assert (call.create_time, call.time_cost, call.token_cost) == (NOW, None, None)
    assert (call.id, call.context, call.metadata, call.evaluation_status) == (None, "", {}, "pending")


def test_every_given_field_arrives() -> None:
    call = read(
        {
            "tool_name": "search",
            "input": {"query": "bread"},
            "output": "[]",
            "success": False,
            "create_time": "2026-01-31T12:00:00+08:00",
            "time_cost": 2,
            "token_cost": 12.0,
            "context": "find bread",
            "id": 17,
            "metadata": {"run": "a"},
        }
    )
    assert call.input == {"query": "bread"}
    assert call.success is False
    assert call.create_time == datetime(2026, 1, 31, 4, 0, tzinfo=UTC)
    assert (call.time_cost, call.token_cost, call.context, call.id) == (2.0, 12, "find bread", "17")
    assert call.metadata == {"run": "a"}


@pytest.mark.parametrize("given", [{"a": [1, None]}, ["a", 2], "ls -l", ""])
def test_input_is_an_object_a_list_or_a_text(given: Any) -> None:
    assert read({"tool_name": "t", "input": given}).input == given


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ["tool_name", "required"]),
        ({"tool_name": None, "name": "search"}, ["tool_name", "'name'"]),
        ({"tool_name": None, "toolname": "search"}, ["tool_name", "'toolname'"]),
        ({"tool_name": "  "}, ["tool_name", "blank"]),
        ({"tool_name": 5}, ["tool_name", "a number"]),
        ({"tool_name": "x" * 257}, ["tool_name", "257", "256"]),
        ({"input": 5}, ["input", "an object, a list or a string"]),
        ({"input": {"a": [1, {"b": math.nan}]}}, ["input.a[1].b", "nan"]),
        ({"input": {"a": object()}}, ["input.a", "object"]),
        ({"input": {1: "a"}}, ["input", "'1'", "not a string"]),
        ({"input": {"a": 10**5000}}, ["input.a", "digits"]),
        ({"input": nested(MAX_DEPTH + 1)}, ["input[0][0]", "nested"]),
        ({"input": nested(5000)}, ["input", "nested"]),
        ({"output": {"rows": []}}, ["output", "pass it as JSON text"]),
        ({"success": 1}, ["success", "true, false or null"]),
        ({"success": "true"}, ["success", "true, false or null"]),
        ({"create_time": "yesterday"}, ["create_time", "ISO 8601"]),
        ({"create_time": "0001-01-01T00:00:00+14:00"}, ["create_time", "years 1 to 9999"]),
        ({"create_time": 1.7e12}, ["create_time", "seconds since 1970"]),
        ({"create_time": math.nan}, ["create_time", "seconds since 1970"]),
        ({"create_time": True}, ["create_time", "ISO 8601"]),
        ({"time_cost": math.nan}, ["time_cost", "nan"]),
        ({"time_cost": math.inf}, ["time_cost", "inf"]),
        ({"time_cost": -0.5}, ["time_cost", "negative"]),
        ({"time_cost": 10**400}, ["time_cost", "too large"]),
        ({"time_cost": "2"}, ["time_cost", "a string"]),
        ({"time_cost": True}, ["time_cost", "a boolean"]),
        ({"token_cost": 2.5}, ["token_cost", "whole"]),
        ({"token_cost": math.inf}, ["token_cost", "inf"]),
        ({"token_cost": 2**63}, ["token_cost", "larger"]),
        ({"context": ["a"]}, ["context", "text"]),
        ({"id": 1.5}, ["id", "string"]),
        ({"id": "x" * 1025}, ["id", "1025"]),
        ({"metadata": "a"}, ["metadata", "object"]),
        ({"metadata": {"a": math.inf}}, ["metadata.a", "inf"]),
        ({"extra": math.nan}, ["extra", "nan"]),
    ],
)
def test_a_bad_field_is_named_with_its_remedy(fields: dict[str, Any], words: list[str]) -> None:
    record = {"tool_name": "search", "output": "", **fields} if fields else {}
    with pytest.raises(RecordError) as caught:
        read(record)
    assert caught.value.index == 3
    for word in words:
        assert word in str(caught.value)


def test_the_deepest_allowed_nesting_can_be_written_as_json() -> None:
    call = read({"tool_name": "t", "input": nested(MAX_DEPTH)})
    assert type(call).model_validate_json(call.model_dump_json()) == call


@pytest.mark.parametrize("record", [None, [], "search", 5, True])
def test_a_record_that_is_no_object_is_refused(record: Any) -> None:
    with pytest.raises(RecordError, match="expected an object"):
        read(record)


def test_an_error_carries_the_name_of_the_tool() -> None:
    with pytest.raises(RecordError) as caught:
        read({"tool_name": "search", "success": "yes"})
    assert caught.value.tool_name == "search"


def test_negative_tokens_are_unknown_tokens() -> None:
    assert read({"tool_name": "t", "token_cost": -1}).token_cost is None


def test_unknown_keys_go_to_metadata_and_overwrite_nothing() -> None:
    call = read({"tool_name": "t", "output": "", "colour": "red", "size": 3, "metadata": {"colour": "blue"}})
    assert call.metadata == {"colour": "blue", "record.colour": "red", "size": 3}


VERDICT = {
    "summary": "found it",
    "evaluation": "good",
    "score": 0.0,
    "evaluation_status": "ok",
    "execution_failed": True,
    "error_class": "timeout",
    "judge": {"backend": "dashscope", "model": "m", "prompt_version": "p"},
    "is_summarized": True,
    "seq": 7,
}


def test_a_callers_verdict_is_ignored() -> None:
    assert read({"tool_name": "t", **VERDICT}) == read({"tool_name": "t"})


def test_a_trusted_verdict_is_kept() -> None:
    call = read({"tool_name": "t", **VERDICT}, trust=True)
    assert call.model_dump(include=set(VERDICT)) == VERDICT


@pytest.mark.parametrize(("given", "kept"), [(-1, None), (0.4, 0.0), (0.5, 1.0), (1, 1.0), (None, None)])
def test_a_trusted_score_is_0_or_1_or_unknown(given: Any, kept: float | None) -> None:
    call = read({"tool_name": "t", "score": given}, trust=True)
    assert call.score == kept
    assert call.evaluation_status == ("pending" if kept is None else "ok")


@pytest.mark.parametrize("fields", [{"score": 7}, {"judge": "me"}, {"execution_failed": "no"}, {"seq": 0}])
def test_a_trusted_verdict_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match=next(iter(fields))):
        read({"tool_name": "t", **fields}, trust=True)


def test_lone_surrogates_become_the_replacement_character_everywhere_and_are_counted() -> None:
    notes = RecordNotes()
    call = read_record(
        {
            "tool_name": "t\ud800",
            "input": {"k\udfff": ["\ud83d\ude00", "a\udc00b"]},
            "output": "\ud800\ud800",
            "metadata": {"\ud800": "\udc00"},
        },
        0,
        clock=ManualClock(NOW),
        notes=notes,
    )
    assert call.tool_name == "t\ufffd"
    assert call.input == {"k\ufffd": ["😀", "a\ufffdb"]}
    assert call.output == "\ufffd\ufffd"
    assert call.metadata == {"\ufffd": "\ufffd"}
    assert notes.repaired_surrogates == 7
    call.model_dump_json().encode()


def test_keys_that_differ_only_in_their_surrogates_are_both_kept() -> None:
    call = read({"tool_name": "t", "input": {chr(0xD800): 1, chr(0xD801): 2}})
    assert isinstance(call.input, dict)
    assert sorted(call.input.values()) == [1, 2]


def test_a_time_without_a_zone_is_read_in_the_time_zone_and_counted() -> None:
    record = {"tool_name": "t", "create_time": "2025-11-03 14:05:00"}
    read_in = read_records([record, record], clock=ManualClock(NOW), time_zone="Asia/Shanghai")
    assert {call.create_time for _, call in read_in.calls} == {datetime(2025, 11, 3, 6, 5, tzinfo=UTC)}
    assert read_in.naive_times == 2


@pytest.mark.parametrize(
    "given",
    [
        "2026-01-31T12:00:00Z",
        "20260131T120000Z",
        "2026-01-31T13:30:00.000+01:30",
        datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp(),
    ],
)
def test_times_of_every_accepted_form_mean_the_same(given: Any) -> None:
    call = read({"tool_name": "t", "create_time": given})
    assert call.create_time == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert call.create_time.utcoffset() == timedelta(0)


def test_pandas_not_a_time_is_refused() -> None:
    import pandas

    with pytest.raises(RecordError, match="create_time"):
        read({"tool_name": "t", "create_time": pandas.NaT})


def test_an_unknown_time_zone_refuses_the_request() -> None:
    with pytest.raises(RequestError, match="Asia/Shangai") as caught:
        read_records([{"tool_name": "t"}], clock=ManualClock(NOW), time_zone="Asia/Shangai")
    assert caught.value.field == "time_zone"


def test_one_bad_record_is_named_and_nineteen_are_read() -> None:
    records = [{"tool_name": "t", "input": {"n": n}} for n in range(20)]
    del records[7]["tool_name"]
    done = read_records(records, clock=ManualClock(NOW))
    assert [index for index, _ in done.calls] == [n for n in range(20) if n != 7]
    assert [(failure.index, failure.tool_name) for failure in done.failures] == [(7, "")]
    assert "tool_name: required" in done.failures[0].error


def test_a_refused_record_adds_nothing_to_the_counts() -> None:
    bad = {"tool_name": "t\ud800", "create_time": "2025-11-03 14:05:00", "success": 3}
    done = read_records([bad], clock=ManualClock(NOW))
    assert (done.repaired_surrogates, done.naive_times, len(done.failures)) == (0, 0, 1)


def test_the_record_is_copied() -> None:
    record = {"tool_name": "t", "input": {"a": [1]}, "metadata": {"b": {}}}
    call = read(record)
    record["input"]["a"].append(2)
    record["metadata"]["b"]["c"] = 1
    assert (call.input, call.metadata) == ({"a": [1]}, {"b": {}})


def test_a_record_of_many_keys_that_differ_only_in_their_surrogates_is_refused() -> None:
    keys = {f"k{chr(0xD800 + i)}{chr(0xD800 + j)}": 1 for i in range(30) for j in range(30)}
    with pytest.raises(NotJsonError, match="keys that differ in lone surrogates only"):
        clean_value(keys, Repairs())


# ---------------------------------------------------------------- what ReMe's clients send


def test_an_empty_time_is_now_as_the_default_of_remes_clients_means_it() -> None:
    assert read({"tool_name": "t", "output": "x", "create_time": " "}).create_time == NOW


@pytest.mark.parametrize(
    ("key", "meant"),
    [("tool_output", "output"), ("result", "output"), ("colour", "output")],
)
def test_an_unknown_key_beside_a_missing_output_refuses_the_record(key: str, meant: str) -> None:
    with pytest.raises(RecordError, match=f"output: missing.*'{key}'.*'{meant}'"):
        read({"tool_name": "t", key: "the answer"})


@pytest.mark.parametrize(("key", "meant"), [("tool_input", "input"), ("execution_time", "time_cost")])
def test_a_key_of_another_toolkit_is_named_with_the_one_that_is_meant(key: str, meant: str) -> None:
    with pytest.raises(RecordError, match=f"'{key}'.*'{meant}'"):
        read({"tool_name": "t", key: 1})


def test_the_conversation_of_a_record_is_no_unknown_key() -> None:
    assert read({"tool_name": "t", "session_id": "s", "step": 2}).output == ""


def test_remes_hash_of_a_call_is_its_id_where_it_has_none() -> None:
    assert read({"tool_name": "t", "output": "x", "call_hash": "5d41402a"}).id == "5d41402a"
    assert read({"tool_name": "t", "output": "x", "call_hash": "5d41402a", "id": "own"}).id == "own"
    assert read({"tool_name": "t", "output": "x", "call_hash": ""}).id is None


@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("success", [True, False, None])
def test_a_call_that_was_denied_is_neither_failure_nor_success_and_has_no_verdict(success: Any, trust: bool) -> None:
    given = {"tool_name": "mail", "output": "Error: toolmem: not run. No.", "success": success}
    verdict = {"score": 0, "evaluation": "failed", "execution_failed": True, "error_class": "error"}
    call = read(given | verdict, trust=trust)
    assert (call.evaluation_status, call.success, call.failed, call.score) == ("denied", None, None, None)
    assert (call.evaluation, call.execution_failed, call.error_class) == ("", None, "")
    assert read(call, trust=trust) == call
    assert read({**given, "output": "sent", "evaluation_status": "denied"}, trust=trust).evaluation_status == "pending"


REME = {"create_time": "2025-10-15 10:00:00", "token_cost": 12, "success": True}


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
@pytest.mark.parametrize(
    "fields",
    [
        REME,
        {"create_time": ""},
        {"token_cost": -1},
        {"call_hash": "9b01"},
        {"is_summarized": False, "summary": "", "evaluation": ""},
    ],
    ids=["a time in its form", "an empty time", "unknown tokens", "a hash", "what it notes"],
)
def test_a_time_of_0_in_a_record_of_remes_is_unknown(fields, zero):
    raw = {"tool_name": "search", "input": {}, "output": "[]", "time_cost": zero, **fields}
    call = read(raw)
    assert call.time_cost is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"create_time": "2025-10-15T10:00:00Z"},
        {"token_cost": 12},
        {"id": "c1", "create_time": "2025-10-15 10:00:00"},
    ],
    ids=["nothing else", "a time in ISO 8601", "tokens", "an id"],
)
def test_a_time_of_0_in_another_record_was_measured(fields):
    raw = {"tool_name": "search", "input": {}, "output": "[]", "time_cost": 0.0, **fields}
    call = read(raw)
    assert call.time_cost == 0.0


def test_a_measured_time_in_a_record_of_remes_is_kept():
    call = read({"tool_name": "s", "output": "", "time_cost": 2.3, **REME})
    assert call.time_cost == 2.3
