"""`toolmem note`: a model notes what its user demands, or takes a demand back; as JSON, from standard input."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolmem.cli.console import Config, Overrides, in_app, print_json

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.rules.noted_demands import NotedDemand

_MOST = 100_000  # characters of a note
_EXITS = {"kept": 0, "asked": 0, "proposed": 1, "refused": 2}
_HELP = """\
toolmem note [--lift] [--workspace NAME] [--config FILE] [OVERRIDE]...

Reads one note of what the user demands, a JSON object, from standard input:

@COMMAND@ <<'TOOLMEM'
{"quote": "never push to main", "effect": "deny", "lasting": "always", "tools": ["Bash"],
 "when": [{"command": "^git push\\\\b", "word": "(.*:)?main"}],
 "stops": [{"tool": "Bash", "arguments": {"command": "git push origin main"}}],
 "passes": [{"tool": "Bash", "arguments": {"command": "git push origin dev"}}]}
TOOLMEM

With --lift it takes an earlier demand back; `lifted` names that by a few of its words or its id:

@COMMAND@ --lift <<'TOOLMEM'
{"quote": "you can push to main again", "lifted": "never push to main"}
TOOLMEM

In an agent that toolmem's hooks hold, the hook verifies the note against what the user typed and keeps it, where the
command is just this: nothing before it, nothing behind it, the end word in quotation marks. Run by anybody else it is a
proposal, which binds nothing until the user approves it (`toolmem rules review`).

Prints what became of it as JSON: outcome, told (for the user, one line), why, problems (what to change).
Exit code: 0 kept, 1 proposed, 2 refused.

"""


def note(
    overrides: Overrides = None,
    lift: Annotated[bool, typer.Option("--lift", help="The user takes an earlier demand back.")] = False,
    workspace: Annotated[str, typer.Option("--workspace", help="Whose rules.")] = "default",
    config: Config = None,
    help_: Annotated[bool, typer.Option("--help", "-h", help="Examples and the whole contract.")] = False,
) -> None:
    """Note a demand of the user, as JSON from standard input; `--lift`: take one back. Exit code 0, 1 or 2.

    toolmem note < note.json
    """
    if help_:
        from toolmem.demands.contract import contract

        command = _as_called()
        print(_HELP.replace("@COMMAND@", command) + contract(f"run `{command}`"))
        return
    text = sys.stdin.read(_MOST + 1)
    outcome = _decided_by_hook(text) or _proposed(text, lift, workspace, config, overrides)
    print_json(outcome)
    raise typer.Exit(_EXITS.get(str(outcome.get("outcome")), 2))


def _as_called() -> str:
    """The words by which this was run; of an interpreter those that hooks let through without a question."""
    from toolmem.hosts.note_command import command_line

    return "toolmem note" if Path(sys.argv[0]).stem == "toolmem" else command_line()


def _decided_by_hook(text: str) -> dict[str, Any] | None:
    from toolmem.hosts.kept_prompts import PromptsFile

    heard = PromptsFile(busy_timeout=1.0)
    try:
        return heard.outcome_of(text)
    finally:
        heard.close()


def _proposed(text: str, lift: bool, workspace: str, config: Any, overrides: Any) -> dict[str, Any]:
    """Nothing here heard the user: whoever runs this speaks as an agent."""
    from toolmem.hosts.noted_by_hook import as_outcome, read_given

    given = read_given(text) if len(text) <= _MOST else f"longer than {_MOST:,} characters"
    if isinstance(given, str):
        return {"outcome": "refused", "problems": [{"field": "note", "problem": given}]}

    async def work(app: ToolMemApp) -> NotedDemand:
        from toolmem.rules.lifted_demands import lift_demand
        from toolmem.rules.noted_demands import DemandContext, note_demand

        rules = (await app.rule_store(workspace)).for_agent()
        if lift:
            return await lift_demand(rules, str(given.get("quote")), str(given.get("lifted")), DemandContext(None))
        return await note_demand(rules, given, DemandContext(None, _tools(given), noted_by="an agent"))

    return as_outcome(in_app(work, config, overrides))


def _tools(given: Mapping[str, Any]) -> list[str]:
    """Those that the note names: nothing here knows which the agent has."""
    from toolmem.hosts.noted_by_hook import tools_named

    return tools_named(given)
