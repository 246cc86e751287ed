"""The committed recording: complete, honest about its failures, and made by the recorder that stands beside it."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from examples.recording import recorder
from toolmem import sample
from toolmem.models import ToolCallResult, ToolSchema


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return sample.load_records()


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording, made once more."""
    if Path("/bin/sh").resolve().name != "dash":
        pytest.skip("the recorded shell is Debian's dash; another /bin/sh words its errors differently")
    folder = tmp_path_factory.mktemp("recording")
    recorder.write(recorder.record(sample.about()["seed"]), folder)
    return folder


def _comparable(call: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in call.items() if name != "time_cost"}
    if call["tool_name"] == "sql_query" and sample.about()["made_with"]["sqlite"] != apsw.sqlite_lib_version():
        # Another SQLite may word its errors differently, but it must fail and answer at the same places.
        kept.pop("output")
    return kept


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_recording_again_gives_the_same_calls_but_for_the_measured_seconds(
    again: Path, records: list[dict[str, Any]]
) -> None:
    made = _lines(again / sample.RECORDING)
    assert [call["id"] for call in made] == [call["id"] for call in records]
    for one, other in zip(made, records, strict=True):
        assert _comparable(one) == _comparable(other)


def test_recording_again_gives_the_same_schemas(again: Path) -> None:
    assert (again / sample.TOOLS).read_bytes() == sample.tools_path().read_bytes()


def test_times_were_measured_and_not_scripted(again: Path, records: list[dict[str, Any]]) -> None:
    made = _lines(again / sample.RECORDING)
    assert [call["time_cost"] for call in made] != [call["time_cost"] for call in records]
    for call in made:
        if call["output"].startswith("Command timed out"):
            assert call["time_cost"] >= call["input"]["timeout_seconds"]
        assert call["time_cost"] >= 0


def test_another_seed_plans_other_conversations() -> None:
    assert list(recorder.plan(7)) == list(recorder.plan(7))
    assert list(recorder.plan(7)) != list(recorder.plan(8))


def test_every_record_is_a_call_that_toolmem_can_keep(records: list[dict[str, Any]]) -> None:
    for record in records:
        call = ToolCallResult.model_validate(record)
        assert call.create_time.tzinfo is not None
        assert call.context
        assert set(record) <= set(ToolCallResult.model_fields), "unknown keys would move to metadata"
    assert len({record["id"] for record in records}) == len(records)


def test_records_are_in_order_of_time_and_span_four_weeks(records: list[dict[str, Any]]) -> None:
    times = [datetime.fromisoformat(record["create_time"]) for record in records]
    assert times == sorted(times)
    assert 26 <= (times[-1] - times[0]).days <= 28
    per_day = Counter(moment.date() for moment in times)
    working = [count for day, count in per_day.items() if day.weekday() < 5]
    weekend = [count for day, count in per_day.items() if day.weekday() > 4]
    assert sum(working) / len(working) > 2 * sum(weekend) / len(weekend)


def test_recording_is_large_enough_and_small_enough(records: list[dict[str, Any]]) -> None:
    assert len(records) >= 600
    counts = Counter(record["tool_name"] for record in records)
    assert len(counts) >= 10
    assert min(counts.values()) >= 25
    assert sample.sample_path().stat().st_size + sample.conversations_path().stat().st_size <= 1_000_000
    lengths = sorted(len(record["output"]) for record in records)
    assert lengths[0] == 0
    assert lengths[-1] >= 5000


def test_every_tool_has_a_schema_that_names_its_parameters(records: list[dict[str, Any]]) -> None:
    schemas = {schema.name: schema for schema in map(ToolSchema.read, sample.load_tools())}
    assert set(schemas) == {record["tool_name"] for record in records}
    for record in records:
        properties = schemas[record["tool_name"]].parameters["properties"]
        unknown = set(record["input"]) - set(properties)
        assert bool(unknown) <= record["metadata"]["expected_failure"]


def test_mistakes_fail_or_bring_nothing_and_right_calls_fail_only_by_a_fault(records: list[dict[str, Any]]) -> None:
    surprises = []
    for record in records:
        facts = record["metadata"]
        if facts["mistake"] is None and facts["expected_failure"] and facts["fault"] is None:
            surprises.append(record["id"])
        if facts["mistake"] is not None and facts["useful"]:
            surprises.append(record["id"])
    assert surprises == []


def test_flags_are_the_tools_own_so_some_failures_do_not_show(records: list[dict[str, Any]]) -> None:
    hidden = Counter(r["tool_name"] for r in records if r["success"] and r["metadata"]["expected_failure"])
    shown = Counter(r["tool_name"] for r in records if not r["success"] and r["metadata"]["expected_failure"])
    assert {"http_request", "get_weather", "search_documents", "translate_text"} <= set(hidden)
    assert {"sql_query", "shell", "read_file", "calculator", "convertData"} <= set(shown)
    harmless = [r for r in records if not r["success"] and not r["metadata"]["expected_failure"]]
    assert {r["tool_name"] for r in harmless} == {"shell"}, "grep that finds nothing"


