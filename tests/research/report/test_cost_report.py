"""The cost report: each request once, what was avoided beside it, and which requests are estimated."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config.settings import Price
from toolmem.errors import RequestError
from toolmem.flow.report import OpReport, RunReport
from toolmem.models import Usage
from toolmem.protocols import LedgerEntry
from toolmem.providers.prices import PriceTable
from toolmem.research.report.charges import (
    ASSUMED_REPLY,
    GROUPS,
    charges_frame,
    cost_frame,
    cost_report,
    cost_sums,
    cost_table,
    notes,
)

START = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)
PRICES = PriceTable(
    {"m": Price(input=1.0, output=10.0, cached_input=0.2, batch_input=0.5, batch_output=5.0, currency="CNY")}
)
JUDGE_OP, SUMMARY_OP = "parse_tool_call_result_op", "summary_tool_memory_op"


def entry(minute=0, op=SUMMARY_OP, tool="search", prompt=1000, out=100, cached=0, outcome="ok", **more):
    cost, currency = PRICES("m", prompt, out, cached)
    given_ = {"backend": "dashscope", "model": "m", "estimated": False, "cost": cost, "currency": currency, **more}
    return LedgerEntry(
        time=START + timedelta(minutes=minute),
        workspace="team",
        flow="f",
        op=op,
        tool=tool,
        prompt_tokens=prompt,
        completion_tokens=out,
        cached_tokens=cached,
        outcome=outcome,
        seconds=1.0,
        **given_,
    )


def summary_row(tool="search", action="summarized", policy="smart_skip", **more):
    row = {"reason": "", "new_calls": 1, "not_analyzed": 0, "prompt_tokens": 1000, "model": "m"}
    return {"kind": "summary", "tool_name": tool, "policy": policy, "action": action, **row, **more}


def judged_row(tool="search", reused=0, duplicates=0, asks_model=True):
    counts = {"calls": 1, "evaluated": 1, "reused": reused, "duplicates": duplicates}
    return {"kind": "judged", "tool_name": tool, "asks_model": asks_model, "model": "m", **counts}


def report(minute=0, rows=(), entries=(), op=SUMMARY_OP, **usage):
    return RunReport(
        flow="summary_tool_memory",
        workspace="team",
        started=START + timedelta(minutes=minute),
        ops=[OpReport(op=op, details=list(rows), usage=Usage(**usage))],
        entries=list(entries),
    )


def total(bill):
    (row,) = cost_sums(bill, [])
    return row


def test_a_request_that_the_ledger_and_a_report_hold_counts_once():
    booked = entry()
    bill = cost_report([booked], [report(rows=[summary_row()], entries=[booked])], prices=PRICES)
    (charge,) = bill.charges
    assert (charge.kind, charge.tool) == ("summarizing", "search")
    assert (charge.requests, charge.not_sent, charge.estimated, charge.avoided_requests) == (1, 0, 0, 0)
    assert charge.cost == pytest.approx(1.0 + 1.0)


def test_two_equal_requests_count_twice_where_a_report_holds_one_of_them():
    booked = entry()
    bill = cost_report([booked, booked], [report(rows=[summary_row()], entries=[booked])], prices=PRICES)
    assert total(bill).requests == 2


def test_a_skip_avoids_the_prompt_of_its_window_and_an_estimated_reply():
    bill = cost_report([], [report(rows=[summary_row(action="skipped", prompt_tokens=4000)])], prices=PRICES)
    row = total(bill)
    assert (row.requests, row.avoided_requests, row.avoided_input_tokens) == (0, 1, 4000)
    assert row.avoided_output_tokens == ASSUMED_REPLY["summarizing"]
    assert row.avoided_cost == pytest.approx(4.0 + ASSUMED_REPLY["summarizing"] * 10 / 1000)


def test_a_skip_of_guidance_that_no_prompt_was_counted_for_avoids_nothing():
    bill = cost_report([], [report(rows=[summary_row(action="skipped", prompt_tokens=0)])])
    assert bill.charges == ()


def test_the_length_of_an_unseen_reply_is_the_mean_of_the_booked_ones():
    sent = [entry(out=200), entry(minute=1, out=400)]
    bill = cost_report(sent, [report(rows=[summary_row(action="skipped")])], prices=PRICES)
    assert bill.replies["summarizing"] == 300
    assert total(bill).avoided_output_tokens == 300
    assert any("the mean of 2 booked replies" in note for note in notes(bill))


def test_failed_requests_are_spent_and_their_replies_are_no_measure():
    bill = cost_report([entry(out=0, outcome="error: ModelOverloaded")], [], prices=PRICES)
    assert total(bill).requests == 1
    assert bill.replies_seen["summarizing"] == 0


def test_a_counted_prompt_gets_an_estimated_reply_in_its_price():
    counted = entry(out=0, outcome="not_sent", estimated=True, cost=1.0)
    row = total(cost_report([], [report(rows=[summary_row()], entries=[counted])], prices=PRICES))
    assert (row.requests, row.not_sent) == (1, 1)
    assert row.estimated == 1
    assert row.cost == pytest.approx(1.0 + ASSUMED_REPLY["summarizing"] / 100)


def test_reused_verdicts_and_calls_sent_twice_avoid_requests_of_the_mean_length():
    asked = [entry(op=JUDGE_OP, prompt=300, out=50), entry(minute=1, op=JUDGE_OP, prompt=500, out=50)]
    rows = [judged_row(reused=2, duplicates=1), judged_row(tool="free", reused=9, asks_model=False)]
    bill = cost_report(asked, [report(rows=rows, op=JUDGE_OP)], prices=PRICES)
    row = total(bill)
    assert (row.avoided_requests, row.avoided_input_tokens) == (3, 1200)
    assert {charge.kind for charge in bill.charges} == {"judging"}


def test_a_report_tells_what_an_op_of_any_name_does():
    booked = entry(op="my_summaries")
    bill = cost_report([booked], [report(rows=[summary_row()], op="my_summaries")])
    assert bill.charges[0].kind == "summarizing"
    assert cost_report([booked]).charges[0].kind == "other"
    assert cost_report([booked], kinds={"my_summaries": "judging"}).charges[0].kind == "judging"


def test_a_report_without_rows_still_tells_what_was_saved():
    bill = cost_report([], [report(saved_requests=3, saved_prompt_tokens=900)])
    assert (total(bill).avoided_requests, total(bill).avoided_input_tokens) == (3, 900)


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "summary"},
        {"kind": "painted", "tool_name": "a"},
        summary_row(prompt_tokens="many"),
        summary_row(tool=7),
    ],
)
def test_rows_of_other_ops_and_damaged_ones_are_passed_over(row):
    assert cost_report([], [report(rows=[{**row, "action": "skipped"}])]).charges == ()


def test_a_cached_prefix_is_cheaper_and_a_batch_knows_no_cache():
    row = total(cost_report([entry(prompt=1000, cached=800, out=100)], [], prices=PRICES))
    assert row.cost == pytest.approx(0.2 + 0.8 * 0.2 + 1.0)
    assert row.uncached_cost == pytest.approx(1.0 + 1.0)
    assert row.batch_cost == pytest.approx(0.5 + 0.5)


def test_requests_without_a_price_are_counted_and_shown_by_a_dash():
    bill = cost_report([entry(model="other", cost=None, currency="")], [], prices=PRICES)
    row = total(bill)
    assert (row.cost, row.currency, row.requests) == (None, "", 1)
    table = cost_table(bill, ["tool"])
    assert dict(zip(table.columns, table.rows[0], strict=True))["cost"] == "–"
    assert math.isnan(cost_frame(bill, ["tool"])["cost"][0])


def test_the_table_counts_estimated_requests_and_ends_with_the_total():
    counted = entry(out=0, outcome="not_sent", estimated=True)
    table = cost_table(cost_report([entry(tool="a")], [report(entries=[counted])], prices=PRICES), ["tool"])
    stated, guessed, whole = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (stated["estimated"], guessed["estimated"]) == ("0", "1")
    assert (guessed["input"], guessed["output"], guessed["cost"]) == ("1,000", "100", "2.0000")
    assert (whole["tool"], whole["input"], whole["currency"]) == ("total", "2,000", "CNY")
    assert any("the mean of 1 booked reply" in note for note in table.notes)


def test_days_are_those_of_the_zone_and_unknown_columns_are_refused():
    bill = cost_report([entry()], [])
    assert [row.day for row in cost_sums(bill, ["day"])] == ["2026-03-01"]
    assert [row.day for row in cost_sums(bill, ["day"], zone=ZoneInfo("Asia/Shanghai"))] == ["2026-03-02"]
    with pytest.raises(RequestError, match="polcy"):
        cost_sums(bill, ["polcy"])


entries = st.builds(
    entry,
    minute=st.integers(0, 5000),
    op=st.sampled_from([JUDGE_OP, SUMMARY_OP, "embedding"]),
    tool=st.sampled_from(["a", "b", "c"]),
    prompt=st.integers(0, 5000),
    out=st.integers(0, 500),
    outcome=st.sampled_from(["ok", "error: X", "not_sent"]),
)
rows = st.builds(
    summary_row,
    tool=st.sampled_from(["a", "b"]),
    action=st.sampled_from(["summarized", "skipped"]),
    policy=st.sampled_from(["smart_skip", "incremental"]),
    prompt_tokens=st.integers(0, 5000),
)


@given(st.lists(entries), st.lists(rows), st.lists(entries, max_size=5), st.sets(st.sampled_from(GROUPS), max_size=3))
def test_however_the_bill_is_grouped_its_sums_are_the_same(booked, told, shared, by):
    bill = cost_report([*booked, *shared], [report(rows=told, entries=shared)], prices=PRICES)
    assert sum(charge.requests for charge in bill.charges) == len(booked) + len(shared)
    whole, parts = cost_sums(bill, []), cost_sums(bill, sorted(by))
    for name in ("requests", "not_sent", "input_tokens", "output_tokens", "avoided_requests", "avoided_input_tokens"):
        assert sum(getattr(part, name) for part in parts) == sum(getattr(row, name) for row in whole)
    for name in ("cost", "batch_cost", "avoided_cost"):
        one, other = (sum(getattr(each, name) or 0.0 for each in sums) for sums in (parts, whole))
        assert one == pytest.approx(other)
    frame = cost_frame(bill, sorted(by))
    assert frame["requests"].sum() == sum(row.requests for row in whole)
    assert len(charges_frame(bill)) == len(bill.charges)
