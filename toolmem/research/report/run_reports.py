"""Run reports, as the folder that `--reports` fills holds them: what was done with each tool."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from toolmem.errors import Refused, RequestError
from toolmem.flow.report import RunReport

Row = Mapping[str, Any]
_COUNTS = {
    "summary": ("new_calls", "not_analyzed", "prompt_tokens"),
    "judged": ("calls", "reused", "duplicates"),
}


def read_reports(
    folder: str | Path, *, since: datetime | None = None, until: datetime | None = None
) -> tuple[list[RunReport], list[str]]:
    """(the runs of all workspaces that started in this time, oldest first; files that are no run reports, and why).

    `since` (included) and `until` (not) are aware. Raises RequestError where there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RequestError(f"reports: there is no folder {folder}", field="reports")
    reports, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            report = RunReport.load(path)
        except Refused as error:
            problems.append(str(error))
            continue
        if (since is None or report.started >= since) and (until is None or report.started < until):
            reports.append(report)
    return sorted(reports, key=lambda report: report.started), problems


def told(report: RunReport) -> list[tuple[str, Row]]:
    """What was done with each tool: (op, row) of a report. Rows of other ops, and damaged ones, are not among them.

    A row of kind "summary" has `tool_name`, `policy`, `action`, `reason`, `model` and the counts `new_calls`,
    `not_analyzed`, `dropped` and `prompt_tokens`; one of kind "judged" `tool_name`,
    `asks_model`, `model` and the counts `calls`, `reused` and `duplicates`.
    """
    return [(op.op, row) for op in report.ops for row in op.details if _is_whole(row)]


def _is_whole(row: Row) -> bool:
    counts = _COUNTS.get(str(row.get("kind")))
    if counts is None or not isinstance(row.get("tool_name"), str):
        return False
    return all(type(row.get(n)) is int for n in counts) and type(row.get("dropped", 0)) is int
