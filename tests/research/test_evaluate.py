"""A recording becomes tables and a page: what is written, and what is said of bad records."""

from __future__ import annotations

import csv
import json

import command_line
import pytest

from toolmem import ToolMem, read_calls
from toolmem.errors import RequestError
from toolmem.files import replace_file
from toolmem.flow.op import Op, register
from toolmem.formats.csv_text import cell, csv_text
from toolmem.pages.intervals import wilson_interval
from toolmem.research import tables
from toolmem.research.evaluation import clear, evaluate, sample
from toolmem.research.frames import frame

TABLES = ("bad_records", "calls", "errors", "lines", "rules", "skips", "tools")
FILES = sorted([*(f"{each}.csv" for each in TABLES), "memory.db", "report.html", "summary.json"])


def run(folder, *arguments):
    return command_line.run(folder, "evaluate", *arguments)


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def recording(tmp_path):
    def write(*records):
        path = tmp_path / "calls.jsonl"
        lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


def test_the_sample_is_judged_summarized_skipped_and_written(tmp_path):
    for _ in range(2):  # a second evaluation begins anew
        done = run(tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        folder = tmp_path / "report"
        assert sorted(each.name for each in folder.iterdir()) == FILES
        calls = rows(folder / "calls.csv")
        assert [int(each["row"]) for each in calls] == list(range(1176))
        assert {each["evaluation_status"] for each in calls} == {"ok"}
        tools = rows(folder / "tools.csv")
        assert list(tools[0])[:4] == ["tool_name", "calls", "failures", "success_rate"]
        assert sum(int(each["calls"]) for each in tools) == 1176
        assert sum(int(each["lifetime_calls"]) for each in tools) == 1176
        actions = [(each["run"], each["action"]) for each in rows(folder / "skips.csv")]
        assert actions == [("first", "summarized")] * 14 + [("second", "skipped")] * 14
        lines = rows(folder / "lines.csv")
        assert len(lines) == sum(int(each["guidance_lines"]) for each in tools) > 14
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["calls"], summary["tools"], summary["bad_records"]) == (1176, 14, 0)
        told = summary["later_repairs"]["sentence"]
        assert f"of {summary['later_repairs']['repaired']} later failures" in told
        assert told in (folder / "report.html").read_text()
        failed = sum(int(each["failures"]) for each in tools)
        assert failed == sum(int(each["calls"]) for each in rows(folder / "errors.csv"))


def test_a_bad_line_is_named_and_the_others_are_judged(recording):
    path = recording(
        json.dumps({"tool_name": "search", "output": "a\u2028b"}, ensure_ascii=False),
        "{broken",
        "",
        '{"tool_name": "search", "output": "half \\ud83d"}',
        {"tool_name": "search", "time_cost": -1},
        {"tool_name": "search", "output": "no bad number", "create_time": "2026-13-01"},
        {"tool_name": "search", "output": "last"},
    )
    found = evaluate(path)
    assert [(each.row, each.call.output) for each in found.calls] == [
        (0, "a\u2028b"),
        (2, "half \ufffd"),
        (5, "last"),
    ]
    assert [each.line for each in found.bad_records] == [2, 5, 6]
    assert found.notes == ["no call names its conversation, so no repair can be found"]
    assert "time_cost" in found.bad_records[1].error
    assert "create_time" in found.bad_records[2].error


def test_a_demand_binds_only_tools_that_it_means_and_what_is_not_kept_is_a_note(tmp_path):
    def conversation(name, *said, tool="search"):
        call = {"id": "1", "function": {"name": tool, "arguments": "{}"}}
        messages = [
            {"role": "user", "content": said[0]},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "done"},
            *({"role": "user", "content": text} for text in said[1:]),
        ]
        return json.dumps({"id": name, "messages": messages})

    path = tmp_path / "conversations.jsonl"
    lines = [
        conversation("a", "Never email Sarah.", "Never push to main. My key is sk-ant-api03-x."),
        conversation("b", "Find the report.", "Never search for Bob.", tool="send_email"),
    ]
    path.write_text("\n".join(lines))
    found = evaluate(path)
    assert {(rule.tool_name, rule.rule) for rule in found.rules} == {
        ("send_email", "Never email Sarah"),
        ("search", "Never search for Bob"),  # no call follows it
    }
    assert found.notes == [
        "Not kept, of what users said: 1 demand, such as:",
        "Not kept: “Never push to main”: it means none of the tools",
    ]


