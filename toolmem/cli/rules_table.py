"""Tables of rules; on a terminal a priority has its colour."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.cli.console import cell_shown

if TYPE_CHECKING:
    from rich.text import Text

    from toolmem.schema import ToolMemoryRule

_STYLES = {"critical": "bold red", "high": "yellow", "normal": "default"}


def print_rules(rules: Sequence[ToolMemoryRule], *, status: bool = False) -> None:
    """`status`: with a column of it."""
    rows = [
        (
            *(rule.tool_name, rule.priority, *([rule.status] if status else []), rule.rule, rule.by, rule.source),
            *(", ".join(rule.tags), rule.id[:8], rule.updated_at.strftime("%Y-%m-%d %H:%M")),
        )
        for rule in rules
    ]
    columns = ("tool", "priority", *(["status"] if status else []), "rule", "by", "source", "tags", "id")
    print_table("Rules", (*columns, "updated (UTC)"), rows)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """On stdout; cells of the column `priority` are coloured."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("id", "priority"))
    for row in rows:
        table.add_row(*(_cell(column, cell) for column, cell in zip(columns, row, strict=True)))
    console.print(table)


def _cell(column: str, cell: str) -> Text:
    from rich.text import Text

    return Text(cell_shown(column, cell), style=_STYLES.get(cell, "") if column == "priority" else "")
