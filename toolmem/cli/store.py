"""`toolmem store`: show, trust, restore and copy a store, and import dumps."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from toolmem.cli import console, options
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
    """Show, trust, restore or copy a store, or read files into it."""


@store.command()
@options.with_memory(options.config, options.store, options.overrides)
@options.as_json
def info(memory: ToolMem, as_json: bool) -> None:
    """Count the kept calls and the tools in each workspace of a store."""
    opened = memory.services.store()
    found = {name: opened.records(name, guidance=False) for name in opened.workspaces()}
    rows = [(name, sum(r.kept for r in records), len(records)) for name, records in found.items()]
    columns = ("workspace", "calls", "tools")
    if as_json:
        console.print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        console.print_table(columns, rows)


@store.command()
@console.store_file
@options.no_settings
def trust(store: str | None) -> None:
    """Trust the rules and guidance of a store that was made elsewhere.

    Until then, hooks and the proxy only ask by its rules, and use nothing else of it.
    """
    with SqliteStore(store or store_path(os.getcwd())) as opened:
        if not os.path.exists(opened.location):
            raise RequestError(f"there is no store at {opened.location}", "store")
        opened.trust()
        click.echo(f"{opened.location} is trusted")


@store.command()
@options.memory_options
@click.option(
    "--drop", is_flag=True, help="Give up the lost rules. This needs a terminal of yours."
)
def restore(store: str | None, workspace: str, drop: bool, **where: Any) -> None:
    """Restore the rules that a store lost, from their copy.

    Hooks copy the rules that hold into the state folder (~/.local/state/toolmem on Linux). A store
    of Elasticsearch copies its own into another index. Use this command if a store was deleted,
    damaged or put back to an older state. A newer rule in the store is kept.

    \b
    Examples:
      toolmem store restore
      toolmem store restore --store http://localhost:9200/toolmem --workspace team
    """
    if any(where.values()) or "://" in (store or ""):
        with options.open_memory(store=store, workspace=workspace, **where) as memory:
            _restore_from_store(memory, workspace, drop, *where["overrides"])
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
    written = f"{number} of {counted(len(copy.rules), 'rule')} written to {path}"
    click.echo(written if number else f"nothing was lost: {path} has every rule of its copy")


def _require_terminal() -> None:
    if console.user_actor().evidence != "terminal":
        raise RequestError("only you let rules go: run this in a terminal of yours", "drop")


def _restore_from_store(memory: ToolMem, workspace: str, drop: bool, *given: str) -> None:
    """Restore rules in a store that keeps their copies itself. `given`: the settings."""
    opened = memory.services.store()
    if not isinstance(opened, KeepsRuleCopies):
        settings = " ".join(given) or "--config"
        raise RequestError(f"{settings}: a store file takes no settings; leave it out", "config")
    if drop:
        _require_terminal()
    lost = opened.lost_rules(workspace)
    if not drop:
        for each in lost:
            opened.put(workspace, each.namespace, each.key, each.value)
    opened.accept_rules(workspace)
    done = "dropped" if drop else "written back"
    place = f"workspace {shown_name(workspace)} in {opened.location}"
    click.echo(f"{done}: {counted(len(lost), 'rule')} of {place}")


@store.command("copy")
@click.argument("source")
@click.argument("target")
@click.option("--workspace", help="Copy only this workspace, not all workspaces.")
@click.option("--trust", is_flag=True, help="Copy even if the source store is not trusted.")
@options.overrides
def copy_store(
    source: str, target: str, workspace: str | None, trust: bool, overrides: tuple[str, ...]
) -> None:
    """Copy the calls, guidance and rules of a store to another.

    A store is a file, or the URL of Elasticsearch with an index prefix as its path. What TARGET
    already holds stays as it is, so a copy that was interrupted can be repeated. Rules and guidance
    count as your own in the copy: without --trust, nothing is copied from a store that is not
    trusted. Exit code 1: something was not copied, or TARGET holds less than SOURCE.

    \b
    Examples:
      toolmem store copy .toolmem/memory.db http://localhost:9200/toolmem
      toolmem store copy http://localhost:9200/toolmem copy.db --workspace team
    """
    with (
        options.open_existing(overrides=overrides, store=source) as one,
        options.open_memory(overrides, store=target) as other,
    ):
        if workspace is not None:
            options.require_workspace(one, workspace)
        origin, copy = one.services.store(), other.services.store()
        if origin.untrusted and not trust:
            problem = "its rules and guidance would count as yours; to copy them: --trust"
            raise RequestError(f"{origin.untrusted}; {problem}", "source")
        if os.path.realpath(origin.location) == os.path.realpath(copy.location):
            raise RequestError("target: it is the source; name another store", "target")
        copy.workspaces()  # raises if it cannot be reached
        copied = {}
        for name in origin.workspaces() if workspace is None else [workspace]:
            with console.progress_bar(f"copying {shown_name(name)}") as progress:
                copied[name] = copy_workspace(origin, copy, name, progress)
    rows = [(w, c.tools, c.calls, c.duplicates, c.records, c.kept) for w, c in copied.items()]
    head = ("workspace", "tools", "calls added", "there before", "records added", "there before")
    console.print_table(head, rows)
    for name, each in copied.items():
        for failure in each.failures:
            tool = shown_name(failure.tool_name)
            console.print_error(f"{shown_name(name)}: {tool}: {failure.error}")
        for what in each.lacking:
            console.print_error(f"{shown_name(name)}: the copy holds less of {shown_name(what)}")
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
@options.write_options
def import_files(paths: tuple[Path, ...], workspace: str, **where: Any) -> None:
    """Read dumps of tools and their calls, from toolmem or ReMe.

    PATHS are files of JSON Lines, folders of them (such as a local store of ReMe), or - for
    standard input. Every file is checked before anything is changed. What the workspace holds stays
    as it is. Exit code 1: a tool could not be stored. `toolmem import` reads calls that other
    programs recorded, `toolmem rules import` a team's file of rules.

    \b
    Examples:
      toolmem store import tools.jsonl
      toolmem store import local_vector_store --workspace team
    """
    files = [file for path in paths for file in _files(path)]
    now = datetime.now(UTC)
    dumps = [read_dump(file, workspace, now) for file in files]
    with options.open_memory(workspace=workspace, **where) as memory:
        target = memory.services.store()
        failures = []
        for file, dump in zip(files, dumps, strict=True):
            merged = [target.merge(workspace, window, KEEP_ALL) for window in dump.windows]
            failures += [failure for each in merged for failure in each.failures]
            added = sum(each.stored for each in merged)
            texts = [f"{counted(len(dump.windows), 'tool')}, {counted(added, 'call')} added"]
            for kind, lines in dump.passed_over.items():
                memories = counted(len(lines), f"{shown_name(kind, 40)} memory")
                texts.append(f"{memories} passed over")
            click.echo(f"{file}: {', '.join(texts)}")
    for failure in failures:
        console.print_error(f"{shown_name(failure.tool_name)}: {failure.error}")
    if failures:
        sys.exit(1)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.jsonl"))
    if not files:
        raise RequestError(f"{path}: holds no .jsonl file", field="paths")
    return files