def test_an_op_before_the_judge_sees_the_calls_of_an_evaluation_as_those_of_a_request(recording):
    seen = []

    class LeaveOutOp(Op):
        reads = leaves = ("tool_call_results",)

        def run(self, context):
            given = context["tool_call_results"]
            seen.extend(given)
            context["tool_call_results"] = [each for each in given if each["tool_name"] != "ping"]

    register(LeaveOutOp)
    path = recording(
        {"tool_name": "ping", "output": "pong"},
        {"tool_name": "search", "id": "a", "output": {"error": "x"}, "colour": "red"},
    )
    flow = "leave_out_op >> parse_tool_call_result_op >> update_vector_store_op"
    setting = f"flow.add_tool_call_result.flow_content={json.dumps(flow)}"
    with ToolMem(":memory:", overrides=[setting]) as memory:
        found = evaluate(path, memory=memory)
        memory.add([{"tool_name": "ping"}, found.calls[1].call])
    assert [type(each) for each in seen] == [dict] * 4
    judged = found.calls[1].call
    assert (judged.id, judged.score, judged.output) == ("a", 0.0, '{"error": "x"}')
    assert judged.metadata == {"colour": "red"}
    assert "an op left out 1 call before the judge saw it" in found.notes


def test_a_recording_without_one_readable_call_is_no_success(recording, tmp_path):
    done = run(tmp_path, "--input", str(recording("{broken")))
    assert (done.returncode, "line 1: no JSON" in done.stderr) == (1, True)
    report = (tmp_path / "report" / "report.html").read_text()
    assert "no call that could be evaluated" in report
    done = run(tmp_path, "--input", str(recording("")))  # nothing was evaluated: it stays
    assert (done.returncode, "the recording holds no call" in done.stderr) == (2, True)
    assert (tmp_path / "report" / "report.html").read_text() == report


def test_a_withheld_flag_is_not_seen_by_the_judge(recording):
    path = recording({"tool_name": "search", "output": "sunny", "success": False})
    assert evaluate(path).calls[0].call.score == 0.0
    (found,) = evaluate(path, ignore_success=True).calls
    assert (found.call.success, found.call.score) == (None, 1.0)


def test_a_call_that_the_memory_refuses_is_named_with_its_file(tmp_path):
    deep = json.loads("[" * 300 + "]" * 300)
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, given in zip(paths, ({}, {"a": deep}), strict=True):
        path.write_text(json.dumps({"tool_name": "look", "input": given, "output": "seen"}))
    (bad,) = evaluate(paths).bad_records
    assert bad.place == "b.jsonl, line 1"


def test_a_limit_counts_records(recording):
    path = recording(*({"tool_name": "search", "output": str(n)} for n in range(5)))
    assert [each.call.output for each in evaluate(path, limit=2).calls] == ["0", "1"]


def test_calls_of_a_known_id_and_stopped_calls_stay_in_the_table_without_a_verdict(recording):
    path = recording(
        {"tool_name": "login", "id": "a", "input": {"password": "Sunshine7"}, "output": "ok"},
        {"tool_name": "login", "output": "toolmem: not run. The user said: no."},
        {"tool_name": "login", "id": "a", "input": {"password": "Sunshine7"}, "output": "ok"},
        {"tool_name": "login", "output": "toolmem: not run. A rule says: no.", "success": False},
    )
    found = evaluate(path)
    assert found.duplicates == 1
    told = [each.evaluation_status for each in tables.call_rows(found)]
    assert told == ["ok", "denied", "pending", "denied"]
    totals = tables.totals(found)  # what was not judged is in no rate, whatever its flag says
    assert (totals["success_rate"], totals["failures"], totals["unknown_outcome"]) == (1.0, 0, 3)
    assert "Sunshine7" not in csv_text(tables.columns(tables.CallRow), tables.call_rows(found))


def test_a_store_of_ones_own_keeps_what_it_held(recording, tmp_path):
    path = recording({"tool_name": "search", "id": "b", "output": "new"})
    store = str(tmp_path / "own.db")
    with ToolMem(store, workspace="evaluate") as memory:
        memory.add([{"tool_name": "search", "id": "a", "output": "old"}])
    for known in (0, 1):  # the second time the call is known
        with ToolMem(store, workspace="evaluate") as memory:
            found = evaluate(path, memory=memory)
        assert found.duplicates == known
        assert len(found.calls) == 1
    with ToolMem(store, workspace="evaluate") as memory:
        assert [call.output for call in memory.calls()] == ["old", "new"]


