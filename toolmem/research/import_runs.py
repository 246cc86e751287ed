"""What a store remembers of each import, so that it can be listed; and take one back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b

import msgspec
from msgspec import Struct

from toolmem.config.sections import OpSection
from toolmem.errors import RequestError, StoreUnavailable
from toolmem.formats.catalogue import BY_NAME
from toolmem.formats.shapes import MAPPED
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import IMPORT_ID, IMPORT_RUNS, ToolCallResult, Verdict
from toolmem.models.protocols import Store
from toolmem.models.tools import CallSums
from toolmem.store.changes import OUT_OF_DATE
from toolmem.store.copying import logged_calls
from toolmem.store.sqlite import SqliteStore
from toolmem.store.storable import VERDICTS

FOREIGN = (*BY_NAME, MAPPED)  # formats, as they stand in the metadata of calls
OWN = "toolmem's or OpenAI's form"
IMPORTS = "imports"  # the namespace of files that were read
IDS = ".imported-ids"  # the namespace of the ids of the new calls of imports, batch by batch

_encode = msgspec.json.Encoder(enc_hook=str, order="sorted").encode


class ImportRun(Struct, omit_defaults=True):
    """What one import brought, as the store remembers it. `toolmem forget` takes it back."""

    began: datetime
    sources: list[str] = []  # names of files and folders
    tools: dict[str, CallSums] = {}  # figures of the new calls, by tool
    formats: dict[str, int] = {}  # the new calls, by format
    pending: int | None = None  # the log's position before a batch that is not counted yet
    is_open: bool = False  # its older failures were not counted yet

    def count(self, call: ToolCallResult) -> None:
        """Add a new call to the figures."""
        self.tools.setdefault(call.tool_name, CallSums(silent=0, no_use=0)).add(call)
        form = format_of(call)
        self.formats[form] = self.formats.get(form, 0) + 1


def settled_runs(store: Store, workspace: str) -> dict[str, ImportRun]:
    """The imports by id, oldest first. What a killed import had added is counted first."""
    runs = _runs(store, workspace)
    if any(run.pending is not None for run in runs.values()):
        with store.transaction():
            runs = _runs(store, workspace)
            for key, run in runs.items():
                if run.pending is not None:
                    keep_run(store, workspace, key, run)
    return dict(sorted(runs.items(), key=lambda item: item[1].began))


def _runs(store: Store, workspace: str) -> dict[str, ImportRun]:
    return {e.key: e.read(ImportRun) for e in store.list_records(workspace, IMPORT_RUNS)}


def keep_run(store: Store, workspace: str, key: str, run: ImportRun) -> list[ToolCallResult]:
    """Count the calls of the batch that is pending, and keep their ids: they outlive the log."""
    new: list[ToolCallResult] = []
    ids: dict[str, list[str]] = {}
    for logged in logged_calls(store, workspace, after=run.pending or 0):
        call = logged.call
        if call.metadata.get(IMPORT_ID) == key:  # others may write at the same time
            run.count(call)
            new.append(call)
            ids.setdefault(call.tool_name, []).append(call.id or "")
    if ids:
        store.put(workspace, IDS, f"{key}/{run.pending or 0:020}", ids)
    run.pending = None
    store.put(workspace, IMPORT_RUNS, key, run)
    return new


def format_of(call: ToolCallResult) -> str:
    """The format in which a call was read."""
    form = call.metadata.get("format")
    return form if form in FOREIGN else OWN


def digest(value: object) -> bytes:
    """Identify a value that can be written as JSON. Stored: it stays the same for ever."""
    return blake2b(_encode(value), digest_size=8).digest()


class Forgotten(Struct):
    """What was removed with an import."""

    calls: int = 0
    gone: list[str] = []  # tools that had no other calls
    out_of_date: list[str] = []  # tools whose guidance is to be written anew
    left: str = ""  # why the file still holds texts in its free space; "" where it does not


def imports(memory: ToolMem) -> dict[str, ImportRun]:
    """The imports by id, oldest first."""
    return settled_runs(memory.services.store(), memory.workspace_name)


def forget_import(memory: ToolMem, import_id: str) -> Forgotten:
    """Remove the calls of an import, their figures, and the guidance that was made of them.

    Its files, and those of other imports, are read again by the next import. Guidance is written
    anew at once where that asks no model. May be repeated where it was interrupted. Raises
    RequestError where the import is not known.
    """
    store = memory.services.store()
    workspace = memory.workspace_name
    found = Forgotten()
    with store.transaction():
        traces = Traces(memory, import_id)
        for name, ids in traces.ids.items():
            sums = traces.run.tools.get(name)
            back = traces.others.get(name, ())
            found.calls += store.delete_calls(workspace, name, ids, back=back, sums=sums)
        for each in store.list_records(workspace, VERDICTS):
            verdict = each.read(Verdict)
            if (verdict.summary, verdict.evaluation) in traces.said:
                store.delete(workspace, VERDICTS, each.key)
        # A file that was imported later may hold calls that were known from this import.
        for namespace, prefix in ((IMPORTS, ""), (IDS, f"{import_id}/"), (IMPORT_RUNS, import_id)):
            for each in store.list_records(workspace, namespace, key_prefix=prefix):
                store.delete(workspace, namespace, each.key)
    left = store.tool_names(workspace)
    found.gone = [name for name in traces.ids if name not in left]
    found.out_of_date = _out_of_date(store, workspace, traces.ids)
    op = memory.services.settings.op.get("summary_tool_memory_op", OpSection())
    if found.out_of_date and not memory.services.writer(op).asks_model:
        memory.summarize(found.out_of_date, force=True)
        found.out_of_date = _out_of_date(store, workspace, found.out_of_date)
    if isinstance(store, SqliteStore):
        try:
            store.overwrite_free_space()
        except StoreUnavailable as error:
            found.left = str(error)
            empty = ImportRun(traces.run.began, traces.run.sources)  # so that this can be repeated
            store.put(workspace, IMPORT_RUNS, import_id, empty)
    return found


def _out_of_date(store: Store, workspace: str, names: Iterable[str]) -> list[str]:
    records = store.records(workspace, list(names))
    return [r.tool_name for r in records if r.guidance and OUT_OF_DATE in r.guidance.text]


class Traces:
    """What a workspace holds of an import. Raises RequestError where the import is not known."""

    def __init__(self, memory: ToolMem, import_id: str) -> None:
        store = memory.services.store()
        workspace = memory.workspace_name
        runs = imports(memory)
        if import_id not in runs:
            known = f"there are {', '.join([*runs][-10:])}" if runs else "there is none"
            raise RequestError(f"no import is called {import_id!r}: {known}", "import")
        self.run = runs[import_id]
        self.ids: dict[str, set[str]] = defaultdict(set)  # of its calls, by tool
        self.others: dict[str, list[str]] = {}  # the newest other calls, as many as are kept
        self.said: set[tuple[str, str]] = set()  # summary and evaluation
        for each in store.list_records(workspace, IDS, key_prefix=f"{import_id}/"):
            for name, ids in each.read(dict[str, list[str]]).items():
                self.ids[name].update(ids)
        for record in store.records(workspace, list(self.run.tools), guidance=False):
            name = record.tool_name
            others = []
            for call in (each.call for each in logged_calls(store, workspace, name)):
                if call.metadata.get(IMPORT_ID) != import_id:
                    others.append((call.create_time, call.id or ""))
                    continue
                self.ids[name].add(call.id or "")
                self.said.add((call.summary, call.evaluation))
            others.sort(key=lambda each: each[0])
            self.others[name] = [each for _, each in others[max(0, len(others) - record.kept) :]]
