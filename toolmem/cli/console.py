"""What the commands share on a terminal: options, progress, tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from toolmem.flow.events import Event
    from toolmem.schema import FlowResponse

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
    print(text, file=sys.stderr)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


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
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    for note in notes:
        console.print(Text(note))


class ProgressLine:
    """Progress of a run on stderr: a live line in a terminal, one line per phase elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._terminal = sys.stderr.isatty()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = None

    def phase(self, name: str) -> None:
        if not self._terminal:
            say(f"{name} ...")
        elif self._task is None:
            self._task = self._progress.add_task(name, total=None)
        else:
            self._progress.reset(self._task, total=None, description=name)

    def __call__(self, event: Event) -> None:
        """A listener of the app's events."""
        if event.kind == "notice":
            if self._terminal:
                self._progress.console.print(event.message, highlight=False)
            else:
                say(event.message)
        elif event.kind == "progress" and self._terminal and self._task is not None:
            self._progress.update(self._task, completed=event.done, total=event.total)

    def __enter__(self) -> ProgressLine:
        if self._terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._progress.stop()


@contextmanager
def logs_to_stderr() -> Iterator[None]:
    """Warnings of toolmem as plain lines on stderr, while a command runs."""
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("toolmem")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def exit_code(response: FlowResponse) -> int:
    """0 success; 1 partial, failed or not found; 3 stopped by the budget."""
    if response.success:
        return 0
    return 3 if response.metadata.get("stopped_by") == "budget" else 1
