"""What skips saved, read from the folder of run reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from toolmem.errors import RequestError
from toolmem.flow.report import OpReport, RunReport
from toolmem.models import Usage
from toolmem.research.report.charges import cost_report, saved_by_skips
from toolmem.research.report.run_reports import read_reports

START = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    for number, (workspace, saved) in enumerate([("team", 3), ("team", 0), ("other", 5), ("team", 2)]):
        usage = Usage(saved_requests=saved, saved_prompt_tokens=100 * saved)
        RunReport(
            flow="summary_tool_memory",
            workspace=workspace,
            started=START + timedelta(hours=number),
            ops=[OpReport(op="summary_tool_memory_op", usage=usage), OpReport(op="another_op")],
        ).save(tmp_path / "reports")
    return tmp_path / "reports"


def test_savings_are_summed_per_workspace_and_group(folder):
    reports, problems = read_reports(folder)
    assert (len(reports), problems) == (4, [])
    report = cost_report([], [each for each in reports if each.workspace == "team"])
    (saved,) = saved_by_skips(report, ["op", "tool"])
    assert saved == {"op": "summary_tool_memory_op", "runs": 2, "saved_requests": 5, "saved_tokens": 500}
    by_day = saved_by_skips(report, ["day"], zone=ZoneInfo("UTC"))
    assert [(each["day"], each["saved_requests"]) for each in by_day] == [("2026-03-01", 3), ("2026-03-02", 2)]
    assert [each["saved_requests"] for each in saved_by_skips(report, ["day"], zone=ZoneInfo("Asia/Shanghai"))] == [5]


def test_a_time_span_picks_runs_by_their_start(folder):
    late, _ = read_reports(folder, since=START + timedelta(hours=1))
    early, _ = read_reports(folder, until=START + timedelta(hours=1))
    assert (len(late), len(early)) == (3, 1)


def test_a_file_that_is_no_report_is_named_and_the_others_are_read(folder):
    (folder / "notes.json").write_text('{"a": 1}')
    reports, problems = read_reports(folder)
    assert len(reports) == 4
    assert "notes.json" in problems[0]


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(RequestError, match="nosuch"):
        read_reports(tmp_path / "nosuch")
