"""`toolmem rules`: look at rules, put, approve and delete them, see the prompt's block, run capture over turns."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolmem.cli.console import AsJson, Config, Overrides, asked, counted, in_app, print_json, say, tell
from toolmem.cli.rules_listed import (
    RulesAt,
    print_listed,
    print_rule,
    print_rules,
    rules_everywhere,
    where_of,
)
from toolmem.errors import LiftProposed, RequestError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.models import ToolMemoryRule
    from toolmem.rules.rule_store import RuleStore
    from toolmem.rules.stored_rules import DamagedRule

T = TypeVar("T")
Workspace = Annotated[str, typer.Option("--workspace", help="Whose rules.")]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids, or their beginnings; dotted overrides may follow.")
]
ToolOption = Annotated[str | None, typer.Option("--tool", help="Only this tool; case does not matter.")]
_NAMED = 5  # other tools in a message


def list_(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL]... [OVERRIDE]...", help="Only these tools; dotted overrides.")
    ] = None,
    tool: ToolOption = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also rules that wait for you (proposed), and those that hold no longer.")
    ] = False,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """List the rules: those that are checked, those you are asked about, and reminders; what is new to you first.

    Critical and high ones are in every prompt. Those of your own store bind everywhere.

    toolmem rules list send_email

    toolmem rules list --all
    """
    tools = [tool] if tool is not None else [word for word in overrides or () if "=" not in word]

    settings = [word for word in overrides or () if "=" in word]
    looked = datetime.now(UTC)
    found, torn = _rules_here(tools, workspace, config, settings)
    damaged = 0 if tools else len(torn)
    known = found[0].rules
    shown = [
        place._replace(rules=[rule for rule in place.rules if every or rule.status == "active"]) for place in found
    ]
    if as_json:
        print_json([rule.model_dump(mode="json") for rule in shown[0].rules])
    else:
        print_listed(shown, workspace, status=every, looked=None if tools else looked)
        if not any(place.rules for place in shown):
            say(f"workspace {workspace!r} has no rules" + (f" for {', '.join(tools)}" if tools else ""))
    waiting = sum(rule.status == "proposed" for rule in known)
    if waiting and not every:
        wait = "rule waits" if waiting == 1 else "rules wait"
        say(f"{waiting} {wait} for you: `toolmem rules review`, then `toolmem rules approve ID` or `reject ID`")
    if damaged:
        were, their = ("was", "its id") if damaged == 1 else ("were", "their ids")
        say(f"{counted(damaged, 'damaged record')} {were} left out; `toolmem rules delete` takes {their}")


def show(
    ids: Ids,
    tool: ToolOption = None,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show rules by their ids, or all those of a tool: what each stops and lets through, who said it, every field.

    Exit code 1 where one is not found.

    toolmem rules show 4e2cc2ca

    toolmem rules show send_email
    """
    words, overrides = split(ids)

    asks = [tool] if tool else []
    places, _ = _rules_here(asks, workspace, config, overrides)
    known, wanted = _narrowed([rule for place in places for rule in place.rules], words)
    found = [with_id(known, each) for each in wanted]
    shown = [rule for rule in found if rule is not None]
    if as_json:
        print_json([rule.model_dump(mode="json") for rule in shown])
    else:
        for rule in shown:
            print_rule(rule)
    exit_where_missing(wanted, found, workspace)


