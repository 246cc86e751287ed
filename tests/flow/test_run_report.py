from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from toolmem.errors import Refused
from toolmem.flow.report import OpReport, RunReport
from toolmem.protocols import LedgerEntry

STARTED = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
ENTRY = LedgerEntry(
    time=STARTED,
    workspace="team",
    flow="add",
    op="judge_op",
    tool="search",
    backend="dashscope",
    model="qwen-plus",
    prompt_tokens=800,
    completion_tokens=90,
    cached_tokens=100,
    estimated=False,
    outcome="ok",
    seconds=1.5,
    waited=0.5,
    cost=0.002,
    currency="CNY",
)


def report() -> RunReport:
    return RunReport(
        flow="add", workspace="team", started=STARTED, ops=[OpReport(op="judge_op"), OpReport(op="keep_op")]
    )


def test_booked_requests_are_summed_per_op():
    run = report()
    run.book(ENTRY)
    run.book(replace(ENTRY, op="keep_op", prompt_tokens=1, estimated=True, cost=None))
    run.book(replace(ENTRY, op="embedder"))
    frame = run.to_frame()
    assert list(frame["op"]) == ["judge_op", "keep_op", "embedder"]
    assert list(frame["prompt_tokens"]) == [800, 1, 800]
    assert frame["cost"].isna().tolist() == [False, True, False]
    assert frame["waited"].sum() == 1.5
    assert run.usage.prompt_tokens == 1601
    assert run.usage.cost == pytest.approx(0.004)
    assert run.usage.estimated


def test_costs_in_two_currencies_are_not_added():
    run = report()
    run.book(ENTRY)
    run.book(replace(ENTRY, currency="USD"))
    run.book(ENTRY)
    assert run.usage.cost is None
    assert run.usage.currency == "mixed"


def test_a_report_without_ops_is_still_a_frame():
    frame = RunReport(flow="f", workspace="w", started=STARTED).to_frame()
    assert len(frame) == 0
    assert "prompt_tokens" in frame


def test_a_saved_report_is_read_back_whole(tmp_path):
    run = report()
    run.book(ENTRY)
    run.ops[0].notes.append("跳过 search")
    path = run.save(tmp_path / "reports")
    assert path.name.startswith("20260203T040506-add-")
    again = RunReport.load(path)
    assert again == run
    assert again.entries == [ENTRY]
    assert [file.suffix for file in path.parent.iterdir()] == [".json"]


def test_two_reports_of_one_second_have_two_files(tmp_path):
    assert report().save(tmp_path) != report().save(tmp_path)


def test_a_flow_name_cannot_lead_out_of_the_folder(tmp_path):
    run = RunReport(flow="../../escape", workspace="w", started=STARTED)
    assert run.save(tmp_path / "reports").parent == tmp_path / "reports"


def test_what_is_no_report_is_refused_by_its_name(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"flow": 3}')
    with pytest.raises(Refused, match=r"other\.json: not a run report"):
        RunReport.load(path)
