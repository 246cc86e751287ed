"""`toolmem guard`: check a call, list decisions, and replay a recording."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import astuple

from toolmem.cli import options
from toolmem.cli.console import (
    print_error,
    print_items,
    print_json,
    print_table,
    print_unread,
    progress_bar,
)
from toolmem.cli.import_ import form, mapping
from toolmem.formats.recording import read_recording
from toolmem.guard.replay import replay
from toolmem.memory.toolmem import ToolMem
from toolmem.models.decisions import Decision
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX
from toolmem.text.display import counted, plain

_SOURCES: dict[str, str] = {
    "rule": "a rule",
    "repeat": "a repeat of a failed call",
    "known_name": "a name that does not exist",
    "schema": "the tool's schema",
    "self": "toolmem's own protection",
}


@click.group()
def guard() -> None:
    """Check calls against rules and earlier failures."""


@guard.command("check")
@click.argument("tool")
@click.argument("arguments")
@options.conversation("Check the call as one of this conversation.")
@options.with_memory()
@options.as_json
def check(
    memory: ToolMem, tool: str, arguments: str, conversation_id: str | None, as_json: bool
) -> None:
    """Say whether a call may run, and why.

    ARGUMENTS is a JSON object or a command line; - reads it from standard input.

    Exit code 0: it may run; 5: it is stopped, or the user is asked first.

    \b
    Examples:
      toolmem guard check Bash "git push origin main"
      toolmem guard check send_email '{"to": "sarah@example.com"}' --json
    """
    given = options.read_arguments(arguments, "ARGUMENTS")
    value = {"command": given} if isinstance(given, str) else given
    decision = memory.check_tool_call(tool, value, conversation_id=conversation_id)
    if as_json:
        print_json(decision)
    else:
        text = " ".join(filter(None, (decision.reason, decision.advice)))
        click.echo(f"{decision.action}: {plain(text, 2_000)}" if text else decision.action)
    if decision.action in ("ask", "deny"):
        sys.exit(5)


@guard.command("log")
@click.option("--tool", help="Show only decisions about calls of this tool.")
@options.conversation("Show only decisions of this conversation.")
@click.option(
    "--limit",
    default=100,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="Show at most this many decisions, the newest.",
)
@options.with_memory()
@options.as_json
def show_log(
    memory: ToolMem, tool: str | None, conversation_id: str | None, limit: int, as_json: bool
) -> None:
    """List the newest calls that were stopped, asked about or advised against, and why.

    \b
    Example:
      toolmem guard log --tool Bash --limit 20
    """
    found = memory.decisions(conversation_id=conversation_id, tool_name=tool, limit=limit)
    columns = ("time", "tool", "call", "decision", "because of", "the call then", "why")
    print_items(found, as_json, columns, _row, nothing="no call was held or advised against")


@guard.command("replay")
@click.option(
    "--input",
    "paths",
    multiple=True,
    type=options.InputFile(folders=True),
    help="Replay this recording; may be given several times. Without it, the newest 10,000 calls "
    "that the store has logged are replayed.",
)
@form
@mapping
@click.option("--rules", "rules_of", hidden=True, help="Use this store, as by --store.")
@options.overrides
@options.place_options
@options.as_json
def replay_recording(
    paths: tuple[Path, ...],
    rules_of: str | None,
    as_json: bool,
    format: str | None,
    mapping: dict[str, str] | None,
    **where: Any,
) -> None:
    """Run a recording through the guard, and show which calls it would have flagged.

    The rules are those of the store. With --input and no store, settings or workspace named, no
    rule is tried.

    For each source of a decision (a rule, a repeat of a failed call, a name that is known not to
    exist): the calls that were flagged, those of them that worked, the share of all failures that
    was flagged (recall), and of the flagged calls that failed (precision). A call failed where its
    recorded flag says so: nothing is judged. Exit code 1: there was no call.

    \b
    Examples:
      toolmem guard replay
      toolmem guard replay --input calls.jsonl
      toolmem guard replay --input calls.jsonl --store memory.db --json
    """
    where["store"] = where["store"] or rules_of
    recording = read_recording(paths, datetime.now(UTC), format=format, mapping=mapping)
    print_unread(recording.bad, recording.notes)
    rules, calls = [], recording.calls
    if any(where.values()) or not paths:
        with options.open_existing(**where) as memory:
            store, workspace = memory.services.store(), memory.workspace_name
            rules = store.list_records(workspace, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
            logged = [] if paths else store.call_log(workspace, limit=10_000, newest=True)
            calls = [*calls, *(each.call for each in logged)]
    with progress_bar("replaying calls") as progress:
        total = len(calls)
        result = replay(calls, rules, lambda number: progress(number, total))
    if not calls:
        print_error("no call was found")
        sys.exit(1)
    if as_json:
        counts = {"calls": result.calls, "failures": result.failures}
        print_json({**counts, "sources": result.sources, "flags": result.flags})
        return
    click.echo(f"{counted(result.calls, 'call')}, {counted(result.failures, 'failure')}")
    columns = ("because of", "flagged", "wrong", "recall", "precision")
    print_table(columns, [(_source(name), *astuple(of)) for name, of in result.sources.items()])


def _source(kind: str) -> str:
    """What a decision is because of, in words."""
    return _SOURCES.get(kind, kind)


def _row(decision: Decision) -> tuple[str | None, ...]:
    time = decision.time.isoformat(timespec="seconds")
    because = ", ".join(dict.fromkeys(_source(source.kind) for source in decision.sources))
    why = decision.reason or decision.advice
    call = plain(decision.call, 100) or None
    then = decision.outcome or None
    return time, decision.tool_name, call, decision.action, because, then, why
