"""What the commands share on a terminal: options, progress, tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.flow.progress import ProgressLine
from toolmem.readers.plain_text import escaped, escaped_json, name_shown

if TYPE_CHECKING:
    from toolmem.schema import FlowResponse

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


def counted(number: int, noun: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


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
) -> None:
    """A table on stdout; its width fits the terminal, and a pipe gets every column whole."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_shown(column, cell)) for column, cell in zip(columns, row, strict=True)))
    console.print(table)
    for note in notes:
        console.print(Text(escaped(note)))


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
