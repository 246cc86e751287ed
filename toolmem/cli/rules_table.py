"""Tables of rules; on a terminal a priority has its colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.cli.console import print_table

if TYPE_CHECKING:
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
    print_table("Rules", (*columns, "updated (UTC)"), rows, style=priority_style)


def priority_style(column: str, cell: str) -> str:
    return _STYLES.get(cell, "") if column == "priority" else ""
