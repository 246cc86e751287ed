"""`toolmem guard`: check a call, list decisions, and replay a recording."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
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
from toolmem.formats.files import read_json
from toolmem.formats.recording import read_recording
from toolmem.guard.replay import replay
from toolmem.memory.toolmem import ToolMem
from toolmem.models.decisions import Decision
from toolmem.models.records import RULE_PREFIX, TOOL_PREFIX
from toolmem.text.display import plain


@click.group()
def guard() -> None:
    """Check calls against rules and earlier failures."""


@guard.command("check")
@click.argument("tool")
@click.argument("arguments")
@click.option("--conversation", help="In which the call is made.")
@options.with_memory()
@options.as_json
def check(
    memory: ToolMem, tool: str, arguments: str, conversation: str | None, as_json: bool
) -> None:
    """Say what would become of a call. ARGUMENTS: a JSON object, a command line, or - for stdin.

    Exit code 0: it may run; 5: it is stopped, or the user is asked first.

    \b
    Examples:
      toolmem guard check Bash "git push origin main"
      toolmem guard check send_email '{"to": "sarah@example.com"}' --json
    """
    arguments = sys.stdin.read() if arguments == "-" else arguments
    is_object = arguments.lstrip().startswith("{")
    value = read_json(arguments, "ARGUMENTS") if is_object else {"command": arguments}
    decision = memory.check_tool_call(tool, value, conversation_id=conversation)
    if as_json:
        print_json(decision)
    else:
        text = " ".join(filter(None, (decision.reason, decision.advice)))
        click.echo(f"{decision.action}: {plain(text, 2_000)}" if text else decision.action)
    if decision.action in ("ask", "deny"):
        sys.exit(5)


@guard.command("log")
@click.option("--tool", help="Of one tool.")
@click.option("--conversation", help="Of one conversation.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1_000))
@options.with_memory()
@options.as_json
def show_log(
    memory: ToolMem, tool: str | None, conversation: str | None, limit: int, as_json: bool
) -> None:
    """List the newest decisions that were more than a plain allow."""
    found = memory.decisions(conversation_id=conversation, tool_name=tool, limit=limit)
    columns = ("time", "tool", "call", "decision", "sources", "outcome", "why")
    print_items(found, as_json, columns, _row, nothing="no call was held or advised against")


@guard.command("replay")
@click.option(
    "--input",
    "paths",
    multiple=True,
    type=click.Path(exists=True),
    help="A recording. Left out: the newest 10,000 calls that the store has logged.",
)
@form
@mapping
@click.option("--rules", "rules_of", help="A store whose rules are tried.")
@options.as_json
def replay_recording(
    paths: tuple[str, ...], rules_of: str | None, as_json: bool, **recorded: Any
) -> None:
    """Run a recording through the guard: what would have been flagged, and what wrongly.

    For each source of a decision (a rule, a repeat of a failed call, a name that is known not to
    exist): the calls that were flagged, those of them that worked, the share of all failures that
    was flagged (recall), and of the flagged calls that failed (precision). A call failed where its
    recorded flag says so: nothing is judged. Exit code 1: there was no call.

    \b
    Examples:
      toolmem guard replay
      toolmem guard replay --input calls.jsonl
      toolmem guard replay --input calls.jsonl --rules memory.db --json
    """
    recording = read_recording(paths, datetime.now(UTC), **recorded)
    print_unread(recording.bad, recording.notes)
    rules, calls = [], recording.calls
    if rules_of or not paths:
        with options.open_existing(store=rules_of) as memory:
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
    click.echo(f"{result.calls:,} calls, {result.failures:,} failures")
    columns = ("source", "flagged", "wrong", "recall", "precision")
    print_table(columns, [(name, *astuple(of)) for name, of in result.sources.items()])


def _row(decision: Decision) -> tuple[str | None, ...]:
    time = decision.time.isoformat(timespec="seconds")
    kinds = ", ".join(dict.fromkeys(source.kind for source in decision.sources))
    why = decision.reason or decision.advice
    call, outcome = plain(decision.call, 100) or None, decision.outcome or None
    return time, decision.tool_name, call, decision.action, kinds, outcome, why
