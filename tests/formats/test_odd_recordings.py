"""Recordings that are damaged or odd: each is named, none ends in a traceback or is lost."""

import gzip
import json
import os
import sqlite3
import zipfile

import pytest
from formats.conftest import NOW, PAYLOADS, lines, read, write

from toolmem.errors import RequestError
from toolmem.formats import files, joining, recording, sources
from toolmem.formats.recording import RecordingReader
from toolmem.formats.shapes import moment
from toolmem.formats.spans import with_attachments
from toolmem.research.importing import import_recordings

EARLY = "0001-01-01T00:00:00+14:00"  # before the year 1 in UTC
RUN = {"run_type": "tool", "id": "r", "name": "look", "inputs": {"a": 1}, "outputs": "seen"}
CALL = {"tool_name": "look", "input": {"a": 1}, "output": "seen"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runs.jsonl", lines(RUN, {**RUN, "id": "s"})),
        ("runs.json", json.dumps([RUN, {**RUN, "id": "s"}])),
        ("runs.json", json.dumps({"runs": [RUN, {**RUN, "id": "s"}]}, indent=1)),
    ],
)
def test_an_archive_holds_lines_and_documents(tmp_path, name, text):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)
    assert len(read(path).calls) == 2


def test_an_archive_with_a_password_and_a_damaged_one_are_named(tmp_path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("runs.jsonl", lines(RUN))
    data = bytearray(path.read_bytes())
    for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(header) + flags] |= 1  # encrypted
    path.write_bytes(data)
    with pytest.raises(RequestError, match=r"export\.zip.*password"):
        read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("runs.jsonl", lines(*[RUN] * 100))
    data = bytearray(path.read_bytes())
    data[50:60] = b"\xff" * 10
    path.write_bytes(data)
    with pytest.raises(RequestError, match=r"export\.zip: Error -3"):
        read(path)


def test_a_damaged_row_of_a_database_costs_no_other(tmp_path):
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as database:
        database.executescript((PAYLOADS / "opencode.sql").read_text())
        of_user = "json_extract(data, '$.role') = 'user'"
        database.execute(f"UPDATE message SET data = '{{' WHERE {of_user}")
        database.execute("UPDATE part SET data = NULL WHERE data LIKE '%step-start%'")
    database.close()
    found = read(path)
    assert [call.tool_name for call in found.calls] == ["bash"]
    assert [bad.error for bad in found.bad] == ["no JSON: the part has no text"]


def test_a_view_of_a_database_is_not_read(tmp_path):
    path = tmp_path / "opencode.db"
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    with sqlite3.connect(path) as database:
        database.executescript(f"CREATE VIEW part AS {endless}; CREATE VIEW message AS {endless}")
    database.close()
    assert [bad.error for bad in read(path).bad] == ["no database of OpenCode"]


def test_a_list_of_calls_that_keep_their_id_is_no_conversation(tmp_path):
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([{**CALL, "tool_call_id": "c"}, CALL]))
    assert len(read(path).calls) == 2


def test_a_value_that_no_format_fits_is_described_in_few_words(tmp_path):
    path = write(tmp_path / "a.jsonl", f"{'[' * 500}{']' * 500}", {"k" * 10_000: 1})
    assert all(len(bad.error) < 200 for bad in read(path).bad)


