"""The folder that an evaluation writes: its own store, the report, the tables."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolmem.app import ToolMemApp
from toolmem.config.extras import missing
from toolmem.errors import RequestError, StoreError
from toolmem.pages.self_contained import POLICY
from toolmem.protocols import OF_THE_STORE, MemoryStore
from toolmem.research.report.findings import Evaluation

WORKSPACE = "default"
_MARK = (OF_THE_STORE, "evaluation", "made")  # the record that says: an evaluation made this store
_WRITTEN = ("summary.json", "report.html", "report.html.part", ".writable")  # beside the tables

# How each file of a report begins, or what stands in its first lines.
_SIGNS = {
    "summary.json": '"toolmem": ',
    "report.html": POLICY,
    "calls.csv": "row,tool_name,",
    "tools.csv": "tool_name,calls,",
    "skips.csv": "run,tool_name,",
    "errors.csv": "error_class,tool_name,",
    "claims.csv": "tool_name,kind,",
}
_HEAD = 1000  # characters


def refuse_foreign(folder: Path) -> None:
    """Raises RequestError where a file of the folder would be overwritten that no evaluation wrote."""
    for name, sign in _SIGNS.items():
        path = folder / name
        if path.is_symlink() or not path.exists():
            continue
        if not _has_sign(path, sign):
            raise RequestError(
                f"out: {path} was not written by an evaluation; choose another folder (--out), or overwrite what it "
                "holds (--force)",
                field="out",
            )


def _has_sign(path: Path, sign: str) -> bool:
    """An empty file has it: there is nothing to lose."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, encoding="utf-8", errors="replace") as file:
            head = file.read(_HEAD) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else "other"
    except OSError:
        return False
    return not head or (head.startswith(sign) if path.suffix == ".csv" else sign in head)


def make_ready(folder: Path) -> None:
    """The folder, writable and without an older page: that must not stand beside new tables. Raises RequestError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in folder.iterdir():  # of an unpacked folder, say: a table would be written over what it leads to
            if each.is_symlink() and (each.suffix == ".csv" or each.name in _WRITTEN):
                raise RequestError(
                    f"out: {each} is a symbolic link, which is not followed; remove it, or choose another folder",
                    field="out",
                )
        (folder / "report.html").unlink(missing_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RequestError(f"out: {folder} cannot be written: {error.strerror}", field="out") from None


def write_report(evaluation: Evaluation, out: Path) -> Path:
    """`report.html` and the tables into the folder; answers the page (without figures where `research` is absent)."""
    import tempfile

    from toolmem.research.report.csv_files import write_tables
    from toolmem.research.report.report_page import render_page, write_plain_page

    write_tables(evaluation, out)
    if missing("research"):
        return write_plain_page(evaluation, out / "report.html")
    with tempfile.TemporaryDirectory(prefix="toolmem-") as data:
        evaluation.save(data)
        return render_page(data, out / "report.html")


def store_in(folder: Path) -> str:
    """The override that puts the store into the folder; quoted, so that it is text whatever it looks like."""
    path = str(folder / "memory.db").replace("'", "''")
    return f"vector_store.default.params.path='{path}'"


async def empty(app: ToolMemApp, folder: Path) -> str:
    """Remove the tool memories that an earlier evaluation left in this folder; answers the workspace to work in.

    What was paid for stays: the verdicts, so that a run which was killed goes on where it stood, and the ledger.
    Raises RequestError where the store holds what no evaluation made.
    """
    try:
        store = await app.services.store_named()
    except StoreError as error:
        raise StoreError(f"{error}; remove {folder / 'memory.db'}, or choose another folder") from error
    workspace = await _own_workspace(store, folder / "memory.db")
    await store.put(*_MARK, {"workspace": workspace, "calls": None})
    memories = await store.records(workspace, None)
    await store.delete_memories(workspace, [memory.memory_id for memory in memories])
    embedders = app.services.embedders
    if (await store.info())["embedder"] not in (None, asdict(embedders.configured().identity)):
        await embedders.renew(store, "default", None)
    return workspace


async def note_as_own(app: ToolMemApp, workspace: str) -> None:
    """Note how many calls the evaluation left, so that those which an agent adds are never taken for its own."""
    store = await app.services.store_named()
    await store.put(*_MARK, {"workspace": workspace, "calls": await _calls(store, workspace)})


async def _own_workspace(store: MemoryStore, place: Path) -> str:
    """Where evaluations of this folder work."""
    held = await store.workspaces()
    mark = await store.get(*_MARK)
    made: dict[str, Any] = {} if mark is None else mark.value
    own = str(made.get("workspace") or WORKSPACE)
    others = [name for name in held if name != own or mark is None]
    left = made.get("calls")
    if not others and left is not None and await _calls(store, own) > left:
        others = [own]
    if others:
        raise RequestError(
            f"out: {place} holds a memory that no evaluation made (workspace {others[0]!r}); choose another folder",
            field="out",
        )
    return own


async def _calls(store: MemoryStore, workspace: str) -> int:
    return sum(record.counters.calls for record in await store.records(workspace, None))
