"""Calls that the guidance does not hold yet, over the runs; and what a single pass over them would take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from toolmem.flow.report import OpReport, RunReport
from toolmem.protocols import LedgerEntry
from toolmem.research.report.charges import cost_report
from toolmem.research.report.single_pass import LineTokens, single_pass, single_pass_table
from toolmem.research.report.staleness import staleness, staleness_frame, staleness_table, waiting, waiting_frame

START = datetime(2026, 3, 1, tzinfo=UTC)


def run(day, *rows):
    flow = "summary_tool_memory" if rows and rows[0]["kind"] == "summary" else "add_tool_call_result"
    ops = [OpReport(op="op", details=list(rows))]
    return RunReport(flow=flow, workspace="team", started=START + timedelta(days=day), ops=ops)


def arrived(calls, tool="search"):
    return {"kind": "judged", "tool_name": tool, "calls": calls, "reused": 0, "duplicates": 0}


def looked(action, new, outside=0, tool="search", policy="smart_skip", tokens=1000, dropped=0):
    counts = {"new_calls": new, "not_analyzed": outside, "dropped": dropped, "prompt_tokens": tokens}
    return {"kind": "summary", "tool_name": tool, "policy": policy, "action": action, "model": "m", **counts}


def sent(prompt):
    names = {"workspace": "team", "flow": "f", "op": "op", "tool": "search", "backend": "dashscope", "model": "m"}
    counts = {"prompt_tokens": prompt, "completion_tokens": 50, "cached_tokens": 0, "estimated": False}
    return LedgerEntry(time=START, outcome="ok", seconds=1.0, **names, **counts)


def test_calls_wait_from_their_arrival_to_the_summary_that_reads_them():
    runs = [run(0, arrived(4)), run(1, looked("skipped", 4)), run(2, arrived(8)), run(3, looked("summarized", 12))]
    happened = waiting(reversed(runs))
    assert [(each.event, each.before, each.after) for each in happened] == [
        ("arrived", 0, 4),
        ("skipped", 4, 4),
        ("arrived", 4, 12),
        ("summarized", 12, 0),
    ]
    (fresh,) = staleness(happened)
    assert (fresh.most, fresh.mean, fresh.now, fresh.summaries, fresh.skips) == (12, 8.0, 0, 1, 1)
    assert fresh.last_summary == START + timedelta(days=3)


def test_calls_outside_the_window_stay_out_of_the_guidance():
    (fresh,) = staleness(waiting([run(0, arrived(50)), run(1, looked("summarized", 30, outside=20))]))
    assert (fresh.most, fresh.now) == (50, 20)


def test_calls_that_were_dropped_unread_wait_until_the_next_summary_and_are_never_read():
    dropped = [looked("skipped", 30, outside=70, dropped=856), looked("summarized", 30, outside=70, dropped=856)]
    (fresh,) = staleness(waiting([run(0, arrived(956)), run(1, dropped[0]), run(2, dropped[1])]))
    assert (fresh.most, fresh.mean, fresh.now, fresh.read) == (956, 956.0, 70, 30)


def test_a_failed_summary_leaves_its_calls_waiting():
    (fresh,) = staleness(waiting([run(0, looked("failed", 7))]))
    assert (fresh.now, fresh.summaries) == (7, 0)


def test_a_run_that_looked_at_the_record_knows_better_than_the_sum_of_arrivals():
    happened = waiting([run(0, arrived(90)), run(1, looked("skipped", 60))])  # 30 were judged elsewhere, or taken out
    assert happened[-1].after == 60


def test_tools_have_a_row_each_in_frames_and_tables():
    happened = waiting(
        [run(0, arrived(2), arrived(3, "b")), run(1, looked("summarized", 2), looked("skipped", 3, tool="b"))]
    )
    assert list(staleness_frame(happened)["tool"]) == ["b", "search"]
    assert len(waiting_frame(happened)) == 4
    table = staleness_table(happened)
    assert [row[0] for row in table.rows] == ["b", "search"]
    assert table.rows[1][1:5] == ("1", "0", "2", "2")
    assert "waits until the next summary" in table.notes[0]
    assert staleness_frame([]).empty


def test_the_bound_scales_the_kept_lines_to_all_calls_and_says_so():
    line = LineTokens("search", counted=100, tokens=15_000, calls=1000)
    assert (line.bound, line.estimated) == (150_000, True)
    assert LineTokens("x", 3, 40, 3).bound == 40
    assert LineTokens("x", 0, 0, 5).bound == 0


def test_what_was_spent_stands_beside_the_bound():
    report = run(0, looked("summarized", 5))
    report.entries.append(sent(prompt=750))
    bill = cost_report([], [report], kinds={"op": "summarizing"})
    rows = single_pass(bill, [LineTokens("search", 5, 500, 5), LineTokens("other", 0, 0, 0)])
    assert list(rows["tool"]) == ["other", "search"]
    assert rows["ratio"].isna().tolist() == [True, False]
    assert (rows["ratio"][1], rows["summaries"][1]) == (1.5, 1)
    assert list(single_pass(cost_report(), [LineTokens("a", 1, 9, 1)])["ratio"]) == [0.0]
    assert single_pass(bill, []).empty
    table = single_pass_table(single_pass(bill, [LineTokens("search", 5, 500, 10)]))
    assert table.rows == (("search", "10", "1", "750", "1,000", "0.75"),)
    assert any(note.startswith("An estimate where calls are no longer kept") for note in table.notes)