def test_a_store_with_other_workspaces_is_never_cleared(tmp_path):
    store = str(tmp_path / "memory.db")
    with ToolMem(store) as memory:
        memory.add([{"tool_name": "search", "output": "mine"}])
    with (
        ToolMem(store, workspace="evaluate") as memory,
        pytest.raises(RequestError, match="--store"),
    ):
        clear(memory)
    with ToolMem(store) as memory:
        assert len(memory.calls()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RequestError, match="missing.jsonl"):
        evaluate(tmp_path / "missing.jsonl")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1dx", "'\uff1dx"),
        ("@a", "'@a"),
        (" +a", "' +a"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u202e\x01=1", "'\u202e\x01=1"),
        ("-1.5", "-1.5"),
        (-1.5, "-1.5"),
        ("1e-3", "1e-3"),
        (True, "true"),
        (None, ""),
    ],
)
def test_a_cell_is_never_a_formula(value, expected):
    assert cell(value) == expected


@pytest.mark.parametrize("output", ["1 %\r2 %\rend", "a\r\nb", "a\nb", '"quoted", and more', "\0"])
def test_a_row_reads_back_as_one_row_whatever_line_ends_its_texts_hold(recording, tmp_path, output):
    found = evaluate(recording({"tool_name": "search", "output": output}))
    text = csv_text(tables.columns(tables.CallRow), tables.call_rows(found))
    path = tmp_path / "calls.csv"
    path.write_text(text, encoding="utf-8", newline="")
    (row,) = rows(path)
    assert row["output"] == output.replace("\0", "\ufffd")


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.csv"
    replace_file(path, b"old")
    with pytest.raises(TypeError):
        replace_file(path, "no bytes")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_figures_of_tools_and_errors_are_counted_from_the_recorded_calls(recording):
    found = evaluate(
        recording(
            *({"tool_name": "a", "input": {"n": n}, "output": "fine"} for n in range(8)),
            {"tool_name": "a", "output": "Error: no such file", "success": True},
            {"tool_name": "a", "output": "Error: request timed out", "success": False},
            {"tool_name": "a", "output": "Error: file not found", "success": False},
            {"tool_name": "b", "output": "Error: file not found"},
        )
    )
    rows = {row.tool_name: row for row in tables.tool_rows(found)}
    a = rows["a"]
    assert (a.calls, a.failures, a.silent_failures, a.in_dispute) == (11, 3, 1, 1)
    assert a.success_rate == pytest.approx(8 / 11)
    assert a.flagged_success_rate == pytest.approx(1 / 3)
    assert (a.low, a.high) == pytest.approx(wilson_interval(8, 11))
    assert a.interval == "sampling only"
    errors = tables.error_rows(found)
    counted = [(e.error_class, e.tool_name, e.calls, e.silent_failures) for e in errors]
    assert counted == [("not_found", "a", 2, 1), ("not_found", "b", 1, 0), ("timeout", "a", 1, 0)]
    assert [each.row for each in errors] == [8, 11, 9]
    totals = tables.totals(found)
    assert (totals["calls"], totals["failures"], totals["silent_failures"]) == (12, 4, 1)
    assert (totals["low"], totals["high"]) == pytest.approx(wilson_interval(8, 12))
    assert (totals["share_in_dispute"], totals["disputed_rows"]) == (pytest.approx(1 / 3), [8])


def test_the_recorded_flag_is_a_column_also_where_it_is_withheld(recording):
    path = recording({"tool_name": "a", "output": "fine", "success": False})
    found = evaluate(path, ignore_success=True)
    (call,) = tables.call_rows(found)
    assert (call.success, call.worked) == (False, True)
    assert tables.totals(found)["in_dispute"] == 1


def test_calls_are_grouped_by_a_field_and_an_unknown_one_is_refused_before_anything(
    recording, memory
):
    calls = [
        {"tool_name": "a", "output": "fine", "model": "m1", "time_cost": 1},
        {"tool_name": "a", "output": "Error: no such file", "model": "m2", "time_cost": 9},
        {"tool_name": "b", "output": "fine"},
    ]
    path = recording(*calls)
    rows = tables.group_rows(evaluate(path, by="model"))
    assert [(e.group, e.tool_name, e.calls, e.failures, e.p95_time_cost) for e in rows] == [
        ("", "", 1, 0, None),
        ("", "b", 1, 0, None),
        ("m1", "", 1, 0, 1.0),
        ("m1", "a", 1, 0, 1.0),
        ("m2", "", 1, 1, 9.0),
        ("m2", "a", 1, 1, 9.0),
    ]
    with pytest.raises(RequestError, match="no call has a field 'modle' .did you mean 'model'"):
        evaluate(path, memory=memory, by="modle")
    assert memory.calls() == []


