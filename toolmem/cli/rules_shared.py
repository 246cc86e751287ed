"""What the commands of `toolmem rules` share: options, the rule store, rules by the beginning of their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolmem.cli.console import logs_to_stderr, print_table, say
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.models import ToolMemoryRule
    from toolmem.rules.rule_store import ToolMemoryStore

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


T = TypeVar("T")
Workspace = Annotated[str, typer.Option("--workspace", help="Whose rules.")]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids, or their beginnings; dotted overrides may follow.")
]


def with_rules(
    work: Callable[[ToolMemoryStore], Awaitable[T]],
    workspace: str,
    config: list[Path] | None,
    overrides: Sequence[str] | None,
) -> T:
    """Run `work` on the rule store that the configuration names."""

    async def whole() -> T:
        from toolmem.app import ToolMemApp
        from toolmem.flow.checks import check_workspace
        from toolmem.ops import ToolRulesPromptOp
        from toolmem.ops.rule_store import rule_store

        async with ToolMemApp(config, overrides or ()) as app:
            return await work(await rule_store(app.services, ToolRulesPromptOp(), check_workspace(workspace)))

    with logs_to_stderr():
        return asyncio.run(whole())


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """(ids, overrides)"""
    ids = [word for word in words if "=" not in word]
    if not ids:
        raise RequestError("id: expected the id of a rule; `toolmem rules list` shows them", field="id")
    return ids, [word for word in words if "=" in word]


def with_id(rules: Sequence[ToolMemoryRule], given: str) -> ToolMemoryRule | None:
    """By its id, or by the beginning of it. Raises RequestError where several begin so."""
    from toolmem.rules.identity import id_meant

    meant = id_meant([rule.id for rule in rules], given)
    return next((rule for rule in rules if rule.id == meant), None)


def exit_where_missing(wanted: Sequence[str], found: Sequence[Any], workspace: str) -> None:
    missing = [each for each, rule in zip(wanted, found, strict=True) if rule is None]
    for each in missing:
        say(f"no rule has the id {each!r}; `toolmem rules list --all --workspace {workspace}` shows the ids")
    if missing:
        raise typer.Exit(1)
