"""What a record of a call may look like, and what is said of one that cannot be read."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone

import pytest

from toolmem.errors import RequestError
from toolmem.formats.files import read_lines
from toolmem.formats.records import read_records, read_schemas

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
NAMED = {"name": "a", "description": "Find."}
FLAG = "expected true or false (also yes or no, 1 or 0)"


def read(**record):
    (item,) = read_records([{"tool_name": "search", "output": "x", **record}], NOW).calls
    return item.call


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ("search", "expected an object, got str"),
        ({"output": "x"}, "tool_name"),
        ({"name": "search", "output": "x"}, "'name' is called 'tool_name' here"),
        ({"tool_name": "  ", "output": "x"}, "tool_name: expected 1 to 256 characters"),
        ({"tool_name": "a" * 257}, "tool_name"),
        ({"tool_name": 3}, "tool_name: expected the name of a tool"),
        ({"tool_name": "a", "result": "x"}, "'result' is called 'output' here"),
        ({"tool_name": "a", "output": {("a", 1): 2}}, "keys must be str"),
        ({"tool_name": "a", "success": "perhaps"}, f"success: {FLAG}; got 'perhaps'"),
        ({"tool_name": "a", "success": 200}, f"success: {FLAG}; got 200"),
        ({"tool_name": "a", "time_cost": -1}, "time_cost: expected a number of seconds, 0 to 1e12"),
        ({"tool_name": "a", "time_cost": "1s"}, "got '1s'"),
        ({"tool_name": "a", "token_cost": "1.5"}, "token_cost: expected a whole number"),
        ({"tool_name": "a", "create_time": "yesterday"}, "create_time: 'yesterday' is not a time"),
        ({"tool_name": "a", "create_time": -1}, "create_time: expected s or ms since 1970"),
        ({"tool_name": "a", "metadata": "x"}, "metadata"),
        ({"tool_name": "a", "id": ""}, "id: expected a text that is not empty"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_by_its_field_and_the_others_are_read(record, told):
    good = {"tool_name": "search", "output": "x"}
    found = read_records([good, record, good], NOW)
    assert [item.position for item in found.calls] == [0, 2]
    (failure,) = found.failures
    assert failure.index == 1
    assert told in failure.error


def test_unknown_keys_are_kept_as_metadata_and_a_judgement_is_ignored():
    call = read(colour="red", metadata={"run": 1}, score=1.0, evaluation_status="ok", seq=7)
    assert call.metadata == {"run": 1, "colour": "red"}
    assert (call.score, call.evaluation_status, call.seq) == (None, "pending", None)


def test_the_conversation_is_read_from_the_record_or_its_metadata():
    assert read(session_id="s1").conversation_id == "s1"
    assert read(metadata={"thread_id": 7}).conversation_id == "7"
    assert read(run_id="r", conversation_id="c").conversation_id == "c"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, NOW),
        ("", NOW),
        ("2026-01-31T12:00:00+08:00", datetime(2026, 1, 31, 4, tzinfo=UTC)),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31 12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1.5, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1_700_000_000_500, datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)),
        ("20260131", datetime(2026, 1, 31, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_is_utc_and_a_number_is_seconds_or_milliseconds(given, expected):
    assert read(create_time=given).create_time == expected


@pytest.mark.parametrize(
    ("field", "given", "expected"),
    [
        ("output", {"号": [1, None]}, '{"号": [1, null]}'),
        ("output", ["a", "b"], '["a", "b"]'),
        *(("output", each, text) for each, text in ((4.5, "4.5"), (False, "false"), (None, ""))),
        *(("success", each, True) for each in ("true", " True", "yes", "1", 1, 1.0)),
        *(("success", each, False) for each in ("FALSE", "no", "0", 0, 0.0)),
        *(("success", each, None) for each in ("", "None", "nan", float("nan"))),
        ("time_cost", "0.25", 0.25),
        ("time_cost", "", None),
        ("token_cost", "12", 12),
        ("token_cost", 12.0, 12),
        ("token_cost", "-1", None),
        ("input", '{"q": "rain"}', {"q": "rain"}),
        ("input", "SELECT 1", "SELECT 1"),
        ("input", "12", "12"),
        ("metadata", '{"run": 1}', {"run": 1}),
        ("context", ["Find it."], '["Find it."]'),
        ("id", 17, "17"),
    ],
)
def test_the_forms_that_files_have_are_read(field, given, expected):
    assert getattr(read(**{field: given}), field) == expected


def test_a_zone_is_kept_exact():
    zone = timezone(timedelta(hours=8))
    when = datetime(2026, 1, 1, 0, 0, 0, 123_456, zone)
    assert read(create_time=when).create_time == when


def test_what_reme_writes_for_unknown_costs_is_unknown():
    reme = read(time_cost=0.0, token_cost=-1, create_time="2026-01-31 12:00:00")
    assert (reme.time_cost, reme.token_cost) == (None, None)
    assert read(time_cost=0.0, token_cost=-1).time_cost is None
    assert read(time_cost=0.0, create_time="2026-01-31 12:00:00").time_cost is None
    assert read(time_cost=0.0, call_hash="a1").time_cost is None
    assert read(time_cost=0.0, create_time="").time_cost is None
    measured = read(time_cost=0.0, token_cost=5, create_time="2026-01-31T12:00:00Z")
    assert (measured.time_cost, measured.token_cost) == (0.0, 5)


def test_half_an_emoji_is_replaced_and_the_call_is_kept():
    call = read(input={"a\ud83d": ["x\ude00", "\ud83d\ude00"]}, output="cut \ud83d")
    assert call.input == {"a\ufffd": ["x\ufffd", "\U0001f600"]}
    assert call.output == "cut \ufffd"


def test_what_is_no_list_of_records_is_refused():
    for given in ("[]", {"tool_name": "a"}, 3, None):
        with pytest.raises(RequestError, match="expected a list of objects"):
            read_records(given, NOW)


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {**NAMED, "parameters": {"type": "object"}}},
        {**NAMED, "inputSchema": {"type": "object"}},
    ],
)
def test_schemas_are_read_in_both_forms(tool):
    schema = read_schemas([tool])["a"]
    assert (schema.description, schema.parameters) == ("Find.", {"type": "object"})
    with pytest.raises(RequestError, match=r"tools\[1\]"):
        read_schemas([tool, {"description": "no name"}])


@pytest.mark.parametrize("is_gzip", [False, True])
def test_lines_are_read_one_by_one_and_a_bad_one_is_numbered(tmp_path, is_gzip):
    text = '\ufeff{"a": "\u2028"}\r\n\n{broken\n{"a": "\\ud83d"}\n' + "[" * 100_000
    path = tmp_path / "calls.jsonl"
    content = text.encode() + b'\n\xff\xfe{"a": 1}'
    path.write_bytes(gzip.compress(content) if is_gzip else content)
    lines = list(read_lines(path))
    assert [line.number for line in lines] == [1, 3, 4, 5, 6]
    assert [line.value for line in lines if not line.error] == [{"a": "\u2028"}, {"a": "\ufffd"}]
    assert [line.number for line in lines if line.error] == [3, 5, 6]
    assert "UTF-8" in lines[-1].error


def test_a_damaged_archive_is_refused_by_name(tmp_path):
    path = tmp_path / "calls.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-20])
    with pytest.raises(RequestError, match=r"calls\.jsonl\.gz"):
        list(read_lines(path))


@pytest.mark.parametrize(
    "tool", [{"name": "t", "description": ["x"]}, {"name": "t", "parameters": [1]}, {"name": 3}, 7]
)
def test_a_declaration_of_another_shape_is_refused_by_its_place(tool):
    with pytest.raises(RequestError, match=r"tools\[1\]"):
        read_schemas([{"name": "fine"}, tool])


def test_half_an_emoji_in_a_declaration_is_replaced():
    assert read_schemas([{"name": "t", "description": "\ud83d x"}])["t"].description == "\ufffd x"
