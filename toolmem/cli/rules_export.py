"""`toolmem rules export`: the rules that stop calls, as Claude Code's permissions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolmem.cli.console import Config, Overrides, say, tell
from toolmem.cli.rules_commands import Workspace, with_rules

if TYPE_CHECKING:
    from toolmem.rules.claude_permissions import LeftOutRule


def export(
    to: Annotated[Literal["claude-code"], typer.Option("--to", help="claude-code.")],
    overrides: Overrides = None,
    output: Annotated[Path | None, typer.Option("--output", help="A file; without it they are printed.")] = None,
    workspace: Workspace = "default",
    config: Config = None,
) -> None:
    """Print the rules that stop calls as Claude Code's permissions.

    What does not fit is named, with the reason: those rules go on to hold where toolmem guards.

    toolmem rules export --to claude-code
    """
    from toolmem.rules.claude_permissions import claude_permissions

    rules, _ = with_rules(lambda store: store.all_rules(), workspace, config, overrides)
    done = claude_permissions(rules)
    if output is None:
        tell(done.settings.rstrip("\n"))
    else:
        output.write_text(done.settings, encoding="utf-8")
    _tell_left_out(done.left_out)


def _tell_left_out(left_out: list[LeftOutRule]) -> None:
    from toolmem.rules.section import tool_to_type

    if left_out:
        say("not exported, rules and parts of rules:")
    for each in left_out:
        say(f"  {each.rule.id[:8]} {tool_to_type(each.rule.tool_name)}: {each.rule.rule} ({each.why})")
