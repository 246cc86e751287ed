"""A workspace of one store is copied to another. A copy that is repeated adds nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from toolmem.errors import Conflict
from toolmem.models.calls import ToolCallResult
from toolmem.models.protocols import Store
from toolmem.models.tools import CallFailure, Window
from toolmem.store.changes import KEEP_ALL

PAGE = 1000  # calls read at once


class Copied(Struct):
    """What a copy did, and how both stores compare after it."""

    tools: int = 0
    calls: int = 0  # added
    duplicates: int = 0  # calls that were there already
    records: int = 0  # added
    kept: int = 0  # records that were there already, and stay as they are
    failures: list[CallFailure] = []
    lacking: list[str] = []  # tools and namespaces of which the copy holds less


def copy_workspace(
    source: Store, target: Store, workspace: str, on_tool: Callable[[int, int], None] | None = None
) -> Copied:
    """Calls, guidance and records. `on_tool` is told how many tools of how many are done."""
    done = Copied()
    there = set(target.tool_names(workspace))
    names = source.tool_names(workspace)
    for name in names:
        for window in source.windows(workspace, [name]):
            kept = {call.id for call in window.calls}
            older = [call for call in _logged(source, workspace, name) if call.id not in kept]
            keep = KEEP_ALL if name in there else max(window.record.kept, 1)
            whole = Window(window.record, [*older, *window.calls])
            appended = target.merge(workspace, whole, keep)
            done.calls += appended.stored
            done.duplicates += len(appended.duplicates)
            done.failures += appended.failures
            copies = target.records(workspace, [name], guidance=False)
            if sum(copy.kept for copy in copies) < window.record.kept:
                done.lacking.append(name)
        done.tools += 1
        if on_tool is not None:
            on_tool(done.tools, len(names))
    for namespace in source.namespaces(workspace, hidden=True):
        _copy_records(source, target, workspace, namespace, done)
    return done


def _logged(store: Store, workspace: str, tool: str) -> Iterator[ToolCallResult]:
    after = 0
    while page := store.call_log(workspace, tool=tool, after=after, limit=PAGE):
        yield from (each.call for each in page)
        after = page[-1].position


def _copy_records(
    source: Store, target: Store, workspace: str, namespace: str, done: Copied
) -> None:
    found = source.list_records(workspace, namespace)
    documents = source.documents(workspace, namespace, [each.key for each in found])
    for record in found:
        place, document = (workspace, namespace, record.key), documents.get(record.key)
        try:
            target.put(*place, record.value, document=document, expected_version=0)
            done.records += 1
        except Conflict:
            done.kept += 1
    if len(target.list_records(workspace, namespace)) < len(found):
        done.lacking.append(namespace)
