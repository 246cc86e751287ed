"""`toolmem tools`: the tools that a workspace knows, their figures and their guidance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import AsJson, Config, Overrides, asked, print_json, print_table, say, tell

if TYPE_CHECKING:
    from toolmem.operations.known_tools import ToolOverview

Workspace = Annotated[str, typer.Option("--workspace", help="Whose tools.")]
_COLUMNS = ("tool", "calls", "kept", "failed", "success rate", "score", "new calls", "guidance")


def list_(
    overrides: Overrides = None, workspace: Workspace = "default", config: Config = None, as_json: AsJson = False
) -> None:
    """List the tools with their figures, by name. Rates and scores are of the kept calls.

    toolmem tools list

    toolmem tools list --workspace team --json
    """
    from toolmem.operations.known_tools import tools

    found = asked(tools, {"workspace_id": workspace}, config, overrides, reads=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
    elif found:
        print_table("Tools", _COLUMNS, [_row(each) for each in found], numeric=frozenset(_COLUMNS[1:-1]))
    else:
        say(f"workspace {workspace!r} knows no tool")


def show(
    tool: Annotated[str, typer.Argument(help="The tool's name, as `toolmem tools list` shows it.")],
    overrides: Overrides = None,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show a tool's figures and its guidance. Exit code 1 where the workspace does not know it.

    toolmem tools show search
    """
    from toolmem.operations.known_tools import tool as look_up

    given = {"tool_name": tool, "workspace_id": workspace}
    found = asked(look_up, given, config, overrides, reads=True)
    if found is None:
        say(f"workspace {workspace!r} does not know the tool {tool!r}; `toolmem tools list` shows the names")
        raise typer.Exit(1)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for column, cell in zip(_COLUMNS, _row(found), strict=True):
        tell(f"{column:<14}{cell}")
    tell(f"\n{found.guidance or 'no guidance yet'}")


def _row(found: ToolOverview) -> tuple[str, ...]:
    window = found.window
    created = found.guidance_created_at
    return (
        *(found.tool_name, f"{found.calls_ever:,}", f"{window.calls:,}", f"{window.failures:,}"),
        *(_figure(window.success_rate, ".1%"), _figure(window.avg_score, ".2f"), f"{found.new_calls:,}"),
        f"{created:%Y-%m-%d %H:%M} UTC" if created else "none yet",
    )


def _figure(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)
