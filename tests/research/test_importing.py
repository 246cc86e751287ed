"""An import keeps every call once, says what it could not read, and counts only its own calls."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from toolmem import ToolMem, read_calls
from toolmem.cli.import_ import imported_in_words
from toolmem.errors import RequestError
from toolmem.research.import_runs import forget_import, imports
from toolmem.research.importing import import_recordings

RUN = {"run_type": "tool", "name": "look", "inputs": {"a": 1}, "trace_id": "t"}
CALL = {"tool_name": "look", "input": {"a": 1}, "output": "seen"}
DATABASE = b"SQLite format 3\0" + bytes(100)


def write(path, *values):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in values))
    return path


def run(number, **fields):
    return {**RUN, "id": str(number), "outputs": {"output": "seen"}, **fields}


def test_calls_that_others_write_meanwhile_are_not_counted(tmp_path, path, memory, monkeypatch):
    add = memory.add

    def add_with_others(calls, **options):
        with ToolMem(path) as other:
            other.add([{**CALL, "tool_name": "other"}])
        return add(calls, **options)

    monkeypatch.setattr(memory, "add", add_with_others)
    found = import_recordings(memory, [write(tmp_path / "a.jsonl", run(1))])
    assert (found.calls, list(found.tools)) == (1, ["look"])


def test_a_file_that_nobody_named_stops_nothing(tmp_path, memory):
    damaged = tmp_path / "a.db"
    damaged.write_bytes(DATABASE)
    without_calls = write(tmp_path / "b.jsonl", *[{"type": "summary"}] * 9)
    gone = tmp_path / "gone.jsonl"
    session = write(tmp_path / "c.jsonl", run(1))
    found = import_recordings(memory, [], searched=[damaged, without_calls, gone, session])
    assert (found.calls, found.bad_count, found.stopped) == (1, 0, "")
    assert "2 files could not be read" in found.notes


def test_what_was_read_before_a_damaged_file_is_kept_and_shown(tmp_path, memory):
    good = write(tmp_path / "a.jsonl", run(1))
    damaged = tmp_path / "b.db"
    damaged.write_bytes(DATABASE)
    found = import_recordings(memory, [good, damaged])
    assert found.calls == 1 and "b.db" in found.stopped
    with pytest.raises(RequestError, match=r"b\.db"):
        import_recordings(memory, [damaged])


def test_a_file_that_could_not_be_read_is_tried_again(tmp_path, memory):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "export.json"
    path.write_bytes(b"PK\3\4" + bytes(996))  # a damaged archive
    first = import_recordings(memory, [folder])
    assert first.notes[0] == "1 file could not be read"
    status = path.stat()
    path.write_text(f"{json.dumps([run(1)]):1000}")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert import_recordings(memory, [folder]).calls == 1
    assert import_recordings(memory, [folder]).unchanged == 1


def test_calls_without_ids_and_times_are_known_by_their_file_and_content(tmp_path, memory):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        for name in ("a.jsonl", "b.jsonl"):
            write(tmp_path / folder / name, CALL, {**CALL, "output": "else"})
    assert import_recordings(memory, [tmp_path / "first"]).calls == 4
    assert import_recordings(memory, [tmp_path / "first"], again=True).calls == 0
    assert import_recordings(memory, [tmp_path / "second"]).calls == 4  # of another run


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_calls_without_ids_are_known_in_another_form_of_their_file(tmp_path, memory, form):
    timed = {"create_time": "2026-11-20T10:00:00.5+02:00", "input": "ls"}
    calls = [{**CALL, **fields} for fields in ({}, {"output": ""}, timed) for _ in range(2)]
    path, other = write(tmp_path / "a.jsonl", *calls), tmp_path / f"a.{form}"
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    getattr(read_calls(path), f"to_{form.removesuffix('.gz')}")(other)
    found = import_recordings(memory, [path, other])
    assert (found.calls, found.duplicates) == (6, 6)


def test_an_import_tells_of_misspelled_keys(tmp_path, memory):
    found = import_recordings(memory, [write(tmp_path / "a.jsonl", {**CALL, "sucess": False})])
    assert found.notes == ["1 record has 'sucess', which is no field: did you mean 'success'?"]


def test_a_renamed_file_is_known_by_the_times_of_its_calls(tmp_path, memory):
    timed = {**CALL, "create_time": "2026-11-20T10:00:00Z"}
    assert import_recordings(memory, [write(tmp_path / "a.jsonl", timed)]).calls == 1
    assert import_recordings(memory, [write(tmp_path / "a.1.jsonl", timed)]).calls == 0


def test_rows_are_not_known_by_their_numbers_alone(tmp_path, memory):
    for folder, output in (("first", "seen"), ("second", "Error: no such a")):
        (tmp_path / folder).mkdir()
        rows = "".join(f"{number},look,{output}\n" for number in range(4))
        (tmp_path / folder / "calls.csv").write_text(f"id,tool,output\n{rows}")
    assert import_recordings(memory, [tmp_path]).calls == 8
    assert import_recordings(memory, [tmp_path / "second"], again=True).calls == 0


def test_a_call_that_the_memory_refuses_is_named(tmp_path, memory):
    deep = json.loads("[" * 300 + "]" * 300)
    path = write(tmp_path / "a.jsonl", run(1), run(2, inputs={"a": deep}), run(3))
    found = import_recordings(memory, [path])
    assert (found.calls, [bad.line for bad in found.bad]) == (2, [2])
    assert import_recordings(memory, [path]).bad == found.bad


def test_the_first_page_shows_no_text_of_a_call_raw(tmp_path, memory):
    evil = "\x1b[31mred"
    path = write(tmp_path / "a.jsonl", {**CALL, "tool_name": evil, "metadata": {"format": evil}})
    assert "\x1b" not in "\n".join(imported_in_words(import_recordings(memory, [path])))


def test_the_first_page_names_no_conversation_where_calls_name_none(tmp_path, memory):
    failed = {**CALL, "output": "Error: no such a", "success": False}
    page = imported_in_words(import_recordings(memory, [write(tmp_path / "a.jsonl", failed)]))
    assert page[1] == "1 tool, no conversation is named: 1 call failed (100.0%)."
    assert "On the newest 1 call the guard would have stepped in before 0 repeats." in page
    assert any(line.startswith("No call names its conversation") for line in page)


def test_the_first_page_says_how_repeats_ended(tmp_path, memory):
    failed = {"error": "no such a", "outputs": None}
    runs = [run(1, **failed), run(2, **failed), run(3, **failed)]
    page = imported_in_words(import_recordings(memory, [write(tmp_path / "a.jsonl", *runs)]))
    assert any("2 repeats: 2 failed again, 0 worked." in line for line in page)


def test_a_file_whose_name_is_no_utf_8_is_imported_once(tmp_path, memory):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    write(path, CALL)
    assert import_recordings(memory, [path]).calls == 1
    assert import_recordings(memory, [path]).unchanged == 1


def start(store, *paths):
    command = [sys.executable, "-m", "toolmem", "import", *map(str, paths), "--store", str(store)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_an_interrupted_import_says_what_it_kept_and_the_same_command_ends_it(tmp_path):
    first = write(tmp_path / "first.jsonl", *[run(n, name="first") for n in range(1500)])
    second, store = tmp_path / "second.jsonl", tmp_path / "m.db"
    os.mkfifo(second)  # the import waits there, until the test goes on
    importing = start(store, first, second)
    with second.open("w"):
        importing.send_signal(signal.SIGINT)
        told = importing.communicate(timeout=60)[1]
    assert importing.returncode == 130
    assert "1,000 new calls are kept; the same command goes on from there" in told
    second.unlink()
    write(second, *[run(n) for n in range(1500, 3000)])
    again = start(store, first, second)
    assert (again.communicate(timeout=60)[1], again.returncode) == ("", 0)
    with ToolMem(str(store)) as memory:
        tools = [(each.calls_ever, bool(each.guidance)) for each in memory.tools()]
        assert tools == [(1500, True)] * 2


@pytest.mark.parametrize("is_summarized", [False, True])
def test_an_import_of_old_failures_leaves_recorded_calls_the_newest(
    tmp_path, memory, is_summarized
):
    def session(name, days, number, **fields):
        first = datetime.now(UTC) - timedelta(days=days, hours=2)
        about = {**CALL, "conversation_id": name, **fields}
        return [{**about, "create_time": f"{first + timedelta(minutes=n)}"} for n in range(number)]

    failed, store = {"output": "Error: no rule", "success": False}, memory.services.store()
    memory.add(session("today", 0, 60, success=True))
    if is_summarized:
        memory.summarize()
    before = [call.id for call in store.windows("default")[0].calls]
    import_recordings(memory, [write(tmp_path / "a.jsonl", *session("a", 365, 110, **failed))])
    (window,) = store.windows("default")
    assert len(window.calls) == 100 and [call.id for call in window.calls][40:] == before
    text, history = memory.guidance("look").text, window.record.guidance.history
    assert "no rule" in text and "no later call" not in text and "0 of the 30" not in text
    assert (history.failures[0].k, history.calls) == (110, 140)
    import_recordings(memory, [write(tmp_path / "b.jsonl", *session("b", 700, 50, **failed))])
    assert store.records("default")[0].guidance.history.failures[0].k == 160
    for each in imports(memory):
        forget_import(memory, each)
    assert [call.id for call in store.windows("default")[0].calls] == before
    assert "no rule" not in memory.guidance("look").text
