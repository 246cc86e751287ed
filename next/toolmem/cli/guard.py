"""`toolmem guard`: what is decided about calls, and what would have been."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import number, print_table
from toolmem.formats.recording import read_recording
from toolmem.guard.replay import replay
from toolmem.text.display import plain

EXIT_STOPPED = 5


@click.group()
def guard() -> None:
    """Check calls against rules and earlier failures."""


@guard.command("check")
@click.argument("tool")
@click.argument("arguments")
@click.option("--conversation", help="In which the call is made.")
@options.memory_options
@options.as_json
def check(tool: str, arguments: str, conversation: str | None, as_json: bool, **where: Any) -> None:
    """Say what would become of a call. ARGUMENTS is a JSON object, or a command line.

    Exit code 0: it may run; 5: it is stopped, or the user is asked first.

    \b
    Examples:
      toolmem guard check Bash "git push origin main"
      toolmem guard check send_email '{"to": "sarah@example.com"}' --json
    """
    with options.open_existing(**where) as memory:
        decision = memory.check_tool_call(tool, _arguments(arguments), conversation_id=conversation)
    if as_json:
        options.print_json(decision)
    else:
        told = " ".join(filter(None, (decision.reason, decision.advice)))
        click.echo(f"{decision.action}: {plain(told, 2_000)}" if told else decision.action)
    if decision.action in ("ask", "deny"):
        sys.exit(EXIT_STOPPED)


@guard.command("log")
@click.option("--tool", help="Of one tool.")
@click.option("--conversation", help="Of one conversation.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1_000))
@options.memory_options
@options.as_json
def show_log(
    tool: str | None, conversation: str | None, limit: int, as_json: bool, **where: Any
) -> None:
    """List the newest decisions that were more than a plain allow."""
    with options.open_existing(**where) as memory:
        found = memory.decisions(conversation_id=conversation, tool_name=tool, limit=limit)
    if as_json:
        options.print_json(found)
    elif found:
        rows = [
            (
                each.time.isoformat(timespec="seconds"),
                each.tool_name,
                each.action,
                ", ".join(dict.fromkeys(source.kind for source in each.sources)),
                each.outcome or "-",
                each.reason or each.advice,
            )
            for each in found
        ]
        columns = ("time", "tool", "decision", "sources", "outcome", "why")
        print_table(columns, rows, numbers=False)
    else:
        click.echo("no call was held or advised against", err=True)


@guard.command("replay")
@click.option("--input", "paths", multiple=True, required=True, type=click.Path(exists=True))
@click.option("--rules", "rules_of", help="A store whose rules are tried.")
@options.as_json
def replay_recording(paths: tuple[str, ...], rules_of: str | None, as_json: bool) -> None:
    """Run a recording through the guard: what would have been flagged, and what wrongly.

    \b
    Examples:
      toolmem guard replay --input calls.jsonl
      toolmem guard replay --input calls.jsonl --rules memory.db --json
    """
    recording = read_recording(paths, datetime.now(UTC))
    for bad in recording.bad[:20]:
        click.echo(f"line {bad.line}: {plain(bad.error, 200)}", err=True)
    rules = []
    if rules_of:
        with options.open_existing((), None, rules_of, "default") as memory:
            rules = memory.rules.all_rules().rules
    done = replay(recording.calls, rules)
    if as_json:
        options.print_json(done)
        return
    rows = [
        (name, str(of.flagged), str(of.wrong), number(of.recall), number(of.precision))
        for name, of in done.sources.items()
    ]
    click.echo(f"{done.calls:,} calls, {done.failures:,} failures")
    print_table(("source", "flagged", "wrong", "recall", "precision"), rows)


def _arguments(given: str) -> Any:
    if not given.lstrip().startswith("{"):
        return {"command": given}
    try:
        return json.loads(given)
    except ValueError as error:
        raise click.UsageError(f"ARGUMENTS: no JSON: {error}") from None