def add(
    tool: Annotated[str, typer.Argument(help="The tool's name, as your agent knows it.")],
    rule: Annotated[str, typer.Argument(help="The rule, one sentence.")],
    overrides: Overrides = None,
    priority: Annotated[str | None, typer.Option("--priority", help="critical, high or normal.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", help="user_explicit, post_turn or programmatic.", show_default=False)
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="May be given several times.")] = None,
    effect: Annotated[str | None, typer.Option("--effect", help="deny, ask or remind; read off the rule.")] = None,
    when: Annotated[
        str | None,
        typer.Option("--when", help="Which calls, as JSON: alternatives of tests, a schema of a call's view, or true."),
    ] = None,
    expires_at: Annotated[str | None, typer.Option("--expires-at", help="A time with a zone; then it ends.")] = None,
    id: Annotated[str, typer.Option("--id", help="The id of a rule to change; what is left out stays.")] = "",
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Put a rule: a new one, or a change of the one with this id or text. A new one is normal, from `user_explicit`.

    toolmem rules add send_email "never email Sarah at sarah@example.com" --priority critical

    toolmem rules add delete_file "ask me before you delete a file" --effect ask --when true

    toolmem rules add @shell "no forced pushes" --when '[{"command": "^git push", "word": "-f|--force"}]'
    """
    from toolmem.cli.terminal import put_as_its_user
    from toolmem.operations.tool_rules import put_rule

    given = {"tool_name": tool, "rule": rule, "priority": priority, "tags": tag, "workspace_id": workspace}
    chosen = source if source is not None or id else "user_explicit"
    given |= {"id": id or None, "source": chosen, "effect": effect, "when": _read_when(when), "expires_at": expires_at}

    async def work(app: ToolMemApp) -> ToolMemoryRule:
        try:
            return await put_rule.run(app.services, put_rule.checked(given))
        except LiftProposed as proposed:
            return await put_as_its_user(await app.rule_store(workspace), proposed, given)

    put = in_app(work, config, overrides)
    if as_json:
        print_json(put.model_dump(mode="json"))
    else:
        print_rules([put])
        say(_checked_as(put))
        if not put.eager:
            say("a normal rule is not in the prompt, it is recalled; --priority critical pins it")


def _read_when(given: str | None) -> Any:
    """What JSON it is. Raises RequestError."""
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise RequestError(
            f"when: not JSON: {given[:80]!r}; give a list of alternatives, a JSON Schema, or true", field="when"
        ) from None


def _checked_as(rule: ToolMemoryRule) -> str:
    from toolmem.guard.condition_words import in_words

    if rule.checked:
        return f"checked: {rule.effect}: {in_words(rule.when)}"
    return "it only reminds" + (f": {rule.unchecked}" if rule.unchecked else "")


def delete(ids: Ids, tool: ToolOption = None, workspace: Workspace = "default", config: Config = None) -> None:
    """Delete rules. Capture will not bring them back from the same sentence. Exit code 1 where one is not found.

    toolmem rules delete 4e2cc2ca
    """
    from toolmem.cli.terminal import as_its_user

    words, overrides = split(ids)
    rules_left: list[LiftProposed] = []

    async def work(rules: RuleStore) -> tuple[list[str], list[ToolMemoryRule | bool | None]]:
        every, damaged = await known_rules(rules, [tool] if tool else [])
        known, wanted = _narrowed(every, words)
        if len(words) == 1 and words != wanted:
            raise RequestError(f"id: {words[0]!r} is a tool; give the id of a rule", field="id")
        outcomes: list[ToolMemoryRule | bool | None] = []
        meant = {each: with_id(known, each) for each in wanted}
        own = await as_its_user(rules, [(rule, None) for rule in meant.values() if rule is not None])
        for each, rule in meant.items():
            if rule is not None:
                gone = await tried(own.delete_rule(rule.tool_name, rule.id), rules_left)
                outcomes.append(rule if gone else False if gone is None else None)
                continue
            torn = [record for record in damaged if record.key == f"rule/{each}"]
            for record in torn:
                await rules.delete_rule(record.namespace.removeprefix("tool-"), each)
            outcomes.append(bool(torn) or None)
        return wanted, outcomes

    wanted, found = with_rules(work, workspace, config, overrides)
    for rule in found:
        if rule is True:
            say("deleted a damaged record")
        elif rule:
            say(f"deleted {rule.id} of {rule.tool_name}: {rule.rule}")
    exit_where_proposed(rules_left)
    exit_where_missing(wanted, found, workspace)


def prompt(
    overrides: Overrides = None,
    tools: Annotated[
        str | None, typer.Option("--tools", help="Names, separated by commas; all tools that have rules by default.")
    ] = None,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Print the block of critical and high rules, as it stands in the system prompt; nothing where there is none.

    toolmem rules prompt --tools send_email,shell language=zh
    """
    from toolmem.operations.tool_rules import rules_for_prompt
    from toolmem.ops.tool_rules_prompt import read_prompt_tools

    given = {"tools": None if tools is None else list(read_prompt_tools(tools)), "workspace_id": workspace}
    pinned = asked(rules_for_prompt, given, config, overrides, reads=True)
    if as_json:
        print_json(pinned.model_dump(mode="json"))
    elif pinned.rendered:
        tell(pinned.rendered)
    else:
        known, _ = with_rules(lambda rules: rules.all_rules(), workspace, config, overrides)
        say(_nothing_pinned(workspace, tools, [rule.tool_name for rule in known if rule.eager]))


