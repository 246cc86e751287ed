"""The recorded tools really run, stay inside their folder, and say the truth about their calls."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from csv import reader
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.recording import recorder
from examples.recording.clock import ScriptedClock
from examples.recording.tools.calculator import Calculator
from examples.recording.tools.calendar import CreateEvent, TeamCalendar
from examples.recording.tools.convert import ConvertData
from examples.recording.tools.shell import Shell, make_toolbox
from examples.recording.tools.tool import argument_problems, object_schema
from examples.recording.world import FIRST_DAY, World, open_world


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(3) as opened:
        yield opened


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder, toolbox = tmp_path / "folder", tmp_path / "bin"
    folder.mkdir()
    make_toolbox(toolbox)
    return Shell(folder, toolbox)


def _call(world: World, tool: str, **arguments: Any) -> Any:
    return world.tools[tool].call(arguments)


def test_locked_database_refuses_a_read_until_the_lock_is_gone(world: World) -> None:
    question = "SELECT COUNT(*) AS n FROM orders"
    world.database.lock()
    try:
        locked = _call(world, "sql_query", query=question)
    finally:
        world.database.unlock()
    assert (locked.output, locked.success, locked.fault) == ("BusyError: database is locked", False, "database_locked")
    assert _call(world, "sql_query", query=question).output == "n\n260\n(1 row)"


def test_database_cannot_be_changed_through_the_tool(world: World) -> None:
    refused = _call(world, "sql_query", query="DELETE FROM orders")
    assert "readonly" in refused.output
    assert _call(world, "sql_query", query="SELECT COUNT(*) AS n FROM orders").output == "n\n260\n(1 row)"


def test_rows_beyond_the_limit_are_announced(world: World) -> None:
    answer = _call(world, "sql_query", query="SELECT order_id FROM orders", max_rows=3)
    assert answer.output.splitlines()[-1] == "(first 3 rows, there are more)"


def test_command_that_blocks_is_stopped_with_all_its_children(shell: Shell, tmp_path: Path) -> None:
    started = time.perf_counter()
    answer = shell.call({"command": "(sleep 1; touch late) & sleep 30", "timeout_seconds": 0.2})
    assert time.perf_counter() - started < 25  # it blocks for 30
    assert answer.failed
    assert "timed out after 0.2 s" in answer.output
    time.sleep(1.2)
    assert not (tmp_path / "folder/late").exists()


@pytest.mark.parametrize("command", ["cat /etc/hostname", "ls ..", "cat '../bin/x'", "cp a /b", "grep x <../y"])
def test_command_that_leads_out_of_the_folder_is_refused(shell: Shell, command: str) -> None:
    assert shell.call({"command": command}).output.startswith("refused: ")


def test_command_finds_only_the_programs_of_the_toolbox(shell: Shell) -> None:
    answer = shell.call({"command": "python3 -V"})
    assert answer.failed
    assert "not found\n[exit code: 127]" in answer.output


def test_shell_shows_its_folder_under_a_name_of_its_own(shell: Shell) -> None:
    assert shell.call({"command": "pwd"}).output == "/scratch"


@pytest.mark.parametrize("path", ["../x.txt", "/etc/passwd", "docs/../../x.txt"])
def test_file_outside_of_the_folder_is_neither_read_nor_written(world: World, path: str) -> None:
    assert "outside" in _call(world, "read_file", path=path).output
    assert "outside" in _call(world, "write_file", path=path, content="x").output


def test_file_that_exists_is_not_created_again(world: World) -> None:
    assert not _call(world, "write_file", path="once.txt", content="一").failed
    assert _call(world, "write_file", path="once.txt", content="二").failed
    assert _call(world, "read_file", path="once.txt").output == "一"


def test_server_really_takes_longer_than_a_short_timeout(world: World) -> None:
    world.conversation = "timeout"
    path = "/v1/reports/export"
    assert _call(world, "http_request", path=path, timeout_ms=20).output == "ReadTimeout: no answer within 20 ms"
    started = time.perf_counter()
    assert not _call(world, "http_request", path=path, timeout_ms=5000).failed
    assert time.perf_counter() - started >= 0.2


def test_rate_limit_holds_for_a_minute_of_the_scripted_clock(world: World) -> None:
    world.conversation = "limit"
    statuses = [json.loads(_call(world, "http_request", path="/v1/products/1").output)["status"] for _ in range(5)]
    assert statuses == [200, 200, 200, 200, 429]
    world.clock.advance(61)
    assert not _call(world, "http_request", path="/v1/products/1").failed


def test_error_under_status_200_keeps_the_flag_up_but_is_a_failure(world: World) -> None:
    world.conversation = "soft"
    answer = _call(world, "http_request", path="/v1/orders", query={"status": "lost", "page_size": 5})
    assert json.loads(answer.output)["status"] == 200
    assert answer.success
    assert answer.failed


def test_mail_is_written_with_its_attachment_and_a_missing_one_stops_it(world: World) -> None:
    mail = {"to": ["lan.lin@example.com"], "subject": "Report", "body": "Here."}
    sent = _call(world, "send_email", **mail, attachments=["reports/q3_2025.txt"])
    assert json.loads(sent.output)["bytes"] > len("Here.")
    missing = _call(world, "send_email", **mail, attachments=["q3_2025.txt"])
    assert missing.failed
    assert not missing.success


_numbers = st.integers(1, 999).map(str)
_expressions = st.recursive(
    _numbers,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", " // ", "%"]), inner).map("".join)
        | inner.map(lambda text: f"({text})")
        | inner.map(lambda text: f"-({text})")
    ),
    max_leaves=8,
)


@given(_expressions)
def test_calculator_agrees_with_python(expression: str) -> None:
    answer = Calculator().call({"expression": expression})
    try:
        expected = str(eval(expression))  # digits, operators and parentheses only
    except ZeroDivisionError:
        assert answer.failed
    else:
        assert answer.output == expected


@given(st.text(max_size=30))
def test_calculator_answers_any_text(expression: str) -> None:
    answer = Calculator().call({"expression": expression})
    assert answer.failed != answer.success


_cells = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=8)


@given(st.lists(st.tuples(_cells, _cells), min_size=1, max_size=5))
def test_converter_brings_a_table_back(rows: list[tuple[str, str]]) -> None:
    data = json.dumps([{"one": one, "two": two} for one, two in rows])
    table = ConvertData().call({"data": data, "sourceFormat": "json", "targetFormat": "csv"}).output
    assert list(reader(io.StringIO(table)))[1:] == [list(row) for row in rows]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(16, 36), st.integers(15, 120)), max_size=25))
def test_calendar_never_books_two_events_at_once(wishes: list[tuple[int, int, int]]) -> None:
    calendar = TeamCalendar.with_usual_events(ScriptedClock(FIRST_DAY), 7, random.Random(1))
    tool = CreateEvent(calendar)
    for day, half_hour, minutes in wishes:
        start = FIRST_DAY.replace(tzinfo=None) + timedelta(days=day, minutes=30 * half_hour)
        tool.call({"title": "x", "start": start.isoformat("T", "minutes"), "duration_minutes": minutes})
    events = sorted(calendar.events)
    assert all(one.end <= other.start for one, other in pairwise(events))


def test_argument_check_names_each_kind_of_problem() -> None:
    schema = object_schema(
        ("a",), a={"type": "integer", "minimum": 1, "maximum": 3}, b={"type": "string", "enum": ["x"]}
    )
    assert [problem.kind for problem in argument_problems(schema, {"c": 1})] == ["unknown", "missing"]
    assert [problem.kind for problem in argument_problems(schema, {"a": True, "b": "y"})] == ["type", "enum"]
    assert [problem.kind for problem in argument_problems(schema, {"a": 4})] == ["range"]
    assert argument_problems(schema, {"a": 3, "b": "x"}) == []


def test_recorder_writes_its_four_files(tmp_path: Path) -> None:
    facts = {"expected_failure": False}
    call = {"tool_name": "x", "success": True, "create_time": "2026-03-02T00:00:00+00:00", "metadata": facts}
    recorder.write(recorder.Recording(1, [call], []), tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    first = (tmp_path / "recording.calls.jsonl.gz").read_bytes()
    time.sleep(1.1)
    recorder.write(recorder.Recording(1, [call], []), tmp_path)
    assert (tmp_path / "recording.calls.jsonl.gz").read_bytes() == first


def test_recorder_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "examples.recording.recorder", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--seed" in result.stdout
