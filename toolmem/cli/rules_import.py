"""`toolmem rules import`: a team's file of rules, shown as what it changes, and taken in once a person agrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolmem.cli.console import Config, Overrides, counted, say, tell
from toolmem.cli.rules_commands import Workspace, with_rules
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.team_file import TeamFile
    from toolmem.rules.team_import import TeamChange

_MARKS = {"added": "+", "changed": "~", "narrowed": "!", "dropped": "-"}
_MOST_PROBLEMS = 20
_LONGEST = 300  # characters of a sentence, of a condition


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `toolmem rules export` writes it.")],
    overrides: Overrides = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, for scripts; refused below an agent.")] = False,
    workspace: Workspace = "default",
    config: Config = None,
) -> None:
    """Show what a file of rules changes, ask, and take it in: rules that it adds, and those that it lets bind more.

    You are asked once for each state of the file. What the file dropped or narrowed goes on to hold, and you are told
    how to let it go. A rule that cannot be read is named with its line, and the others are taken in: exit code 1.

    toolmem rules import rules.yaml
    """
    from toolmem.rules.team_file import team_file_at

    team = team_file_at(file)
    unput = with_rules(lambda rules: _imported(rules, team, yes=yes), workspace, config, overrides)
    problems = [*team.problems, *unput]
    for each in problems[:_MOST_PROBLEMS]:
        say(f"toolmem: not imported: {each}")
    if len(problems) > _MOST_PROBLEMS:
        say(f"toolmem: and {counted(len(problems) - _MOST_PROBLEMS, 'problem')} more")
    if problems:
        raise typer.Exit(1)


async def _imported(rules: RuleStore, team: TeamFile, *, yes: bool) -> list[str]:
    """What could not be put."""
    from toolmem.cli.last_look import note_look
    from toolmem.rules.kept_rules import location_of
    from toolmem.rules.team_import import import_change, team_changes

    now = rules.clock.now()
    changes = team_changes(team, (await rules.all_rules())[0], now)
    for change in changes:
        tell(_in_words(change))
    if not changes:
        say("nothing changes")
        return []
    _require_consent(changes, team, (location_of(rules.store), rules.workspace), yes=yes)
    problems = []
    for change in changes:
        try:
            if told := await import_change(rules, change):
                say(f"toolmem: {told}")
        except RequestError as error:
            problems.append(f"{_in_words(change)}: {error}")
    note_look(location_of(rules.store), rules.workspace, now, team.digest)
    say(f"imported {counted(sum(change.restricts for change in changes) - len(problems), 'rule')}")
    return problems


def _require_consent(changes: Sequence[TeamChange], team: TeamFile, place: tuple[str, str], *, yes: bool) -> None:
    """Exits with code 1 where nobody agreed."""
    from toolmem.cli.last_look import last_look
    from toolmem.cli.terminal import evidence_at_terminal, refuse_agents

    refuse_agents("and the rules are its user's")
    if yes or last_look(*place, team.digest) is not None or not any(change.restricts for change in changes):
        return
    if evidence_at_terminal("Take these rules in?") is None:
        say("toolmem: nothing was changed: run it in a terminal, which asks you, or with --yes")
        raise typer.Exit(1)


def _in_words(change: TeamChange) -> str:
    from toolmem.guard.condition_words import in_words
    from toolmem.readers.plain_text import plain
    from toolmem.rules.section import tool_to_type

    rule = change.rule or change.before
    assert rule is not None
    told = f"{_MARKS[change.kind]} {plain(tool_to_type(rule.tool_name), 200)}: {plain(rule.rule, _LONGEST)}"
    if change.rule is None:
        return f"{told} ({change.kind})"
    check = change.rule.check
    meant = "" if check.when is None else f": {plain(in_words(check.when), _LONGEST)}"
    return f"{told} ({change.kind}: {change.rule.priority}, {check.effect}{meant})"
