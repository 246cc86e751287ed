"""List the imports of a store, and remove one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from toolmem.config.sections import OpSection
from toolmem.errors import RequestError, StoreUnavailable
from toolmem.formats.programs import BY_NAME
from toolmem.formats.shapes import MAPPED
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import IMPORT_ID, IMPORT_RUNS, ToolCallResult, Verdict
from toolmem.models.protocols import GuidanceWriter, Store
from toolmem.models.tools import CallSums
from toolmem.ops.summary_tool_memory import SummaryToolMemoryOp
from toolmem.store.changes import OUT_OF_DATE
from toolmem.store.copying import logged_calls
from toolmem.store.sqlite import SqliteStore
from toolmem.store.storable import VERDICTS

FOREIGN = (*BY_NAME, MAPPED)  # formats of other programs, as the metadata of calls names them
OWN = "toolmem's or OpenAI's form"
IMPORTS = "imports"  # the namespace of the files that were read
IDS = ".imported-ids"  # the namespace of the ids of new calls, by import and batch
OP = SummaryToolMemoryOp.name


class ImportRun(Struct, omit_defaults=True):
    """One import, as the store keeps it. `toolmem forget` removes it."""

    began: datetime
    sources: list[str] = []  # names of files and folders
    tools: dict[str, CallSums] = {}  # figures of the new calls, by tool
    formats: dict[str, int] = {}  # the new calls, by format
    pending: int | None = None  # the log's position before a batch that is not yet counted
    is_open: bool = False  # older failures are not yet counted

    def count(self, call: ToolCallResult) -> None:
        """Add a new call to the figures."""
        self.tools.setdefault(call.tool_name, CallSums(silent=0, no_use=0)).add(call)
        form = format_of(call)
        self.formats[form] = self.formats.get(form, 0) + 1


def settled_runs(store: Store, workspace: str) -> dict[str, ImportRun]:
    """Count the calls that a killed import added. Then return all imports by id, oldest first."""
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
    """Count and return the new calls of a run's pending batch. Store the run and the calls' ids."""
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
    """Return the format that an imported call was read in, such as `claude_code`."""
    form = call.metadata.get("format")
    return form if form in FOREIGN else OWN


class Forgotten(Struct):
    """The result of removing an import."""

    calls: int = 0
    gone: list[str] = []  # tools that had no other calls
    out_of_date: list[str] = []  # tools whose guidance must be written again
    left: str = ""  # why the file still has deleted texts in its free space; "": it has none


def imports(memory: ToolMem) -> dict[str, ImportRun]:
    """Return the imports of the memory's workspace by id, oldest first."""
    return settled_runs(memory.services.store(), memory.workspace_name)


def forget_import(memory: ToolMem, import_id: str) -> Forgotten:
    """Remove the calls of an import, their figures, and the guidance that was made of them.

    The next import reads all files again. Guidance is written again at once, unless a model writes
    it. If this is interrupted, it can be repeated. Raises RequestError if no import has this id.
    """
    store = memory.services.store()
    workspace = memory.workspace_name
    forgotten = Forgotten()
    with store.transaction():
        traces = Traces(memory, import_id)
        for name, ids in traces.ids.items():
            sums = traces.run.tools.get(name)
            others = traces.others.get(name, ())
            forgotten.calls += store.delete_calls(workspace, name, ids, back=others, sums=sums)
        for each in store.list_records(workspace, VERDICTS):
            verdict = each.read(Verdict)
            if (verdict.summary, verdict.evaluation) in traces.verdicts:
                store.delete(workspace, VERDICTS, each.key)
        # Files that were imported later may have calls that were left out as known.
        for namespace, prefix in ((IMPORTS, ""), (IDS, f"{import_id}/"), (IMPORT_RUNS, import_id)):
            for each in store.list_records(workspace, namespace, key_prefix=prefix):
                store.delete(workspace, namespace, each.key)
    left = store.tool_names(workspace)
    forgotten.gone = [name for name in traces.ids if name not in left]
    forgotten.out_of_date = _out_of_date(store, workspace, traces.ids)
    if forgotten.out_of_date and not summary_writer(memory).asks_model:
        memory.summarize(forgotten.out_of_date, force=True)
        forgotten.out_of_date = _out_of_date(store, workspace, forgotten.out_of_date)
    if isinstance(store, SqliteStore):
        try:
            store.overwrite_free_space()
        except StoreUnavailable as error:
            forgotten.left = str(error)
            empty = ImportRun(traces.run.began, traces.run.sources)  # so that this can be repeated
            store.put(workspace, IMPORT_RUNS, import_id, empty)
    return forgotten


def summary_writer(memory: ToolMem) -> GuidanceWriter:
    """Return the writer of guidance that summaries are configured with."""
    return memory.services.writer(memory.services.settings.op.get(OP, OpSection()))


def _out_of_date(store: Store, workspace: str, names: Iterable[str]) -> list[str]:
    records = store.records(workspace, list(names))
    return [r.tool_name for r in records if r.guidance and OUT_OF_DATE in r.guidance.text]


class Traces:
    """Ids and verdicts of an import's calls. Raises RequestError if no import has this id."""

    def __init__(self, memory: ToolMem, import_id: str) -> None:
        store = memory.services.store()
        workspace = memory.workspace_name
        runs = imports(memory)
        if import_id not in runs:
            known = f"there are {', '.join([*runs][-10:])}" if runs else "there is none"
            raise RequestError(f"no import is called {import_id!r}: {known}", "import")
        self.run = runs[import_id]
        self.ids: dict[str, set[str]] = defaultdict(set)  # of its calls, by tool
        self.others: dict[str, list[str]] = {}  # ids of the newest other calls, by tool
        self.verdicts: set[tuple[str, str]] = set()  # summary and evaluation of its calls
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
                self.verdicts.add((call.summary, call.evaluation))
            others.sort(key=lambda each: each[0])
            self.others[name] = [each for _, each in others[max(0, len(others) - record.kept) :]]
