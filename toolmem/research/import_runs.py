"""What a store remembers of each import, so that it can be listed and taken back."""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b

import msgspec
from msgspec import Struct

from toolmem.formats.catalogue import BY_NAME
from toolmem.formats.shapes import MAPPED
from toolmem.models.calls import IMPORT_ID, IMPORT_RUNS, ToolCallResult
from toolmem.models.protocols import Store
from toolmem.models.tools import CallSums
from toolmem.store.copying import logged_calls

FOREIGN = (*BY_NAME, MAPPED)  # formats, as they stand in the metadata of calls
OWN = "toolmem's or OpenAI's form"
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
