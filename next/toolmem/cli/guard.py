"""`toolmem guard`: what is decided about calls."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import print_found, print_json
from toolmem.models.decisions import Decision
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
        print_json(decision)
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
    columns = ("time", "tool", "decision", "sources", "outcome", "why")
    print_found(found, as_json, columns, _row, nothing="no call was held or advised against")


def _row(decision: Decision) -> tuple[str | None, ...]:
    time = decision.time.isoformat(timespec="seconds")
    kinds = ", ".join(dict.fromkeys(source.kind for source in decision.sources))
    why = decision.reason or decision.advice
    return time, decision.tool_name, decision.action, kinds, decision.outcome or None, why


def _arguments(given: str) -> Any:
    if not given.lstrip().startswith("{"):
        return {"command": given}
    try:
        return json.loads(given)
    except ValueError as error:
        raise click.UsageError(f"ARGUMENTS: no JSON: {error}") from None