def test_labels_lead_and_the_interval_holds_the_error_of_the_judge_on_them(recording):
    calls = [{"tool_name": "a", "input": {"n": n}, "output": "fine"} for n in range(40)]
    path = recording(*calls)
    plain = tables.totals(evaluate(path))
    assert (plain["success_rate"], plain["agreement"]) == (1.0, None)
    labelled = tables.totals(evaluate(path, labels={n: n >= 5 for n in range(20)}))
    assert labelled["success_rate"] == pytest.approx(0.75)  # of 20 labels 5 say that it failed
    assert labelled["interval"] == "sampling, and the judge's error on 20 labels"
    wilson = wilson_interval(30, 40)
    assert labelled["low"] < wilson.low < 0.75 < wilson.high < labelled["high"]
    agreed = labelled["agreement"]
    assert (agreed["agreed"], agreed["judge_worked"], agreed["recall"]) == (15, 5, 0.0)
    assert (agreed["precision"], agreed["kappa"]) == (None, 0.0)
    everything = tables.totals(evaluate(path, labels={n: n >= 10 for n in range(40)}))
    assert (everything["success_rate"], everything["low"]) == pytest.approx((0.75, wilson.low))
    with pytest.raises(RequestError, match="labels: none of the 1 rows is a call of the recording"):
        evaluate(path, labels={99: True})


def test_a_tool_counts_its_labels_and_its_interval_holds_the_corrected_rate(recording):
    calls = [{"tool_name": t, "input": {"n": n}, "output": "ok"} for t in "abc" for n in range(50)]
    right = dict.fromkeys(range(25), True) | dict.fromkeys(range(50, 75), False)
    found = evaluate(recording(*calls), labels=right)  # b is always wrong where somebody looked
    rows = {row.tool_name: row for row in tables.tool_rows(found)}
    assert [(rows[n].success_rate, rows[n].failures) for n in "abc"] == [(1, 0), (0.5, 25), (1, 0)]
    assert rows["b"].low == 0.0  # all of its labels say so
    assert rows["c"].low < 0.5 < rows["a"].low  # by the labels of others, and by its own
    totals = tables.totals(found)
    assert totals["failures"] == 25
    assert totals["uncorrected_success_rate"] == pytest.approx(125 / 150)
    assert totals["success_rate"] == pytest.approx((25 + 100 * 0.5) / 150)


def test_a_misspelled_key_and_a_key_given_twice_are_not_silent(recording):
    call = {"tool_name": "a", "outptu": "Error: x", "success": True, "model": "m"}
    found = evaluate(recording({**call, "metadata": {"model": "n"}}), by="metadata.model")
    assert "1 record has 'outptu', which is no field: did you mean 'output'?" in found.notes
    assert [row.group for row in tables.group_rows(found)] == ["n", "n"]
    assert found.calls[0].call.metadata["model"] == "m"


def test_intervals_of_the_sample_hold_the_share_that_its_own_labels_say():
    paths, schemas = sample()
    found = evaluate(paths, tools=schemas)
    for row in tables.tool_rows(found):
        calls = [each.call for each in found.calls if each.call.tool_name == row.tool_name]
        failed = sum(call.metadata["expected_failure"] for call in calls)
        assert row.low <= 1 - failed / len(calls) <= row.high, row.tool_name


def test_tables_are_data_frames_with_the_types_of_calls_that_are_read(recording):
    path = recording({"tool_name": "search", "output": "x", "conversation_id": "a"})
    found, read = evaluate(path), read_calls(path)
    calls = frame(found, "calls")
    assert list(calls.columns.difference(read.columns)) == ["label", "row", "worked"]
    shared = calls.columns.intersection(read.columns)
    assert calls[shared].dtypes.equals(read[shared].dtypes)
    assert list(frame(found, "errors").columns)[:2] == ["error_class", "tool_name"]


def test_an_interval_holds_the_share_and_narrows_with_more_calls():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    few, many = wilson_interval(9, 10), wilson_interval(900, 1000)
    assert few.low < many.low < 0.9 < many.high < few.high
