"""Our own JSON Lines: which lines are read, which are named."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem.errors import RequestError
from toolmem.flow.runner import SystemClock
from toolmem.formats import Imported, read_file, recognize, write_calls
from toolmem.models import JudgeIdentity, ToolCallResult

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def read(path: Path, **options: Any) -> Imported:
    return read_file(path, clock=SystemClock(), **options)


def line(name: str = "search", **fields: Any) -> str:
    return json.dumps({"tool_name": name, "create_time": "2026-01-01T00:00:00Z", **fields})


def test_a_recording_is_read_by_the_machines_clock_where_none_is_given(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"tool_name": "search", "output": "[]"}\n')
    before = datetime.now(UTC)
    ((_, call),) = read_file(path).calls
    assert before <= call.create_time <= datetime.now(UTC)


def test_bad_lines_are_named_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    content = [line(), "{broken", "", line("b", success="no"), line("c")]
    path.write_bytes("\n".join(content).encode() + b"\n" + b'{"tool_name": "caf\xe9"}\n')
    imported = read(path)
    assert [(row, call.tool_name) for row, call in imported.calls] == [(0, "search"), (3, "c")]
    assert [(failure.index, failure.tool_name) for failure in imported.failures] == [(1, ""), (2, "b"), (4, "")]
    errors = [failure.error for failure in imported.failures]
    assert errors[0].startswith("line 2: not JSON")
    assert errors[1].startswith("line 4: success")
    assert errors[2].startswith("line 6: not UTF-8")
    assert imported.rows == 5


def test_compression_is_seen_in_the_bytes_not_in_the_name(tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_bytes(gzip.compress(line().encode()))
    assert len(read(path).calls) == 1
    path = tmp_path / "calls.jsonl.gz"
    path.write_text(line())
    assert len(read(path).calls) == 1


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(line() + "\r\n" + line() + "\r\n", encoding="utf-8-sig", newline="")
    assert len(read(path).calls) == 2


def test_a_damaged_archive_gives_what_stood_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl.gz"
    import random

    noise = random.Random(1)
    whole = gzip.compress("\n".join(line(output=str(noise.random())) for _ in range(2000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    imported = read(path)
    assert len(imported.calls) > 100
    assert len(imported.failures) == 1
    assert "damaged" in imported.failures[0].error


@pytest.mark.parametrize(
    ("layout", "place"),
    [
        ("[{0}, {1}, {2}]", "line 1, item 2"),
        ("[\n  {0},\n  {1},\n  {2}\n]\n", "document, item 2"),
        ('{{"tool_call_results": [{0}, {1}, {2}], "tools": [{{"name": "search"}}, 5]}}', "line 1, item 2"),
        ('{{\n"tool_call_results": [\n{0},\n{1},\n{2}], "tools": [{{"name": "search"}}, 5]}}', "document, item 2"),
    ],
)
def test_a_list_of_calls_is_read_item_by_item(tmp_path: Path, layout: str, place: str) -> None:
    path = tmp_path / "calls.json"
    path.write_text(layout.format(line("a"), line("b", output=5), line("c")))
    imported = read(path)
    assert recognize(path) == "calls"
    assert [(row, call.tool_name) for row, call in imported.calls] == [(0, "a"), (2, "c")]
    assert imported.failures[0].error.startswith(f"{place}: output")
    if "tools" in layout:
        assert [tool.name for tool in imported.tools] == ["search"]
        assert any("left out" in note for note in imported.notes)


def test_lines_that_hold_lists_of_calls_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(f"[{line('a')}, {line('b')}]\n[{line('c')}]\n{line('d')}\n")
    assert [call.tool_name for _, call in read(path).calls] == ["a", "b", "c", "d"]


def test_limit_counts_recorded_calls(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(line(str(n)) for n in range(9)))
    assert [row for row, _ in read(path, limit=4).calls] == [0, 1, 2, 3]
    with pytest.raises(RequestError, match="limit"):
        read(path, limit=0)


def test_one_note_tells_of_all_times_without_a_zone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(line(create_time="2026-01-01 00:00:00") for _ in range(3)))
    imported = read(path, time_zone="Europe/Paris")
    assert imported.notes == ["3 times have no zone and were read as Europe/Paris"]


def test_huge_numbers_and_deep_nesting_are_bad_lines_not_crashes(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    deep = '{"tool_name": "t", "input": ' + "[" * 100_000 + "]" * 100_000 + "}"
    digits = '{"tool_name": "t", "input": [' + "9" * 10_000 + "]}"
    infinite = '{"tool_name": "t", "time_cost": 1e999}'
    path.write_text("\n".join([deep, digits, infinite, line()]))
    imported = read(path)
    assert [row for row, _ in imported.calls] == [3]
    assert len(imported.failures) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["empty", "tool_name", "messages"]),
        (b"\xef\xbb\xbf \n\n", ["empty"]),
        (gzip.compress(b"", mtime=0), ["empty"]),
        (b"tool,success\nsearch,1\n", ["not recognized", "tool,success"]),
        (b'{"name": "search"}\n', ["not recognized", "name"]),
        (b"PK\x03\x04\x00\x00\x08\x00", ["binary"]),
        (b"\x1f\x8bnot really gzip", ["damaged"]),
        ('{"tool_name": "t"}'.encode("utf-16"), ["UTF-16", "UTF-8"]),
        (b'{"tool_name": ""}\n{"tool_name": 4}\n', ["no good record", "2 bad", "line 1", "blank"]),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_what_was_seen(
    tmp_path: Path, content: bytes, words: list[str]
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with pytest.raises(RequestError) as caught:
        read(path)
    for word in words:
        assert word in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no file"):
        read(tmp_path / "nowhere.jsonl")
    with pytest.raises(RequestError, match="folder"):
        read(tmp_path)


def test_the_wrong_format_says_which_one_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(line())
    with pytest.raises(RequestError, match="looks like 'calls'"):
        read(path, format="openai")
    with pytest.raises(RequestError, match="unknown; there are calls and openai"):
        read(path, format="csv")


def test_written_calls_come_back_and_the_bytes_depend_on_them_alone(tmp_path: Path) -> None:
    identity = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="1")
    calls = [
        ToolCallResult(tool_name="a", create_time=NOW, input=["ö", {"x": None}], output="\u2028\n", success=True),
        ToolCallResult(
            tool_name="b", create_time=NOW, id="1", context="why", score=1.0, evaluation_status="ok", judge=identity
        ),
    ]
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    assert write_calls(first, calls, judged=True) == 2
    write_calls(second, calls, judged=True)
    assert first.read_bytes() == second.read_bytes()
    assert [call for _, call in read(first, trust=True).calls] == calls
    assert [call.score for _, call in read(first).calls] == [None, None]


def test_a_key_that_is_a_slip_of_a_known_one_is_named_and_kept(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"tool_name": "a", "sucess": true, "Output": "x", "output": "y", "source": 1}\n', encoding="utf-8")
    imported = read_file(path, clock=SystemClock())
    ((_, call),) = imported.calls
    assert call.metadata == {"sucess": True, "Output": "x", "source": 1}
    assert "the key 'sucess' is unknown and was kept as metadata; did you mean 'success'?" in imported.notes
    assert not any("'Output'" in note for note in imported.notes)
    assert not any("'source'" in note for note in imported.notes)


def test_calls_without_a_time_are_said_to_carry_that_of_the_import(tmp_path):
    path = tmp_path / "calls.jsonl"
    one = '{"tool_name": "a"}\n'
    path.write_text(one, encoding="utf-8")
    assert read_file(path, clock=SystemClock()).notes == [
        "1 call has no time of its own and carries the time of the import"
    ]
    path.write_text(one * 2, encoding="utf-8")
    assert read_file(path, clock=SystemClock()).notes == [
        "2 calls have no time of their own and carry the time of the import"
    ]
