"""`toolmem store`: look at a store, trust it, and read the files of others into it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from toolmem.cli import options
from toolmem.cli.console import print_error, print_table
from toolmem.config.sections import OpSection
from toolmem.errors import RequestError
from toolmem.formats.dump import DumpRead, read_dump
from toolmem.ops.vector_store_action import KEEP_ALL
from toolmem.store.sqlite import SqliteStore
from toolmem.text.display import plain


@click.group()
def store() -> None:
    """Look at a store, trust it, or read files into it."""


@store.command()
@options.config
@options.store
@options.overrides
@options.as_json
def info(config: str | None, store: str | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Show the workspaces of a store.

    \b
    Example:
      toolmem store info --store memory.db
    """
    with options.open_existing(overrides, config, store, "default") as memory:
        kept = memory.services.store(OpSection())
        rows = [
            (name, sum(r.kept for r in records), len(records))
            for name in kept.workspaces()
            for records in [kept.records(name, guidance=False)]
        ]
    if as_json:
        options.print_json([{"workspace": w, "calls": c, "tools": t} for w, c, t in rows])
    else:
        shown = [(plain(name), str(calls), str(tools)) for name, calls, tools in rows]
        print_table(("workspace", "calls", "tools"), shown)


@store.command()
@options.config
@options.store
@options.overrides
def trust(config: str | None, store: str | None, overrides: tuple[str, ...]) -> None:
    """Follow the guidance of a store that was made elsewhere.

    \b
    Example:
      toolmem store trust --store memory.db
    """
    with options.open_existing(overrides, config, store, "default") as memory:
        kept = memory.services.store(OpSection())
        if not isinstance(kept, SqliteStore):
            raise click.UsageError("only a store file can be trusted")
        kept.trust()
        click.echo(f"{kept.location} is trusted")


@store.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@options.config
@options.store
@options.workspace()
def import_files(
    paths: tuple[Path, ...], config: str | None, store: str | None, workspace: str
) -> None:
    """Read dumps, or folders of ReMe's local stores, into a workspace.

    Every file is checked before anything is changed. What is there already is left as it is.

    \b
    Examples:
      toolmem store import tools.jsonl
      toolmem store import local_vector_store --workspace team
    """
    files = [file for path in paths for file in _files(path)]
    now = datetime.now(UTC)
    read = [read_dump(file, workspace, now) for file in files]
    with options.open_memory((), config, store, workspace) as memory:
        kept = memory.services.store(OpSection())
        failures = []
        for file, found in zip(files, read, strict=True):
            appended = [kept.merge(workspace, window, KEEP_ALL) for window in found.windows]
            failures += [each for one in appended for each in one.failures]
            added = sum(each.stored for each in appended)
            click.echo(f"{file}: {len(found.windows)} tools, {added} calls added{_others(found)}")
    for failure in failures:
        print_error(f"{failure.tool_name}: {failure.error}")
    if failures:
        sys.exit(1)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.jsonl"))
    if not found:
        raise RequestError(f"{path}: holds no .jsonl file", field="paths")
    return found


def _others(read: DumpRead) -> str:
    """The lines that hold no tool memories."""
    return "".join(
        f", {len(lines)} {plain(kind, 40)} memories passed over"
        for kind, lines in read.passed_over.items()
    )
