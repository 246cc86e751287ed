"""The folder that an evaluation writes: its own store, the report, the tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from toolmem.app import ToolMemApp
from toolmem.errors import RequestError, StoreError
from toolmem.report.evaluation import Evaluation

WORKSPACE = "evaluate"
_WRITTEN = ("summary.json", "report.html", "report.html.part", ".writable")  # beside the tables


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
    """`report.html` and the tables into the folder; answers the page."""
    import tempfile

    from toolmem.report import render_page, write_tables

    write_tables(evaluation, out)
    with tempfile.TemporaryDirectory(prefix="toolmem-") as data:
        evaluation.save(data)
        return render_page(data, out / "report.html")


def store_in(folder: Path) -> str:
    """The override that puts the store into the folder; quoted, so that it is text whatever it looks like."""
    path = str(folder / "memory.db").replace("'", "''")
    return f"vector_store.default.params.path='{path}'"


async def empty(app: ToolMemApp, folder: Path) -> None:
    """Remove the tool memories that an earlier evaluation left in this folder.

    What was paid for stays: the verdicts, so that a run which was killed goes on where it stood, and the ledger.
    """
    try:
        store = await app.services.store_named()
    except StoreError as error:
        raise StoreError(f"{error}; remove {folder / 'memory.db'}, or choose another folder") from error
    others = [name for name in await store.workspaces() if name != WORKSPACE]
    if others:
        raise RequestError(
            f"out: {folder / 'memory.db'} holds a memory that no evaluation made (workspace {others[0]!r}); "
            "choose another folder",
            field="out",
        )
    memories = await store.records(WORKSPACE, None)
    await store.delete_memories(WORKSPACE, [memory.memory_id for memory in memories])
    embedder = app.services.embedder_of_store()
    if (await store.info())["embedder"] not in (None, asdict(embedder.identity)):
        await store.reembed(embedder)
