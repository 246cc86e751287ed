"""VectorStoreActionOp: copy, delete, dump, load and list the tool memories of a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from toolmem.config.names import hint
from toolmem.errors import StoreError, wrong
from toolmem.flow.op import Context, Op, register
from toolmem.flow.runner import WORKSPACE_PATTERN
from toolmem.formats.dump import dump_line, read_dump, write_dump
from toolmem.guidance.shown import statistics, tool_memory
from toolmem.models.calls import ToolCallResult, with_all_fields
from toolmem.models.protocols import Store
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX
from toolmem.models.tools import CallFailure, Window
from toolmem.rules.store import GUARDED
from toolmem.store.changes import KEEP_ALL
from toolmem.text.display import counted

ACTIONS = ("copy", "delete", "delete_ids", "delete_workspace", "dump", "load", "list")
MAX_PATH = 200  # bytes

Windows = Iterable[Window[ToolCallResult]]


@register
class VectorStoreActionOp(Op):
    """Copy, delete, dump, load or list the tool memories of a workspace, as `action` says.

    `dump` and `load` take a `path` inside `dump_dir`: a file that ends in .jsonl, or a folder with
    the file `<workspace_id>.jsonl`. `load` checks the whole file before it changes anything. It
    adds to the tool memories of the workspace; with `replace` it deletes these first. `copy` adds
    those of `src_workspace_id`. `list` returns the tool memories with their calls. `delete` deletes
    them, `delete_ids` those in `memory_ids`. `delete_workspace` deletes everything; `confirm` must
    be the name of the workspace.
    """

    reads = ("workspace", "action")
    optional = ("path", "src_workspace_id", "memory_ids", "confirm", "replace")

    def run(self, context: Context) -> None:
        action = context["action"]
        if action not in ACTIONS:
            raise wrong("action", f"unknown {action!r} ({hint(str(action), ACTIONS)})")
        getattr(self, f"_{action}")(context, context.services.store(self.settings))

    def _copy(self, context: Context, store: Store) -> None:
        source = context.get("src_workspace_id")
        if not isinstance(source, str) or not WORKSPACE_PATTERN.fullmatch(source):
            raise wrong("src_workspace_id", "expected the name of a workspace")
        if source == context.workspace:
            raise wrong("src_workspace_id", "is the workspace itself; name another one")
        if names := store.tool_names(source):
            self._merge(context, store, _windows(store, source), len(names), "copied", source)
        else:
            _respond_not_found(context, source)

    def _delete(self, context: Context, store: Store) -> None:
        _respond_deleted(context, store.delete_tools(context.workspace), [])
        kept = store.list_records(context.workspace, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
        context.response.metadata["rules_kept"] = len(kept)
        context.response.answer += f"; {counted(len(kept), 'rule')} kept" if kept else ""

    def _delete_ids(self, context: Context, store: Store) -> None:
        ids = context.get("memory_ids")
        if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
            raise wrong("memory_ids", "expected a list of memory ids")
        records = store.records(context.workspace, guidance=False)
        tools = {record.memory_id: record.tool_name for record in records}
        found = [tools[each] for each in ids if each in tools]
        deleted = store.delete_tools(context.workspace, found)
        _respond_deleted(context, deleted, [each for each in ids if each not in tools])

    def _delete_workspace(self, context: Context, store: Store) -> None:
        name = context.workspace
        if context.get("confirm") != name:
            raise wrong("confirm", f"expected {name!r}, as everything in it is deleted")
        if store.get(*GUARDED) is not None:
            problem = "the store is guarded: only the user may delete its rules, one by one"
            raise wrong("action", problem)
        count = store.delete_workspace(name)
        answer = f"Deleted workspace {name}: {counted(count, 'tool memory')} and all records"
        _respond(context, answer, deleted=count)

    def _dump(self, context: Context, store: Store) -> None:
        if not store.tool_names(context.workspace):
            return _respond_not_found(context, context.workspace)
        path = _path_of(context)
        lines = (
            dump_line(window, statistics(window.record.window).avg_score)
            for window in _windows(store, context.workspace)
        )
        try:
            count = write_dump(path, lines)
        except OSError as error:
            raise StoreError(f"{path.name}: cannot be written ({error.strerror})") from error
        shown = _shown(path, context)
        answer = f"Dumped {counted(count, 'tool memory')} to {shown}"
        _respond(context, answer, path=shown, dumped=count)

    def _load(self, context: Context, store: Store) -> None:
        path = _path_of(context)
        if not path.is_file():
            raise wrong("path", f"there is no dump {_shown(path, context)}")
        read = read_dump(path, context.workspace, context.services.clock.now())
        context.response.metadata["passed_over"] = read.passed_over
        with store.transaction():
            if context.get("replace"):
                deleted = store.delete_tools(context.workspace)
                context.response.metadata["replaced"] = len(deleted)
            self._merge(context, store, read.windows, len(read.windows), "loaded", path.name)

    def _list(self, context: Context, store: Store) -> None:
        memories = [
            with_all_fields(tool_memory(window.record, window.calls))
            for window in _windows(store, context.workspace)
        ]
        answer = f"{counted(len(memories), 'tool memory')} in workspace {context.workspace}"
        _respond(context, answer, memory_list=memories)

    @staticmethod
    def _merge(
        context: Context, store: Store, windows: Windows, count: int, done: str, source: str
    ) -> None:
        added = 0
        duplicates = 0
        failures: list[CallFailure] = []
        for number, window in enumerate(windows, 1):
            appended = store.merge(context.workspace, window, KEEP_ALL)
            added += appended.stored
            duplicates += len(appended.duplicates)
            failures += appended.failures
            context.progress(number, count, done)
        answer = f"{done.capitalize()} {counted(count, 'tool memory')} from {source}: "
        answer += f"{counted(added, 'call')} added, {duplicates} there already"
        metadata = {
            done: count,
            "calls_added": added,
            "duplicates": duplicates,
            "failures": [msgspec.to_builtins(each) for each in failures],
            "partial": bool(failures),
        }
        _respond(context, answer + _count(failures, "failed"), not failures, **metadata)


def _windows(store: Store, workspace: str) -> Iterator[Window[ToolCallResult]]:
    """Read tool by tool, so that a large workspace is never in memory as a whole."""
    for name in store.tool_names(workspace):
        yield from store.windows(workspace, [name])


def _respond(context: Context, answer: str, success: bool = True, **metadata: Any) -> None:
    context.response.answer = answer
    context.response.success = success
    context.response.metadata |= metadata


def _respond_not_found(context: Context, workspace: str) -> None:
    _respond(context, f"Workspace {workspace} holds no tool memories", False, not_found=[workspace])


def _respond_deleted(context: Context, deleted: list[str], missing: list[str]) -> None:
    answer = f"Deleted {counted(len(deleted), 'tool memory')}" + _count(missing, "not found")
    metadata = {"deleted": len(deleted), "not_found": missing, "partial": bool(missing and deleted)}
    _respond(context, answer, not missing, **metadata)


def _count(found: Sequence[Any], what: str) -> str:
    return f", {len(found)} {what}" if found else ""


def _path_of(context: Context) -> Path:
    """The file that `path` names. Raises RequestError where it, or a link, leaves `dump_dir`."""
    configured = context.services.settings.dump_dir
    given = context.get("path") or ""
    if not isinstance(given, str) or len(given.encode("utf-8", "replace")) > MAX_PATH:
        raise wrong("path", f"expected text of up to {MAX_PATH} bytes")
    folder = Path(configured).resolve()
    try:
        path = (folder / PurePath(given)).resolve()
        file = path if path.suffix == ".jsonl" else path / f"{context.workspace}.jsonl"
        is_inside = path.is_relative_to(folder) and file.resolve().is_relative_to(folder)
    except (ValueError, OSError):  # a zero byte, links in a circle
        raise wrong("path", "expected the name of a file or folder") from None
    if not is_inside:
        raise wrong("path", f"{given!r} lies outside of dump_dir, which is {configured!r}")
    return file


def _shown(path: Path, context: Context) -> str:
    """The path with `dump_dir` as it is configured."""
    configured = Path(context.services.settings.dump_dir)
    return str(configured / path.relative_to(configured.resolve()))
