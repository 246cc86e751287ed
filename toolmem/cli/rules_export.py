"""`toolmem rules export`: the rules as a file that a team reviews, or as Claude Code's permissions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolmem.cli.console import Config, Overrides, say, tell
from toolmem.cli.rules_commands import Workspace, with_rules

if TYPE_CHECKING:
    from toolmem.rules.claude_permissions import LeftOutRule


def export(
    overrides: Overrides = None,
    to: Annotated[
        Literal["yaml", "claude-code"], typer.Option("--to", help="yaml, or claude-code for its permissions.")
    ] = "yaml",
    output: Annotated[Path | None, typer.Option("--output", help="A file; without it they are printed.")] = None,
    workspace: Workspace = "default",
    config: Config = None,
) -> None:
    """Write the rules that bind as one YAML file, for your team's repository; `toolmem rules import` takes them in.

    The same rules give the same bytes. With `--to claude-code`: those that stop calls, as a settings.json of Claude
    Code; what does not fit is named and goes on to hold where toolmem guards.

    toolmem rules export --output rules.yaml

    toolmem rules export --to claude-code
    """
    from toolmem.rules.claude_permissions import claude_permissions
    from toolmem.rules.team_file import as_team_file

    rules, _ = with_rules(lambda store: store.all_rules(), workspace, config, overrides)
    done = claude_permissions(rules)
    text = done.settings if to == "claude-code" else as_team_file(rules, datetime.now(UTC))
    if output is None:
        tell(text.rstrip("\n"))
    else:
        output.write_bytes(text.encode())
    if to == "claude-code":
        _tell_left_out(done.left_out)


def _tell_left_out(left_out: list[LeftOutRule]) -> None:
    from toolmem.rules.section import tool_to_type

    if left_out:
        say("not exported, rules and parts of rules:")
    for each in left_out:
        say(f"  {each.rule.id[:8]} {tool_to_type(each.rule.tool_name)}: {each.rule.rule} ({each.why})")
