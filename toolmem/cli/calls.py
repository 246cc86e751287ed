"""`toolmem calls`: find calls in the log of a store."""

from __future__ import annotations

from typing import Any, get_args

import click
import msgspec

from toolmem.cli import options
from toolmem.cli.console import print_json, print_table
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import OUTCOMES, OutcomeName, ToolCallResult
from toolmem.operations.calls import MAX_SCANNED, PAGE
from toolmem.text.display import visible

# In this order: a silent failure is also a failed call.
_OUTCOME_WORDS: dict[OutcomeName, str] = {
    "silent": "silent failure",
    "failed": "failed",
    "no_use": "of no use",
    "worked": "worked",
}


@click.command()
@click.option(
    "--tool",
    "tools",
    multiple=True,
    help="Show only calls of this tool; may be given several times.",
)
@options.conversation("Show only calls of the conversation with this id, which --json prints.")
@click.option(
    "--outcome",
    type=click.Choice(get_args(OutcomeName)),
    help="Show only calls with this outcome. silent: failed, though recorded as a success; "
    "no_use: worked, but the judge scored it 0; lost: failed or no_use; unjudged: has no score.",
)
@click.option("--text", help="Show only calls with this text, a-z in any case, in any field.")
@click.option(
    "--before",
    type=click.IntRange(min=1),
    help="Show older calls: give the number that the last line of the output names.",
)
@options.newest("calls", 20, PAGE)
@options.with_memory()
@options.as_json
def calls(memory: ToolMem, tools: tuple[str, ...], as_json: bool, **wanted: Any) -> None:
    """Find calls in the log of a store, the newest last.

    Each call is one line: time, outcome, tool, input and output. If there are older calls, the last
    line (on stderr) says how to get them.

    \b
    Examples:
      toolmem calls
      toolmem calls --tool Bash --tool Edit --outcome failed
      toolmem calls --text invoice.pdf --limit 100 --json
    """
    found = memory.calls(list(tools) or None, **wanted)
    if as_json:
        print_json(found)
    elif found:
        columns = ("time", "outcome", "tool", "input -> output")
        print_table(columns, list(map(_row, found)), numbers=False, cut_last=True)
    if found.next is not None:
        nothing = "" if found else f"none of {MAX_SCANNED:,} calls fits; "
        click.echo(f"{nothing}older calls: --before {found.next}", err=True)
    elif not found:
        click.echo("no call fits", err=True)


def _row(call: ToolCallResult) -> tuple[Any, ...]:
    words = (word for name, word in _OUTCOME_WORDS.items() if OUTCOMES[name](call))
    given = call.input if isinstance(call.input, str) else msgspec.json.encode(call.input).decode()
    text = f"{visible(given[:400], 90)} -> {call.output[:400]}"
    return call.create_time, next(words, "unknown"), visible(call.tool_name, 40), text