def asked(number):
    return {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"}


def answered(number):
    return {"type": "function_call_output", "call_id": f"c{number}", "output": "seen"}


def test_a_file_with_many_calls_without_an_answer_loses_the_oldest_not_the_newest(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(joining, "MAX_OPEN", 3)
    values = (*map(asked, range(10)), answered(9), asked(10), answered(10))
    found = read(write(tmp_path / "a.jsonl", *values))
    assert [call.metadata["tool_call_id"] for call in found.calls] == ["c9", "c10"]
    assert "9 calls without an answer were left out" in found.notes


def test_an_answer_without_an_id_belongs_to_the_oldest_call_of_its_conversation(tmp_path):
    def row(conversation, **fields):
        return {"session": conversation, **fields}

    asks = row("a", fn="look", n="1"), row("b", fn="look", n="2")
    ends = row("b", out="seen 2"), row("a", out="seen 1")
    path = write(tmp_path / "a.jsonl", *asks, *ends)
    mapping = {"name": "fn", "arguments": "n", "output": "out", "conversation": "session"}
    found = [(c.conversation_id, c.input, c.output) for c in read(path, mapping=mapping).calls]
    assert found == [("b", "2", "seen 2"), ("a", "1", "seen 1")]


def test_an_attachment_is_restored_wherever_it_stands_and_only_there():
    sample = {
        "input": "attachment://a",
        "events": [{"result": "attachment://b", "note": "see attachment://a", "other": ["x"]}],
        "attachments": {"a": "Weather?", "b": 'a "quoted" attachment://a'},
    }
    read = with_attachments(sample)
    assert read["input"] == "Weather?"
    [event] = read["events"]
    assert (event["note"], event["other"]) == ("see attachment://a", ["x"])
    assert event["result"] == 'a "quoted" attachment://a'


@pytest.mark.parametrize("value", [10**400, "9" * 400, "²", float("nan"), [], True, "soon", EARLY])
def test_what_is_no_time_is_none(value):
    assert moment(value) is None


def test_a_mapping_is_followed_in_a_table_too(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text("werkzeug,eingabe,ausgabe\nlook,{},seen\n")
    mapping = {"name": "werkzeug", "arguments": "eingabe", "output": "ausgabe"}
    assert [call.output for call in read(path, mapping=mapping).calls] == ["seen"]


def test_rows_that_name_no_tool_are_counted(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text("werkzeug,ausgabe\nlook,seen\nlook,seen\n")
    note = "2 rows name no tool and were left out: give its place by --map name=..."
    for mapping in (None, {"name": "tool", "output": "ausgabe"}):
        told = read(path, mapping=mapping).notes[0]
        assert told == f"{note}; the first row is an object with 'werkzeug', 'ausgabe'"


def test_a_row_of_a_table_has_its_own_conversation_or_none(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text("tool,output,session_id\nlook,a,\nlook,b,s\nlook,c,\n")
    assert [call.conversation_id for call in read(path).calls] == ["", "s", ""]


def test_a_record_without_output_and_success_is_no_call_that_worked(tmp_path):
    told = [{}, {"success": False}, {"output": ""}, {"output": None}]
    path = write(tmp_path / "a.jsonl", *({"tool_name": "a", **each} for each in told))
    assert [bad.error.partition(";")[0] for bad in read(path).bad] == ["output: missing"]


def test_a_format_and_a_mapping_that_are_wrong_are_refused_by_name():
    with pytest.raises(RequestError, match="^format: .*claude_code"):
        RecordingReader(NOW, format="claude")
    with pytest.raises(RequestError, match="^no field is called 'duration'; expected id, name"):
        RecordingReader(NOW, mapping={"name": "fn", "duration": "s"})
    with pytest.raises(RequestError, match="^mapping: expected a dict"):
        RecordingReader(NOW, mapping="name=fn")


@pytest.mark.parametrize(
    "value",
    [
        {"sessionId": "s", "uuid": "u", "message": {}},
        {"messages": [{"role": "assistant", "tool_calls": [{"name": "look", "args": {}}]}]},
        {"tool_name": "look", "output": "seen", "input": {}},
        {"run_type": "tool", "id": "r", "name": "look", "inputs": {}, "outputs": "seen"},
    ],
)
@pytest.mark.parametrize("depth", [300, 900, 5_000])
def test_a_line_that_is_nested_deeply_costs_no_other(tmp_path, memory, value, depth):
    nested = "[" * depth + "]" * depth
    text = json.dumps(value).replace("{}", f'{{"a": {nested}}}')
    import_recordings(memory, [write(tmp_path / "a.jsonl", text, RUN)])
    assert [call for call in memory.calls() if call.metadata.get("tool_call_id") == "r"]


def test_a_file_may_alternate_between_formats(tmp_path):
    assert len(read(write(tmp_path / "a.jsonl", asked(1), RUN, answered(1))).calls) == 2


def test_bad_records_before_the_first_call_are_held_in_limited_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MAX_WAITING", 3)
    path = write(tmp_path / "a.jsonl", *"x" * 10, CALL)
    found = read(path)
    assert [bad.line for bad in found.bad] == [1, 2, 3]
    assert "7 records before the first call hold none" in found.notes
    path.write_text("x\n" * 10)
    assert read(path).bad[0].error.startswith("no line of 10 is a call; no JSON")


def test_a_call_that_is_answered_in_a_later_line_is_read_then(tmp_path):
    def chat(*messages):
        return {"id": "s", "messages": list(messages)}

    functions = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    asks = {"role": "assistant", "tool_calls": functions}
    first, second = ({"role": "tool", "tool_call_id": name, "content": name} for name in "ba")
    odd = {"role": "tool", "tool_call_id": "c", "content": "of no call"}
    chats = chat(asks, odd, first), chat(asks, odd, first, second)
    found = read(write(tmp_path / "a.jsonl", *chats))
    assert [call.tool_name for call in found.calls] == ["b", "a"]
    assert [bad.line for bad in found.bad] == [1]
    assert not any("without an answer" in note for note in found.notes)


def test_what_nobody_named_and_cannot_be_read_is_counted_and_named(tmp_path, monkeypatch):
    def scandir(path, scandir=os.scandir):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (tmp_path / "closed").mkdir()
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    for number in range(21):
        (tmp_path / f"{number:02}.db").write_bytes(b"SQLite format 3\0")
    write(tmp_path / "a.jsonl", CALL)
    for name in "bc":
        (tmp_path / f"{name}.jsonl").write_text('{"tool_name": "lo')
    found = read(tmp_path)
    assert len(found.calls) == 1
    assert found.notes[:2] == ["1 folder could not be read", "21 files could not be read"]
    named = [note.removeprefix(f"{tmp_path}/").partition(":")[0] for note in found.notes]
    assert named[3:4] + named[22:26] == ["closed", "18.db", "and 2 more", "b.jsonl", "c.jsonl"]


def test_a_time_that_has_no_utc_is_refused_by_name(tmp_path):
    (bad,) = read(write(tmp_path / "a.jsonl", {**CALL, "create_time": EARLY}, CALL)).bad
    assert bad.error.startswith("create_time: 0001-01-01")


def test_a_line_that_is_no_utf_8_costs_no_other(tmp_path):
    path = tmp_path / "a.jsonl"
    good = b'{"tool_name": "look", "input": {}, "output": "seen"}\n'
    path.write_bytes(good + good.replace(b"seen", b"caf\xe9") + good)
    found = read(path)
    assert len(found.calls) == 2
    assert ["no UTF-8 text" in each.error for each in found.bad] == [True]


BLOCK = {"type": "tool_use", "id": "c", "name": "look"}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}


@pytest.mark.parametrize("key", ["input", "arguments", "args", "parameters"])
def test_arguments_are_read_under_each_usual_name(tmp_path, key):
    block = {"role": "assistant", "content": [{**BLOCK, key: {"a": 1}}]}
    calls = [{"id": "c", "name": "look", key: {"a": 1}}]
    chain = {"type": "ai", "content": "", "tool_calls": calls}
    answer = {"type": "tool", "tool_call_id": "c", "content": "x"}
    values = {"messages": [block, RESULT]}, {"messages": [chain, answer]}
    found = read(write(tmp_path / "a.jsonl", *values))
    assert [call.input for call in found.calls] == [{"a": 1}] * 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([{**BLOCK, "kwargs": {"a": 1}}], "no arguments of 'look' in an object with 'type'"),
        ([{**BLOCK, "name": None}], "not as anthropic writes it"),
        ([{"toolUse": {"toolUseId": "c", "name": "look"}}], "answers belong to no call"),
        ("nothing", "answers belong to no call"),
    ],
)
def test_a_conversation_of_which_no_call_could_be_read_is_named(tmp_path, asked, told):
    talk = {"messages": [{"role": "assistant", "content": asked}, RESULT]}
    found = read(write(tmp_path / "a.jsonl", CALL, talk))
    assert len(found.calls) == 1
    assert {bad.line for bad in found.bad} == {2}
    assert any(told in bad.error for bad in found.bad)


def test_a_time_in_the_future_does_not_make_a_call_the_newest(tmp_path):
    timed = ({**CALL, "create_time": each} for each in ("2999-01-01", 5))
    found = read(write(tmp_path / "a.jsonl", *timed))
    assert [call.create_time.year for call in found.calls] == [2027, 1970]
    assert found.notes[0].startswith("1 call with a time in the future")


def test_utf_16_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(CALL).encode("utf-16"))
    with pytest.raises(RequestError, match="UTF-16.* iconv"):
        read(tmp_path / "a.jsonl")


def test_a_folder_may_hold_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    write(tmp_path / "a.jsonl", CALL)
    assert len(read(tmp_path).calls) == 1


@pytest.mark.parametrize("name", ["a.json.gz", "a.jsonl.gz", "a.csv.gz"])
def test_whatever_a_gzipped_file_holds_is_read(tmp_path, name):
    text = "tool,output\nlook,seen\n" if "csv" in name else json.dumps([CALL], indent=1)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert [call.output for call in read(tmp_path / name).calls] == ["seen"]


@pytest.fixture
def small_lines(monkeypatch):
    """Records may have 1 MB."""
    for module in (files, sources):
        monkeypatch.setattr(module, "MAX_LINE", 1_000_000)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.csv"])
def test_a_record_that_is_too_long_is_named_and_the_others_are_read(tmp_path, small_lines, name):
    line = b'{"tool_name": "a", "input": {}, "output": "%s"}'
    path, noise = tmp_path / name, os.urandom(1_000_000).hex().encode()
    lines = [line % b"x", line % noise, line % b"y"]
    text = b"[" + b",".join(lines) + b"]" if name == "a.json" else b"\n".join(lines)
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    if name == "a.csv":
        path.write_bytes(b"tool_name,output\na,x\na," + noise)
        with pytest.raises(RequestError, match=r"a\.csv: a line of over"):
            read(path)
        return
    found = read(path)
    assert [call.output for call in found.calls] == ["x", "y"]
    assert [(bad.line, bad.error) for bad in found.bad] == [(2, "over 64 MB")]


def test_a_document_that_is_cut_while_it_is_read_is_read_whole(tmp_path, small_lines):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([CALL] * 30_000))
    units = sources.read_units(path)
    next(units)
    os.truncate(path, 10)
    assert sum(not unit.error for unit in units) == 29_999


@pytest.mark.parametrize("unit", [b" ", b"\n"])
def test_compressed_data_that_would_fill_the_memory_is_refused(tmp_path, small_lines, unit):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(unit * (9_000_000 // len(unit)), 9))
    with pytest.raises(RequestError, match=r"a\.jsonl\.gz: line \d+: its data grows over 500-fold"):
        read(path)
