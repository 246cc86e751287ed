"""`toolmem guard`: check a call, list decisions, and replay a recording."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import astuple

from toolmem.cli import console, options
from toolmem.cli.import_ import format_options
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
    "self": "a change of toolmem, or unreadable rules",
}


@click.group()
def guard() -> None:
    """Check calls against rules and earlier failures."""


@guard.command("check")
@click.argument("tool")
@click.argument("arguments")
@options.conversation("Check the call in this conversation, by its own rules and calls too.")
@options.with_memory()
@options.as_json
def check(
    memory: ToolMem, tool: str, arguments: str, conversation_id: str | None, as_json: bool
) -> None:
    """Say whether a call may run, and why.

    TOOL is its name. ARGUMENTS is a JSON object or a command line; - reads it from standard input.
    It prints the decision: allow, advise, ask or deny, and the reason. All but allow are kept for
    `toolmem guard log`. Exit code 0: it may run; 5: it is stopped, or the user is asked first.

    \b
    Examples:
      toolmem guard check Bash "git push origin main"
      toolmem guard check send_email '{"to": "sarah@example.com"}' --json
    """
    given = options.read_arguments(arguments, "ARGUMENTS")
    value = {"command": given} if isinstance(given, str) else given
    decision = memory.check_tool_call(tool, value, conversation_id=conversation_id)
    if as_json:
        console.print_json(decision)
    else:
        text = " ".join(filter(None, (decision.reason, decision.advice)))
        click.echo(f"{decision.action}: {plain(text, 2_000)}" if text else decision.action)
    if decision.action in ("ask", "deny"):
        sys.exit(5)


@guard.command("log")
@click.option("--tool", help="Show only decisions about calls of this tool.")
@options.conversation("Show only decisions of this conversation.")
@options.newest("decisions", 100, 1_000)
@options.with_memory()
@options.as_json
def show_log(
    memory: ToolMem, tool: str | None, conversation_id: str | None, limit: int, as_json: bool
) -> None:
    """List decisions to advise, ask or deny, the newest last.

    \b
    Example:
      toolmem guard log --tool Bash --limit 20
    """
    found = memory.decisions(conversation_id=conversation_id, tool_name=tool, limit=limit)
    if as_json:
        console.print_json(found)
        return
    columns = ("time", "tool", "call", "decision", "because of", "the call then", "why")
    nothing = "no call was held or advised against"
    console.print_table(columns, list(map(_row, found)), nothing=nothing, numbers=False)


@guard.command("replay")
@click.option(
    "--input",
    "paths",
    multiple=True,
    type=options.InputFile(folders=True),
    help="Replay this file or folder of a format that `toolmem import` reads; may be given several "
    "times. Without it, the newest 10,000 calls of the store are replayed.",
)
@format_options
@click.option("--rules", "rules_store", hidden=True, help="Do the same as --store.")
@options.overrides
@options.read_options
@options.as_json
def replay_recording(
    paths: tuple[Path, ...],
    rules_store: str | None,
    as_json: bool,
    format: str | None,
    mapping: dict[str, str] | None,
    **where: Any,
) -> None:
    """Count the recorded calls that the guard would have flagged.

    A call is flagged if the guard would deny it, ask or advise. The rules are those of the store.
    With --input, no rule is tried unless a store, a workspace or a setting is named.
    For each source of a decision (a rule, a repeat of a failed call, a name that is known not to
    exist) it prints how many calls were flagged, how many of these worked (`wrong`), which share of
    all failures was flagged (`recall`), and which share of the flagged calls failed (`precision`).
    A call failed if its recorded flag says so: nothing is judged. Exit code 1: there was no call.

    \b
    Examples:
      toolmem guard replay
      toolmem guard replay --input calls.jsonl
      toolmem guard replay --input calls.jsonl --store memory.db --json
    """
    if where["store"] and rules_store:
        raise click.UsageError("--rules is the old name of --store; give one of them")
    where["store"] = where["store"] or rules_store
    recording = read_recording(paths, datetime.now(UTC), format=format, mapping=mapping)
    console.print_unread(recording.bad, recording.notes)
    rules, calls = [], recording.calls
    if any(where.values()) or not paths:
        with options.open_existing(**where) as memory:
            store, workspace = memory.services.store(), memory.workspace_name
            rules = store.list_records(workspace, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
            logged = [] if paths else store.call_log(workspace, limit=10_000, newest=True)
            calls = [*calls, *(each.call for each in logged)]
    with console.progress_bar("replaying calls") as progress:
        total = len(calls)
        result = replay(calls, rules, lambda number: progress(number, total))
    if not calls:
        console.print_error("no call was found")
        sys.exit(1)
    if as_json:
        counts = {"calls": result.calls, "failures": result.failures}
        console.print_json({**counts, "sources": result.sources, "flags": result.flags})
        return
    click.echo(f"{counted(result.calls, 'call')}, {counted(result.failures, 'failure')}")
    columns = ("because of", "flagged", "wrong", "recall", "precision")
    rows = [
        (_SOURCES.get(kind, kind), *astuple(figures)) for kind, figures in result.sources.items()
    ]
    console.print_table(columns, rows)


def _row(decision: Decision) -> tuple[Any, ...]:
    kinds = dict.fromkeys(source.kind for source in decision.sources)
    because = ", ".join(_SOURCES.get(kind, kind) for kind in kinds)
    call = plain(decision.call, 100) or None
    about = (decision.time, decision.tool_name, call, decision.action, because)
    return *about, decision.outcome or None, decision.reason or decision.advice
