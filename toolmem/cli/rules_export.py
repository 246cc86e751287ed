"""`toolmem rules export`: the rules that stop calls, in the forms of other guards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolmem.cli.console import Config, Overrides, counted, say, tell
from toolmem.cli.rules_commands import Workspace, with_rules

if TYPE_CHECKING:
    from toolmem.rules.exports import ExportFormat, LeftOutRule


def export(
    to: Annotated[str, typer.Option("--to", help="claude-code, hookify or cedar.")],
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the files; without it they are printed.")
    ] = None,
    workspace: Workspace = "default",
    config: Config = None,
) -> None:
    """Print the rules that stop calls as Claude Code's permissions, hookify's files or Cedar's policies.

    What does not fit is named, with the reason: those rules go on to hold where toolmem guards.

    toolmem rules export --to claude-code

    toolmem rules export --to hookify --out .claude
    """
    from toolmem.rules.exports import export_rules

    chosen: ExportFormat = to  # type: ignore[assignment]  # `export_rules` refuses what is none
    export_rules((), chosen)  # before the store is opened
    rules, _ = with_rules(lambda store: store.all_rules(), workspace, config, overrides)
    done = export_rules(rules, chosen)
    for name, text in done.files.items():
        if out is None:
            tell(text.rstrip("\n"))
        else:
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text, encoding="utf-8")
    if out is not None:
        say(f"wrote {counted(len(done.files), 'file')} to {out}")
    _tell_left_out(done.left_out)


def _tell_left_out(left_out: list[LeftOutRule]) -> None:
    from toolmem.rules.section import tool_to_type

    if left_out:
        say("not exported, rules and parts of rules:")
    for each in left_out:
        say(f"  {each.rule.id[:8]} {tool_to_type(each.rule.tool_name)}: {each.rule.rule} ({each.why})")
