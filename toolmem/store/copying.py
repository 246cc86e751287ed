"""Copy a workspace from one store to another. A repeated copy adds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from toolmem.errors import Conflict
from toolmem.models.protocols import Store
from toolmem.models.tools import CallFailure, LoggedCall, Window
from toolmem.store.changes import KEEP_ALL

PAGE = 1000  # calls read at once


class CopyReport(Struct):
    """What a copy added to the target, and what the target still lacks."""

    tools: int = 0
    calls: int = 0  # added
    duplicates: int = 0  # calls that the target had already
    records: int = 0  # added
    kept: int = 0  # records that the target had already; they stay unchanged
    failures: list[CallFailure] = []
    lacking: list[str] = []  # tools and namespaces of which the target holds less


def copy_workspace(
    source: Store, target: Store, workspace: str, on_tool: Callable[[int, int], None] | None = None
) -> CopyReport:
    """Copy calls, guidance and records. `on_tool(done, total)` is called after each tool."""
    report = CopyReport()
    existing = set(target.tool_names(workspace))
    names = source.tool_names(workspace)
    for name in names:
        for window in source.windows(workspace, [name]):
            kept = {call.id for call in window.calls}
            logged = (each.call for each in logged_calls(source, workspace, name))
            older = [call for call in logged if call.id not in kept]
            keep = KEEP_ALL if name in existing else max(window.record.kept, 1)
            whole = Window(window.record, [*older, *window.calls])
            appended = target.merge(workspace, whole, keep)
            report.calls += appended.stored
            report.duplicates += len(appended.duplicates)
            report.failures += appended.failures
            copies = target.records(workspace, [name], guidance=False)
            if sum(copy.kept for copy in copies) < window.record.kept:
                report.lacking.append(name)
        report.tools += 1
        if on_tool is not None:
            on_tool(report.tools, len(names))
    for namespace in source.namespaces(workspace, hidden=True):
        _copy_records(source, target, workspace, namespace, report)
    return report


def logged_calls(
    store: Store, workspace: str, tool_name: str | None = None, *, after: int = 0
) -> Iterator[LoggedCall]:
    """Yield the calls of the log after position `after`, oldest first; by default of all tools."""
    while page := store.call_log(workspace, tool_names=tool_name, after=after, limit=PAGE):
        yield from page
        after = page[-1].position


def _copy_records(
    source: Store, target: Store, workspace: str, namespace: str, report: CopyReport
) -> None:
    records = source.list_records(workspace, namespace)
    documents = source.documents(workspace, namespace, [each.key for each in records])
    for record in records:
        place = (workspace, namespace, record.key)
        document = documents.get(record.key)
        try:
            target.put(*place, record.value, document=document, expected_version=0)
            report.records += 1
        except Conflict:
            report.kept += 1
    if len(target.list_records(workspace, namespace)) < len(records):
        report.lacking.append(namespace)
