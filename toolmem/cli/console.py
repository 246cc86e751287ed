"""What the commands share on a terminal: options, progress, tables."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from toolmem.errors import RequestError
from toolmem.flow.progress import ProgressLine
from toolmem.readers.plain_text import counted, escaped, escaped_json, name_shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from toolmem.app import ToolMemApp
    from toolmem.models import FlowResponse
    from toolmem.operations.operation import Operation

__all__ = [
    "AsJson",
    "Config",
    "Overrides",
    "ProgressLine",
    "asked",
    "cell_shown",
    "counted",
    "exit_code",
    "in_app",
    "logs_to_stderr",
    "print_json",
    "print_json_text",
    "print_table",
    "require_file",
    "require_store",
    "say",
    "tell",
]

P = ParamSpec("P")
T = TypeVar("T")

Config = Annotated[
    list[Path] | None, typer.Option("--config", help="A configuration file (YAML); may be given several times.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OVERRIDE]...", help="Dotted overrides, e.g. llm.default.backend=dry_run"),
]
_MOST_PARTS = 3  # of a table whose columns go on below

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def say(text: str) -> None:
    """A message for people: stderr."""
    print(escaped(text), file=sys.stderr)


def tell(text: str) -> None:
    """A result for people: stdout."""
    print(escaped(text))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """A result as JSON on stdout; times and other values without a form of their own as text."""
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
    """Print a table on stdout; a pipe gets every column whole, where COLUMNS does not say how wide it is.

    On a terminal that is too narrow for the words of the columns, they go on below, or each row is a block of lines.
    `style`: of a cell, by its column.
    """
    from rich.console import Console
    from rich.text import Text

    is_bounded = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    console = Console(width=None if is_bounded else 200, highlight=False)
    cells = [[cell_shown(column, cell) for column, cell in zip(columns, row, strict=True)] for row in rows]
    first_figure = next((at for at, name in enumerate(columns) if name in numeric), 0)
    shown = [
        _Column(name, [Text(row[at], style=style(name, row[at])) for row in cells], name in numeric, at < first_figure)
        for at, name in enumerate(columns)
    ]
    parts = _side_by_side(shown, console.width) if is_bounded else [shown]
    console.print(Text(title, style="bold"), soft_wrap=True)
    for part in parts:
        _print_columns(console, part)
    if not parts:
        _print_blocks(console, shown)
    for note in notes:
        console.print(Text(escaped(note)))


class _Column:
    """`least`: its width without a break inside a word, a figure, or a name beside figures."""

    def __init__(self, name: str, cells: list[Text], numeric: bool, names: bool) -> None:
        from rich.cells import cell_len

        self.name, self.cells, self.numeric = name, cells, numeric
        texts = [cell.plain for cell in cells]
        words = texts if numeric or names or name == "tool" else [word for text in texts for word in text.split()]
        self.least = max(map(cell_len, [*name.split(), *words]))
        self.whole = max(map(cell_len, [name, *texts]))


def _side_by_side(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """The columns in parts that fit: the names before the first figure stand in each. None fit: a block per row."""
    names = [*takewhile(lambda column: not column.numeric, columns)]
    parts = [names[:]]
    for column in columns[len(names) :]:
        if names and _least(parts[-1]) + 3 + column.least > width:
            parts.append(names[:])
        parts[-1].append(column)
    return parts if len(parts) <= _MOST_PARTS and all(_least(part) <= width for part in parts) else []


def _least(columns: Sequence[_Column]) -> int:
    return sum(3 + column.least for column in columns)


def _print_columns(console: Console, columns: Sequence[_Column]) -> None:
    from rich import box
    from rich.table import Table

    widths = [min(column.whole, console.width) for column in columns]
    while sum(widths) + 3 * len(widths) > console.width:  # what can give most gives, down to its words
        spare, at = max((width - columns[at].least, at) for at, width in enumerate(widths))
        if spare <= 0:
            break
        widths[at] -= 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column.name, justify="right" if column.numeric else "left", overflow="fold", width=width)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    console.print(table)


def _print_blocks(console: Console, columns: Sequence[_Column]) -> None:
    """Lines are left to the terminal to wrap, so that a sentence or an id can be copied whole; elsewhere they are
    broken between words.
    """
    from textwrap import wrap

    from rich.text import Text

    width = max(len(column.name) for column in columns) + 2
    left = max(console.width - width, width)
    for row in zip(*(column.cells for column in columns), strict=True):
        console.print()
        for column, cell in zip(columns, row, strict=True):
            lines = [cell.plain] if cell.plain else []
            if not sys.stdout.isatty():
                lines = wrap(cell.plain, left, break_long_words=False, break_on_hyphens=False)
            for name, line in zip([column.name, *[""] * len(lines)], lines, strict=False):
                console.print(Text(f"{name:<{width}}").append(line, style=cell.style), soft_wrap=True)
    console.print()


@contextmanager
def logs_to_stderr() -> Iterator[None]:
    """Warnings of toolmem as plain lines on stderr, while a command runs."""
    import logging

    class LinesToStderr(logging.Handler):
        """Asks for stderr at each line: while a progress line moves there, it is the one that keeps clear of it."""

        def emit(self, record: logging.LogRecord) -> None:
            with suppress(OSError, ValueError):  # stderr is closed
                say(self.format(record))

    handler = LinesToStderr()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("toolmem")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def in_app(
    work: Callable[[ToolMemApp], Awaitable[T]],
    config: Sequence[Path] | None,
    overrides: Sequence[str] | None,
    *,
    reads: bool = False,
) -> T:
    """What `work` answers on an app of this configuration, which is closed behind it. Raises ToolMemError.

    `reads`: it only looks at the default store, and one that is not there is told.
    """

    async def whole() -> T:
        from toolmem.cli.store_meant import app_here, tell_missing

        async with app_here(config, overrides) as app:
            if reads:
                tell_missing(app)
            return await work(app)

    with logs_to_stderr():
        answer = asyncio.run(whole())
    from toolmem.hosts.detached import catch_up_with_what_is_left

    catch_up_with_what_is_left()
    return answer


def asked(
    operation: Operation[P, T],
    given: Mapping[str, Any],
    config: Sequence[Path] | None,
    overrides: Sequence[str] | None,
    *,
    reads: bool = False,
) -> T:
    """What an operation that is no flow answers. `reads`: it only looks at the store."""

    async def work(app: ToolMemApp) -> T:
        return await operation.run(app.services, operation.checked(given))

    return in_app(work, config, overrides, reads=reads)


def require_store(app: ToolMemApp, name: str) -> None:
    """Raises RequestError where the configured store is a file that is not there."""
    if path := app.services.places.file_of(name):
        require_file(path)


def require_format(name: str | None) -> None:
    """Raises RequestError where no format of recordings is called so; None: recognized by content."""
    from toolmem.formats.files import FORMATS

    if name is not None and name not in FORMATS:
        raise RequestError(f"--format: expected {' or '.join(FORMATS)}, got {name!r}", field="format")


def require_file(path: str) -> None:
    """Raises RequestError where the store's file is not there."""
    if path != ":memory:" and not Path(path).expanduser().exists():
        raise RequestError(f"there is no store {path}", field="store")


def exit_code(response: FlowResponse) -> int:
    """0 success; 1 partial, failed or not found; 3 stopped by the budget."""
    if response.success and not response.metadata.get("partial"):
        return 0
    return 3 if response.metadata.get("stopped_by") == "budget" else 1
