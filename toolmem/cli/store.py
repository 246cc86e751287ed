"""`toolmem store`: show, trust and copy a store, and import dumps."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import (
    print_error,
    print_json,
    print_table,
    progress_bar,
    store_file,
    user_actor,
)
from toolmem.errors import RequestError
from toolmem.formats.dump import read_dump
from toolmem.guard.rule_copies import drop_copy, keep_copy, put_records, read_copy, recognize
from toolmem.guard.stores import store_path
from toolmem.memory.toolmem import ToolMem
from toolmem.models.protocols import KeepsRuleCopies
from toolmem.rules.store import GUARDED
from toolmem.store.changes import KEEP_ALL
from toolmem.store.copying import copy_workspace
from toolmem.store.sqlite import SqliteStore
from toolmem.text.display import counted, shown_name


@click.group()
def store() -> None:
    """Look at a store, trust it, or read files into it."""


@store.command()
@options.with_memory(options.config, options.store, options.overrides)
@options.as_json
def info(memory: ToolMem, as_json: bool) -> None:
    """Show the workspaces of a store, with how many calls and tools each holds.

    \b
    Example:
      toolmem store info --store memory.db
    """
    opened = memory.services.store()
    found = {name: opened.records(name, guidance=False) for name in opened.workspaces()}
    rows = [(name, sum(r.kept for r in records), len(records)) for name, records in found.items()]
    columns = ("workspace", "calls", "tools")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, rows)


@store.command()
@store_file
@options.no_settings
def trust(store: str | None) -> None:
    """Follow the rules and guidance of a store that was made elsewhere.

    \b
    Example:
      toolmem store trust --store memory.db
    """
    with SqliteStore(store or store_path(os.getcwd())) as opened:
        if not os.path.exists(opened.location):
            raise RequestError(f"there is no store at {opened.location}", "store")
        opened.trust()
        click.echo(f"{opened.location} is trusted")


@store.command()
@options.store
@options.config
@options.workspace()
@options.overrides
@click.option("--drop", is_flag=True, help="Remove the copy instead: its rules no longer bind.")
def restore(store: str | None, workspace: str, drop: bool, **where: Any) -> None:
    """Write the rules that a store lost back into it, from their copy.

    Hooks copy the rules that bind into the state folder, Elasticsearch into an index of its own. A
    newer rule in the store is kept.

    \b
    Examples:
      toolmem store restore
      toolmem store restore --store http://localhost:9200/toolmem --workspace team
    """
    if any(where.values()) or "://" in (store or ""):
        with options.open_memory(store=store, workspace=workspace, **where) as memory:
            _restore_in_server(memory, workspace, drop)
        return
    path = SqliteStore(store or store_path(os.getcwd())).location
    copy = read_copy(path, workspace)
    if copy is None:
        raise RequestError(f"there is no copy of the rules of {path}", "store")
    if drop:
        _require_terminal()
        drop_copy(path, workspace)
        click.echo(f"dropped: {counted(len(copy.rules), 'rule')} of {path}")
        return
    with SqliteStore(path) as opened:
        if opened.untrusted and not recognize(opened, workspace):
            raise RequestError(f"{opened.untrusted}: move it away, or toolmem store trust", "store")
        number = put_records(copy.rules, opened, workspace)
        opened.put(*GUARDED, {"by": "toolmem store restore"})
        drop_copy(path, workspace)  # it is of a state that the store is no longer in
        keep_copy(opened, workspace)
    click.echo(f"{number} of {counted(len(copy.rules), 'rule')} written to {path}")


def _require_terminal() -> None:
    if user_actor().evidence != "terminal":
        raise RequestError("only you let rules go: run this in a terminal of yours", "drop")


def _restore_in_server(memory: ToolMem, workspace: str, drop: bool) -> None:
    """Restore rules of a store that keeps their copies itself."""
    opened = memory.services.store()
    if not isinstance(opened, KeepsRuleCopies):
        raise RequestError("settings: only those of an Elasticsearch store are taken", "config")
    if drop:
        _require_terminal()
    lost = opened.lost_rules(workspace)
    for each in () if drop else lost:
        opened.put(workspace, each.namespace, each.key, each.value)
    opened.accept_rules(workspace)
    done = "dropped" if drop else "written back"
    click.echo(
        f"{done}: {counted(len(lost), 'rule')} of workspace {shown_name(workspace)} in "
        f"{opened.location}"
    )


@store.command("copy")
@click.argument("source")
@click.argument("target")
@click.option("--workspace", help="Copy only this workspace. Without it, all are copied.")
@click.option("--trust", is_flag=True, help="Copy the store although it was made elsewhere.")
@options.overrides
def copy_store(
    source: str, target: str, workspace: str | None, trust: bool, overrides: tuple[str, ...]
) -> None:
    """Copy calls, guidance and rules from one store to another, and compare both.

    A store is a file, or the URL of Elasticsearch with an index prefix as its path. What is there
    already is left as it is, so a copy that was interrupted can be repeated. Rules and guidance
    count as your own in the copy: of a store that is not trusted nothing is copied without --trust.

    \b
    Examples:
      toolmem store copy .toolmem/memory.db http://localhost:9200/toolmem
      toolmem store copy http://localhost:9200/toolmem copy.db --workspace team
    """
    with (
        options.open_existing(overrides=overrides, store=source) as one,
        options.open_memory(overrides, store=target) as other,
    ):
        if (reason := one.services.store().untrusted) and not trust:
            problem = "its rules and guidance would count as yours; to copy them: --trust"
            raise RequestError(f"{reason}; {problem}", "source")
        stores = (one.services.store(), other.services.store())
        names = stores[0].workspaces() if workspace is None else [workspace]
        copied = {}
        for name in names:
            with progress_bar(f"copying {shown_name(name)}") as progress:
                copied[name] = copy_workspace(*stores, name, progress)
    rows = [(w, c.tools, c.calls, c.duplicates, c.records, c.kept) for w, c in copied.items()]
    head = ("workspace", "tools", "calls added", "there before", "records added", "there before")
    print_table(head, rows)
    for name, each in copied.items():
        for failure in each.failures:
            print_error(f"{shown_name(name)}: {shown_name(failure.tool_name)}: {failure.error}")
        for what in each.lacking:
            print_error(f"{shown_name(name)}: the copy holds less of {shown_name(what)}")
    if any(each.failures or each.lacking for each in copied.values()):
        sys.exit(1)


@store.command("import")
@click.argument(
    "paths",
    cls=options.Values,
    required=True,
    type=options.InputFile(folders=True),
    metavar="(PATHS | NAME=VALUE)...",
)
@options.config
@options.store
@options.workspace()
def import_files(paths: tuple[Path, ...], workspace: str, **where: Any) -> None:
    """Read dumps, or folders of ReMe's local stores, into a workspace.

    PATHS are files, folders, or - for standard input. Every file is checked before anything is
    changed. What is there already is left as it is. To read calls that other programs recorded:
    toolmem import; a team's rules: toolmem rules import.

    \b
    Examples:
      toolmem store import tools.jsonl
      toolmem store import local_vector_store --workspace team
    """
    files = [file for path in paths for file in _files(path)]
    now = datetime.now(UTC)
    read = [read_dump(file, workspace, now) for file in files]
    with options.open_memory(workspace=workspace, **where) as memory:
        target = memory.services.store()
        failures = []
        for file, found in zip(files, read, strict=True):
            appended = [target.merge(workspace, window, KEEP_ALL) for window in found.windows]
            failures += [each for one in appended for each in one.failures]
            added = sum(each.stored for each in appended)
            texts = [f"{file}: {counted(len(found.windows), 'tool')}"]
            texts.append(f"{counted(added, 'call')} added")
            for kind, lines in found.passed_over.items():
                memories = counted(len(lines), f"{shown_name(kind, 40)} memory")
                texts.append(f"{memories} passed over")
            click.echo(", ".join(texts))
    for failure in failures:
        print_error(f"{shown_name(failure.tool_name)}: {failure.error}")
    if failures:
        sys.exit(1)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.jsonl"))
    if not found:
        raise RequestError(f"{path}: holds no .jsonl file", field="paths")
    return found
