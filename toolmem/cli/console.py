"""Print results, errors and progress; recognize a user at a terminal; import commands lazily.

The text of calls is printed on one line, without invisible characters.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolmem.errors import ConfigError, RequestError
from toolmem.models.calls import with_all_fields
from toolmem.models.rules import RuleChange, ToolMemoryRule
from toolmem.rules.changes import Actor, what_is_asked
from toolmem.text.display import counted, marked, plain, visible
from toolmem.text.forms import word_set

if TYPE_CHECKING:
    from toolmem.formats.recording import BadRecord

MAX_BAD = 20  # bad records that are printed
Progress = Callable[[int, int], None]  # (done, total)
yes = click.option("--yes", is_flag=True, help="Do it without asking for confirmation.")
dry_run = click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
on_error = click.option(
    "--on-error",
    type=click.Choice(["open", "closed"]),
    default="open",
    show_default=True,
    help="Let calls run (open) or stop them (closed) if the rules cannot be read.",
)


def _refuse_url(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    if given and "://" in given:
        raise RequestError("--store: hooks and the proxy work on a store file", "store")
    return given


store_file = click.option(
    "--store", callback=_refuse_url, help="Use this store file instead of the project's."
)


def confirm(question: str, yes: bool) -> None:
    """Ask for consent unless `yes`. Raises Abort on a no, RequestError if nobody can answer."""
    if yes:
        return
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise RequestError("nobody agreed; to go on without being asked: --yes", "yes") from None


def print_error(message: str) -> None:
    """Print one line on stderr."""
    click.echo(f"error: {plain(message, 2_000)}", err=True)


def print_unread(
    bad: Sequence[BadRecord], notes: Iterable[str], count: int | None = None, more: str = ""
) -> None:
    """Print the first bad records and the reader's notes on stderr.

    `count`: how many records are bad, if `bad` is cut. `more`: where to find the others.
    """
    for each in bad[:MAX_BAD]:
        click.echo(plain(f"{each.place}: {each.error}"), err=True)
    count = len(bad) if count is None else count
    if count > MAX_BAD:
        click.echo(f"and {counted(count - MAX_BAD, 'more bad record')}{more}", err=True)
    for note in notes:
        click.echo(plain(note), err=True)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    nothing: str = "",
    numbers: bool = True,
    cut_last: bool = False,
) -> None:
    """Print a table on stdout. A narrow terminal wraps its cells.

    `nothing`: the message on stderr if there is no row. `numbers`: align all columns but the first
    to the right. `cut_last`: cut the last column, so that each row is one line.
    """
    if nothing and not rows:
        click.echo(nothing, err=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", expand=cut_last)
    for index, name in enumerate(columns):
        is_number = numbers and index > 0
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    if cut_last:
        last = table.columns[-1]
        last.no_wrap, last.overflow, last.ratio = True, "ellipsis", 1
    for row in rows:
        table.add_row(*(Text(visible(cell(value))) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    with console.capture() as printed:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show a progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def cell(value: Any) -> str:
    """Return a value as the text of a cell: `-` for None, a float with three decimals."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def print_json(value: Any) -> None:
    """Print a value as indented JSON on stdout."""
    click.echo(msgspec.json.format(msgspec.json.encode(with_all_fields(value)), indent=2))


_FIELD_WORDS = {  # of a rule, in its history
    "when": "the conditions",
    "unless": "the exceptions",
    "expires_at": "the end",
    "session": "the conversation",
    "rule": "the sentence",
    "said": "who said it",
}


def change_in_words(change: RuleChange) -> str:
    """Describe a change: `2026-01-01T10:00:00+00:00: changed by user; before, the end: null`."""
    how = {"typed": ", who typed it", "terminal": " at a terminal"}.get(change.evidence, "")
    text = f"{change.time.isoformat(timespec='seconds')}: {change.what} by {change.by}{how}"
    text += f", in the words {_marked_json(change.words)}" if change.words else ""
    before = [
        f"{_FIELD_WORDS.get(name, f'the {name}')}: {_marked_json(value)}"
        for name, value in msgspec.to_builtins(change.before).items()
    ]
    return f"{text}; before, {', '.join(before)}" if before else text


_BINDING_FIELDS = "priority effect when unless expires_at session tags replaces"


def print_request(rule: ToolMemoryRule) -> None:
    """Print what a rule's request asks for. Invisible characters in it are made visible."""
    given = msgspec.to_builtins(rule)
    asked = rule.request
    words = f", in its words: {_marked_json(asked.words)}" if asked and asked.words else ""
    lines = [f"asked for: {what_is_asked(rule)}{words}"]
    if asked is None:
        names = [name for name in _BINDING_FIELDS.split() if given[name]]
        lines += [f"{name}: {_marked_json(given[name])}" for name in names]
    else:
        for name, value in msgspec.to_builtins(asked.after).items():
            change = f"{name}: {_marked_json(given[name])} -> {_marked_json(value)}"
            lines.append("delete it" if (name, value) == ("status", "deleted") else change)
    click.echo(f"{rule.id[:8]}  {_marked_json(rule.tool_name)}  {_marked_json(rule.rule)}")
    for line in lines:
        click.echo(f"    {line}")


def _marked_json(value: Any) -> str:
    """A value as JSON, uncut, with the code point in the place of each invisible character."""
    return marked(json.dumps(value, ensure_ascii=False)).replace("\n", "\n      ")


# Environment variables that coding agents set for their commands.
_AGENT_VARIABLES = word_set(
    "CLAUDECODE CLAUDE_CODE_CHILD_SESSION GEMINI_CLI COPILOT_CLI CURSOR_AGENT CODEX_SANDBOX"
    " CODEX_SANDBOX_NETWORK_DISABLED CODEX_THREAD_ID CODEX_CI OPENCODE CLINE_ACTIVE GOOSE_TERMINAL"
)


def _is_one_terminal() -> bool:
    """Whether input, output and errors are the same terminal."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    try:
        if not hasattr(os, "ttyname"):  # Windows has one console for each process
            return all(stream.isatty() for stream in streams)
        return len({os.ttyname(stream.fileno()) for stream in streams}) == 1
    except (OSError, ValueError, AttributeError):  # no terminal, or a stream without a file
        return False


def user_actor() -> Actor:
    """Return the user. `evidence` is "terminal" if a person runs this at a terminal, else ""."""
    is_agent = any(os.environ.get(name) for name in _AGENT_VARIABLES)
    command = " ".join(sys.argv[1:])[:200]
    return Actor("user", "terminal" if _is_one_terminal() and not is_agent else "", command)


class LazyGroup(click.Group):
    """A group of commands whose modules are imported only when needed.

    `lazy`: {"name": "module:attribute"}. `default`: the command that runs if none is named.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, str] | None = None, default: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy or {}
        self._default = default

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        is_named = args and args[0] in (*self.list_commands(context), "--help")
        if self._default and not is_named:
            args = [self._default, *args]
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*self.commands, *self._lazy})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self._lazy:
            return super().get_command(context, name)
        module, _, attribute = self._lazy[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


def require_mcp() -> None:
    """Raises ConfigError if the MCP SDK is not installed."""
    if find_spec("mcp") is None:
        raise ConfigError(["the MCP SDK is not installed; install toolmem[mcp]"])
