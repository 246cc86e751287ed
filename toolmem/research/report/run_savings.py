"""What skips saved over several runs, from the folder that `--reports` fills: a skip writes nothing to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from toolmem.errors import Refused, RequestError
from toolmem.flow.report import RunReport

GROUPS = ("workspace", "flow", "op", "day")  # what a run report knows of a skip


@dataclass(slots=True)
class Saved:
    """What was not sent because it was not needed. `group`: the columns that were asked for, and their values."""

    group: dict[str, str]
    runs: int = 0  # that saved something
    requests: int = 0
    prompt_tokens: int = 0  # of the guidance's window, as its last summary counted them

    def row(self) -> dict[str, Any]:
        """One flat row, for a table or JSON."""
        return {**self.group, "runs": self.runs, "saved_requests": self.requests, "saved_tokens": self.prompt_tokens}


def read_reports(
    folder: str | Path, *, workspace: str, since: datetime | None = None, until: datetime | None = None
) -> tuple[list[RunReport], list[str]]:
    """(the workspace's runs that started in this time, oldest first; files that are no run reports, with the reason).

    `since` (included) and `until` (not) are aware. Raises RequestError where there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RequestError(f"reports: there is no folder {folder}", field="reports")
    reports, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            reports.append(RunReport.load(path))
        except Refused as error:
            problems.append(str(error))
    wanted = [
        report
        for report in reports
        if report.workspace == workspace
        and (since is None or report.started >= since)
        and (until is None or report.started < until)
    ]
    return sorted(wanted, key=lambda report: report.started), problems


def reported_workspaces(folder: Path) -> list[str]:
    """The workspaces whose runs are reported there, sorted."""
    names = set()
    for path in folder.glob("*.json"):
        try:
            names.add(RunReport.load(path).workspace)
        except Refused:
            continue  # `read_reports` names it
    return sorted(names)


def sum_savings(reports: Sequence[RunReport], by: Sequence[str] = (), *, zone: tzinfo | None = None) -> list[Saved]:
    """One sum per group, sorted; runs that saved nothing are left out. `by`: names that are not in GROUPS are passed
    over, since a report does not tell them apart. Days are those of `zone` (default UTC)."""
    names = [name for name in by if name in GROUPS]
    sums: dict[tuple[str, ...], Saved] = {}
    for report in reports:
        moment = report.started if zone is None else report.started.astimezone(zone)
        for op in report.ops:
            if not op.usage.saved_requests:
                continue
            values = {"workspace": report.workspace, "flow": report.flow, "op": op.op, "day": moment.date().isoformat()}
            group = {name: values[name] for name in names}
            saved = sums.setdefault(tuple(group.values()), Saved(group))
            saved.runs += 1
            saved.requests += op.usage.saved_requests
            saved.prompt_tokens += op.usage.saved_prompt_tokens
    return [sums[key] for key in sorted(sums)]
