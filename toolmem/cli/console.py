"""What the commands share on a terminal: options, progress, tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.flow.progress import ProgressLine
from toolmem.readers.plain_text import counted, escaped, escaped_json, name_shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from toolmem.models import FlowResponse

__all__ = [
    "AsJson",
    "Config",
    "Overrides",
    "ProgressLine",
    "cell_shown",
    "counted",
    "exit_code",
    "logs_to_stderr",
    "print_json",
    "print_json_text",
    "print_table",
    "say",
    "tell",
]

Config = Annotated[
    list[Path] | None, typer.Option("--config", help="A configuration file (YAML); may be given several times.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OVERRIDE]...", help="Dotted overrides, e.g. llm.default.backend=dry_run"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def say(text: str) -> None:
    """A message for people: stderr."""
    print(escaped(text), file=sys.stderr)


def tell(text: str) -> None:
    """A result for people: stdout."""
    print(escaped(text))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    print_json_text(json.dumps(value, ensure_ascii=False, indent=indent, default=str))


def print_json_text(text: str) -> None:
    """The same JSON; what acts on a terminal is escaped in it."""
    print(escaped_json(text.rstrip("\n")))


def cell_shown(column: str, cell: str) -> str:
    """What a table holds: of tools, names that look alike are told apart; of other texts, what cannot be seen."""
    return name_shown(cell) if column == "tool" else escaped(cell)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: frozenset[str] = frozenset(),
    notes: Sequence[str] = (),
    style: Callable[[str, str], str] = lambda column, cell: "",
) -> None:
    """A table on stdout; a pipe gets every column whole. On a terminal that is too narrow for the words of the columns,
    a block of lines per row. `style`: of a cell, by its column."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    shown = [
        [Text(cell_shown(column, cell), style=style(column, cell)) for column, cell in zip(columns, row, strict=True)]
        for row in rows
    ]
    if sys.stdout.isatty() and _least_width(columns, shown) > console.width:
        _print_blocks(console, title, columns, shown)
    else:
        _print_columns(console, title, columns, shown, numeric)
    for note in notes:
        console.print(Text(escaped(note)))


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
    """What the columns take without a break inside a word."""
    cells = [[column, *(row[at].plain for row in rows)] for at, column in enumerate(columns)]
    return sum(3 + max(len(word) for cell in of_column for word in cell.split() or [""]) for of_column in cells)


def _print_columns(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Text]], numeric: frozenset[str]
) -> None:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
    for column in columns:
        justify: Any = "right" if column in numeric else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in ("id", "priority"))
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _print_blocks(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Lines are left to the terminal to wrap, so that a name or an id can be copied whole."""
    from rich.text import Text

    console.print(Text(title, style="bold"))
    width = max(map(len, columns)) + 2
    for row in rows:
        console.print()
        for column, cell in zip(columns, row, strict=True):
            if cell.plain:
                console.print(Text(f"{column:<{width}}").append_text(cell), soft_wrap=True)
    console.print()


@contextmanager
def logs_to_stderr() -> Iterator[None]:
    """Warnings of toolmem as plain lines on stderr, while a command runs."""
    import logging

    class CurrentStderr(logging.StreamHandler[Any]):
        """Asks for stderr at each line: while a progress line moves there, it is the one that keeps clear of it."""

        @property
        def stream(self) -> Any:
            return sys.stderr

        @stream.setter
        def stream(self, _: Any) -> None:
            pass

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escaped(super().format(record))

    handler = CurrentStderr()
    handler.setFormatter(Plain("%(levelname)s %(message)s"))
    logger = logging.getLogger("toolmem")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def exit_code(response: FlowResponse) -> int:
    """0 success; 1 partial, failed or not found; 3 stopped by the budget."""
    if response.success and not response.metadata.get("partial"):
        return 0
    return 3 if response.metadata.get("stopped_by") == "budget" else 1