def _nothing_pinned(workspace: str, tools: str | None, others: Sequence[str]) -> str:
    if not others:
        return f"workspace {workspace!r} has no critical or high rules"
    names = list(dict.fromkeys(others))
    named = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"workspace {workspace!r} has no critical or high rules for {tools}; it has {len(others)} for {named}"


# ---------------------------------------------------------------- what they share


async def known_rules(rules: RuleStore, tools: Sequence[str]) -> tuple[list[ToolMemoryRule], list[DamagedRule]]:
    """Those of these tools and their classes (none given: of all), whatever their status; and the damaged records."""
    every, damaged = await rules.all_rules(inactive=True)
    return of_tools(every, tools), damaged


def of_tools(rules: Sequence[ToolMemoryRule], tools: Sequence[str]) -> list[ToolMemoryRule]:
    """Those of these tools and their classes; none given: all."""
    from toolmem.guard.tool_classes import scopes_of

    own = {name.strip().lower() for name in tools} | {scope for name in tools for scope in scopes_of(name)}
    return [rule for rule in rules if not own or rule.tool_name.lower() in own]


def _rules_here(
    tools: Sequence[str], workspace: str, config: Sequence[Path] | None, overrides: Sequence[str] | None
) -> tuple[list[RulesAt], list[DamagedRule]]:
    """Those of the configured store, whatever their status, then those of the user's own; the damaged records."""

    async def work(app: ToolMemApp) -> tuple[list[RulesAt], list[DamagedRule]]:
        from toolmem.flow.checks import check_workspace

        rules, damaged = await known_rules(await app.rule_store(check_workspace(workspace)), tools)
        path = app.services.places.file_of()
        found = [RulesAt(where_of(app), path, rules)]
        if (users := rules_everywhere(app, workspace)) is not None:
            found.append(users._replace(rules=of_tools(users.rules, tools)))
        return found, damaged

    return in_app(work, config, overrides, reads=True)


def _narrowed(rules: Sequence[ToolMemoryRule], words: Sequence[str]) -> tuple[Sequence[ToolMemoryRule], list[str]]:
    """(rules to choose from, ids): a tool's name may stand before ids, or alone for all its rules."""
    own = [rule for rule in rules if rule.tool_name.lower() == words[0].lower()]
    if not own:
        return rules, list(words)
    return own, list(words[1:]) or [rule.id for rule in own]


def with_rules(
    work: Callable[[RuleStore], Awaitable[T]],
    workspace: str,
    config: Sequence[Path] | None,
    overrides: Sequence[str] | None,
    *,
    reads: bool = False,
) -> T:
    """What `work` answers on the rule store that the configuration names. `reads`: as of `in_app`."""

    async def on_rules(app: ToolMemApp) -> T:
        from toolmem.flow.checks import check_workspace

        return await work(await app.rule_store(check_workspace(workspace)))

    return in_app(on_rules, config, overrides, reads=reads)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The ids and the dotted overrides among these words."""
    ids = [word for word in words if "=" not in word]
    if not ids:
        raise RequestError("id: expected the id of a rule; `toolmem rules list` shows them", field="id")
    return ids, [word for word in words if "=" in word]


def with_id(rules: Sequence[ToolMemoryRule], given: str) -> ToolMemoryRule | None:
    """By its id, or by the beginning of it. Raises RequestError where several begin so."""
    from toolmem.rules.rule_ids import id_meant

    meant = id_meant([rule.id for rule in rules], given)
    return next((rule for rule in rules if rule.id == meant), None)


async def tried(change: Awaitable[T], proposed: list[LiftProposed]) -> T | None:
    """What a change answers; None where it is only proposed, which is noted."""
    try:
        return await change
    except LiftProposed as error:
        proposed.append(error)
        return None


def exit_where_proposed(proposed: Sequence[LiftProposed]) -> None:
    """Say what was not changed, and how its user accepts it; then exit with code 1."""
    for each in proposed:
        say(f"toolmem: {each}")
    if proposed:
        raise typer.Exit(1)


def exit_where_missing(wanted: Sequence[str], found: Sequence[Any], workspace: str) -> None:
    """Name what was not found, and exit with code 1."""
    missing = [each for each, rule in zip(wanted, found, strict=True) if rule is None]
    for each in missing:
        say(f"no rule has the id {each!r}; `toolmem rules list --all --workspace {workspace}` shows the ids")
    if missing:
        raise typer.Exit(1)
