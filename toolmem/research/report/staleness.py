"""Staleness: how many judged calls of a tool its guidance does not hold yet, over time.

Read from the run reports: calls arrive with the runs that judge them, and each summary run says how many were new to
the guidance when it looked, and how many are left after it (calls outside the analyzed window, or all of them where
the policy waits). A call that left the kept ones unread goes on waiting until the next summary, which is written
without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolmem.flow.report import RunReport
from toolmem.research.report.recorded import frame
from toolmem.research.report.run_reports import Row, told
from toolmem.research.report.summary import PrintedTable, frame_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Waiting:
    """Calls of one tool that its guidance does not hold, before and after one run."""

    time: datetime  # start of the run
    tool: str
    event: str  # "arrived", or what a summary run did: "summarized", "skipped", "failed"
    before: int
    after: int
    read: int = 0  # calls that the run's summary read for the first time


def waiting(reports: Iterable[RunReport]) -> list[Waiting]:
    """What happened to each tool, oldest first. Runs of one workspace; reports without rows say nothing."""
    counts: dict[str, int] = {}
    return [
        _happened(report, row, counts)
        for report in sorted(reports, key=lambda report: report.started)
        for _, row in told(report)
    ]


def _happened(report: RunReport, row: Row, counts: dict[str, int]) -> Waiting:
    tool = row["tool_name"]
    if row["kind"] == "judged":
        before = counts.get(tool, 0)
        counts[tool] = before + row["calls"]
        return Waiting(report.started, tool, "arrived", before, counts[tool])
    # The run has looked at the record itself: its figures hold whatever was counted here.
    before = row["new_calls"] + row["not_analyzed"] + row.get("dropped", 0)
    action = str(row.get("action", ""))
    written = action == "summarized"
    counts[tool] = row["not_analyzed"] if written else before
    read = row["new_calls"] if written else 0
    return Waiting(report.started, tool, action, before, counts[tool], read)


def waiting_frame(happened: Sequence[Waiting]) -> pd.DataFrame:
    """One row per tool and run, the columns of Waiting."""
    return frame(map(asdict, happened), [each.name for each in fields(Waiting)])


def staleness_frame(happened: Sequence[Waiting]) -> pd.DataFrame:
    """One row per tool, by name.

    Columns: tool, summaries, skips, read (calls that a summary read for the first time), most (calls that waited at
    once, at most), mean (calls that waited when a summary run looked, on average), now (after the last run) and
    last_summary (its time, or none).
    """
    rows = waiting_frame(happened).astype({"before": "int64", "after": "int64", "read": "int64"})
    looked = rows["event"] != "arrived"
    written = rows["event"] == "summarized"
    wide = rows.assign(
        summaries=written,
        skips=rows["event"] == "skipped",
        most=rows[["before", "after"]].max(axis="columns"),
        mean=rows["before"].where(looked),
        now=rows["after"],
        last_summary=rows["time"].where(written),
    )
    how = {"summaries": "sum", "skips": "sum", "read": "sum", "most": "max", "mean": "mean", "now": "last"}
    return wide.groupby("tool").agg({**how, "last_summary": "max"}).fillna({"mean": 0.0}).reset_index()


def staleness(happened: Sequence[Waiting]) -> list[Any]:
    """The rows of `staleness_frame` as named tuples."""
    return [*staleness_frame(happened).itertuples(index=False, name="Staleness")]


def staleness_table(happened: Sequence[Waiting]) -> PrintedTable:
    """One row per tool, as the command prints it."""
    waits = (
        "Waiting: calls that the guidance did not hold when a summary run looked, counted by their order of arrival; "
        "one that left the kept calls unread waits until the next summary."
    )
    reads = "Calls read: those that a summary read, each once. What the others said, no guidance has held."
    names = {
        "read": "calls read",
        "most": "waiting at most",
        "mean": "on average",
        "last_summary": "last summary (UTC)",
    }
    return frame_table("Staleness", staleness_frame(happened).rename(columns=names), (waits, reads), decimals=1)