def test_failure_rates_differ_between_tools_and_stay_realistic(records: list[dict[str, Any]]) -> None:
    failed: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        failed[record["tool_name"]].append(record["metadata"]["expected_failure"])
    rates = {tool: sum(values) / len(values) for tool, values in failed.items()}
    assert min(rates.values()) < 0.1
    assert max(rates.values()) > 0.4
    assert 0.2 <= sum(map(sum, failed.values())) / len(records) <= 0.36


@pytest.mark.parametrize(
    ("trouble", "at_least"),
    [
        ("no such table", 5),
        ("no such column", 5),
        ("syntax error", 2),
        ("database is locked", 5),
        ("(0 rows)", 3),
        ("timed out after", 3),
        ("no answer within", 3),
        ('"status": 429', 5),
        ('"status": 503', 5),
        ('"status": 404', 3),
        ("page_size is required", 3),
        ("No such file or directory", 10),
        ("not found\n[exit code: 127]", 3),
        ("powers are written **", 3),
        ("unsupported language 'unknown'", 3),
        ("too many matches", 3),
        ("units 'celsius' no longer supported", 5),
        ('"status": "conflict"', 5),
        ("too many recipients", 3),
        ("not a valid address", 3),
        ("AttachmentError", 3),
        ("ConversionError", 5),
        ("rate provider unavailable", 1),
        ("unexpected keyword argument", 5),
        ("Remote end closed connection", 2),
    ],
)
def test_each_kind_of_trouble_happened(records: list[dict[str, Any]], trouble: str, at_least: int) -> None:
    assert sum(trouble in record["output"] for record in records) >= at_least


def test_agents_repeat_failed_calls_word_for_word_and_repair_others(records: list[dict[str, Any]]) -> None:
    repeats = [record for record in records if record["metadata"]["repeat_of_failed"]]
    assert 0.04 <= len(repeats) / len(records) <= 0.09
    repaired = 0
    after_failure: dict[tuple[str, str], bool] = {}
    for record in records:
        key = (record["metadata"]["conversation_id"], record["tool_name"])
        repaired += after_failure.get(key, False) and not record["metadata"]["expected_failure"]
        after_failure[key] = record["metadata"]["expected_failure"]
    assert repaired >= 100


def test_forecast_service_changed_halfway(records: list[dict[str, Any]]) -> None:
    celsius = [r for r in records if r["tool_name"] == "get_weather" and r["input"].get("units") == "celsius"]
    before = [r for r in celsius if r["create_time"] < "2026-03-16"]
    after = [r for r in celsius if r["create_time"] >= "2026-03-17"]
    assert before
    assert after
    assert not any(r["metadata"]["expected_failure"] for r in before)
    assert all(r["metadata"]["expected_failure"] for r in after)


def test_conversations_hold_the_same_calls(records: list[dict[str, Any]]) -> None:
    by_key = {(r["metadata"]["conversation_id"], r["metadata"]["tool_call_id"]): r for r in records}
    seen = 0
    for conversation in sample.load_conversations():
        asked = ""
        calls: dict[str, dict[str, Any]] = {}
        for message in conversation["messages"]:
            if message["role"] == "user":
                asked = message["content"]
            for call in message.get("tool_calls") or []:
                calls[call["id"]] = call["function"]
            if message["role"] == "tool":
                record = by_key[conversation["id"], message["tool_call_id"]]
                function = calls[message["tool_call_id"]]
                assert function["name"] == record["tool_name"]
                assert json.loads(function["arguments"]) == record["input"]
                assert message["content"] == record["output"]
                assert asked == record["context"]
                seen += 1
    assert seen == len(records)


def test_recording_names_no_folder_of_the_machine_and_no_real_domain(records: list[dict[str, Any]]) -> None:
    text = json.dumps(records, ensure_ascii=False)
    assert re.findall(r"(?<![\w.])/(?:tmp|root|work|usr|var|private)\b[^\s\"]*", text) == []
    assert "127.0.0.1" not in text
    domains = set(re.findall(r"@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)", text))
    assert domains <= {"example.com", "example.net"}


def test_some_of_it_is_chinese(records: list[dict[str, Any]]) -> None:
    assert sum(bool(re.search(r"[一-鿿]", record["context"])) for record in records) >= 100
    assert sum(bool(re.search(r"[一-鿿]", json.dumps(r["input"], ensure_ascii=False))) for r in records) >= 30


def test_token_costs_are_known_only_where_a_model_writes_the_arguments(records: list[dict[str, Any]]) -> None:
    known = {record["tool_name"] for record in records if record["token_cost"] is not None}
    unknown = {record["tool_name"] for record in records if record["token_cost"] is None}
    assert known
    assert unknown
    assert not known & unknown


def test_importing_the_sample_loads_no_tool() -> None:
    code = "import sys, toolmem.sample; print([m for m in sys.modules if m in ('apsw', 'examples.recording.world')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
