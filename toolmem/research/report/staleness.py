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
from typing import TYPE_CHECKING

from toolmem.flow.report import RunReport
from toolmem.pages.numbers import UNKNOWN, count
from toolmem.research.report.recorded import frame
from toolmem.research.report.run_reports import Row, run_name, told
from toolmem.research.report.summary import PrintedTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Waiting:
    """Calls of one tool that its guidance does not hold, before and after one run."""

    time: datetime  # start of the run
    run: str
    tool: str
    policy: str  # of a summary run; "" where calls arrived
    event: str  # "arrived", or what a summary run did: "summarized", "skipped", "failed"
    before: int
    after: int
    read: int = 0  # calls that the run's summary read for the first time


@dataclass(frozen=True, slots=True)
class Staleness:
    """One tool over all runs."""

    tool: str
    policies: tuple[str, ...]
    summaries: int
    skips: int
    read: int  # calls that a summary read for the first time
    most: int  # calls that waited at once, at most
    mean: float  # calls that waited when a summary run looked, on average
    now: int  # after the last run
    last_summary: datetime | None


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
    name = run_name(report)
    if row["kind"] == "judged":
        before = counts.get(tool, 0)
        counts[tool] = before + row["calls"]
        return Waiting(report.started, name, tool, "", "arrived", before, counts[tool])
    # The run has looked at the record itself: its figures hold whatever was counted here.
    before = row["new_calls"] + row["not_analyzed"] + row.get("dropped", 0)
    action = str(row.get("action", ""))
    written = action == "summarized"
    counts[tool] = row["not_analyzed"] if written else before
    read = row["new_calls"] if written else 0
    return Waiting(report.started, name, tool, str(row.get("policy", "")), action, before, counts[tool], read)


def staleness(happened: Sequence[Waiting]) -> list[Staleness]:
    """One row per tool, by name."""
    by_tool: dict[str, list[Waiting]] = {}
    for each in happened:
        by_tool.setdefault(each.tool, []).append(each)
    return [_of_tool(tool, by_tool[tool]) for tool in sorted(by_tool)]


def _of_tool(tool: str, happened: Sequence[Waiting]) -> Staleness:
    looked = [each for each in happened if each.event != "arrived"]
    written = [each.time for each in looked if each.event == "summarized"]
    return Staleness(
        tool,
        tuple(dict.fromkeys(each.policy for each in looked if each.policy)),
        len(written),
        sum(each.event == "skipped" for each in looked),
        sum(each.read for each in looked),
        max(max(each.before, each.after) for each in happened),
        sum(each.before for each in looked) / len(looked) if looked else 0.0,
        happened[-1].after,
        max(written, default=None),
    )


def waiting_frame(happened: Sequence[Waiting]) -> pd.DataFrame:
    """One row per tool and run, the columns of Waiting."""
    return frame(map(asdict, happened), [each.name for each in fields(Waiting)])


def staleness_frame(happened: Sequence[Waiting]) -> pd.DataFrame:
    """One row per tool, the columns of Staleness; policies as one text."""
    rows = [asdict(each) | {"policies": ", ".join(each.policies)} for each in staleness(happened)]
    return frame(rows, [each.name for each in fields(Staleness)])


def staleness_table(happened: Sequence[Waiting]) -> PrintedTable:
    """One row per tool, as the command prints it."""
    figures = ("summaries", "skips", "calls read", "waiting at most", "on average", "now")
    rows = tuple(
        (
            each.tool,
            ", ".join(each.policies) or UNKNOWN,
            count(each.summaries),
            count(each.skips),
            count(each.read),
            count(each.most),
            f"{each.mean:.1f}",
            count(each.now),
            UNKNOWN if each.last_summary is None else f"{each.last_summary:%Y-%m-%d %H:%M}",
        )
        for each in staleness(happened)
    )
    waits = (
        "Waiting: calls that the guidance did not hold when a summary run looked, counted by their order of arrival; "
        "one that left the kept calls unread waits until the next summary."
    )
    reads = "Calls read: those that a summary read, each once. What the others said, no guidance has held."
    columns = ("tool", "policy", *figures, "last summary (UTC)")
    return PrintedTable("Staleness", columns, rows, frozenset(figures), (waits, reads))
