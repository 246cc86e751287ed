"""`toolmem rules`: show, change and capture what the user demands."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from toolmem.cli import options
from toolmem.cli.console import print_error, print_items, print_json, user_actor
from toolmem.errors import RequestError
from toolmem.formats.chat import is_conversation, read_chat, text_of, typed_text
from toolmem.formats.files import read_json, read_lines, replace_file
from toolmem.memory.toolmem import ToolMem
from toolmem.models.rules import Effect, Priority, ToolMemoryRule
from toolmem.operations.rules import schemas_of
from toolmem.rules import team_file
from toolmem.rules.capture import ToolMemoryCaptureHook, describe_effect
from toolmem.rules.identity import find_rule
from toolmem.rules.reader import too_long
from toolmem.rules.turn import Captured, Turn, read_turn
from toolmem.text.display import plain, visible


@click.group()
def rules() -> None:
    """Show and change what the user demands of agents."""


@rules.command("list")
@click.argument("tool", required=False)
@click.option("--session", default="", help="Also what holds in this session alone.")
@options.with_memory()
@options.as_json
def list_rules(memory: ToolMem, tool: str | None, session: str, as_json: bool) -> None:
    """List the rules, of one tool or of all.

    \b
    Examples:
      toolmem rules list
      toolmem rules list send_email --json
    """
    found = memory.rules.list_rules(tool) if tool else memory.rules.all_rules(session).rules
    columns = ("id", "tool", "priority", "effect", "said by", "rule")
    print_items(found, as_json, columns, _rule_row, nothing="there are no rules")


@rules.command("show")
@click.argument("rule_id")
@options.with_memory()
@options.as_json
def show_rule(memory: ToolMem, rule_id: str, as_json: bool) -> None:
    """Show a rule with its conditions and changes. An id's beginning is enough."""
    rule = find_rule(_all_rules(memory), rule_id)
    if as_json:
        print_json(rule)
        return
    for name, value in msgspec.to_builtins(rule).items():
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, ""):
                text = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
                click.echo(f"{name:<11} {visible(text, 2_000)}")


@rules.command("add")
@click.argument("tool")
@click.argument("text")
@click.option(
    "--priority", type=click.Choice(get_args(Priority)), default="critical", show_default=True
)
@click.option(
    "--effect",
    type=click.Choice(get_args(Effect)),
    help="Left out, with no --when: the text is read as a sentence.",
)
@click.option("--when", help="Alternatives of tests, as JSON.")
@click.option("--unless", help="The same: what they hold for is let through.")
@options.with_memory(exists=False)
def add_rule(
    memory: ToolMem, tool: str, text: str, when: str | None, unless: str | None, **more: Any
) -> None:
    """Add a rule on a tool, or on a class of tools such as @shell.

    \b
    Examples:
      toolmem rules add send_email "Never email Bob"
      toolmem rules add @shell "Never push to main" --effect deny \\
          --when '[{"command": "^git push", "word": "(.*:)?main"}]'
    """
    put = memory.acting_as(user_actor()).tool_rule_put
    more |= {"when": _alternatives("--when", when), "unless": _alternatives("--unless", unless)}
    made = put(tool, text, source="user_explicit", **more)
    click.echo(made.id)
    effect = describe_effect([made]) if made.status == "active" else "waits for the user"
    click.echo(plain(effect or "a reminder: no call is checked", 600), err=True)


@rules.command("delete")
@click.argument("rule_id")
@options.with_memory()
def delete_rule(memory: ToolMem, rule_id: str) -> None:
    """Delete a rule. Exit code 1: it only waits, as no user was seen to ask for it.

    \b
    Example:
      toolmem rules delete 1f0c9a
    """
    rule = find_rule(_all_rules(memory), rule_id)
    after = memory.rules.delete(rule, user_actor())
    if after.status != "deleted":
        print_error("the store is guarded: the deletion waits, run this in a terminal of yours")
        sys.exit(1)
    click.echo(f"deleted: {plain(rule.rule, 300)}")


@rules.command("prompt")
@click.argument("tools", nargs=-1)
@options.with_memory(options.config, options.store, options.workspace())
def show_prompt(memory: ToolMem, tools: tuple[str, ...]) -> None:
    """Print the block that a system prompt pins, for these tools or for all."""
    text = memory.tool_rules_for_prompt(list(tools) or None).rendered
    for line in text.splitlines():
        click.echo(plain(line, 3_000))


@rules.command("review")
@options.with_memory()
@options.as_json
def review(memory: ToolMem, as_json: bool) -> None:
    """List what agents and programs ask to be kept or changed."""
    found = memory.rules.requests()
    columns = ("id", "tool", "asked for", "rule")
    print_items(found, as_json, columns, _request_row, nothing="nothing waits for you")


@rules.command("approve")
@click.argument("rule_id")
@options.with_memory()
def approve(memory: ToolMem, rule_id: str) -> None:
    """Do what is asked for a rule; needs a terminal of the user in a guarded store."""
    rule = find_rule(memory.rules.requests(), rule_id)
    after = memory.rules.accept(rule, user_actor())
    if after.request is not None or after.status == "request":
        print_error("the store is guarded: it goes on waiting, run this in a terminal of yours")
        sys.exit(1)
    click.echo(f"done: {plain(rule.rule, 300)}")


@rules.command("reject")
@click.argument("rule_id")
@options.with_memory()
def reject(memory: ToolMem, rule_id: str) -> None:
    """Leave a rule as it is, or drop one that was only asked for."""
    rule = find_rule(memory.rules.requests(), rule_id)
    memory.rules.reject(rule, user_actor())
    click.echo(f"rejected: {plain(rule.rule, 300)}")


@rules.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@options.with_memory()
def export_rules(memory: ToolMem, file: Path) -> None:
    """Write the rules that stop calls for good into FILE; its other rules and comments stay."""
    data = team_file.read_bytes(file) if file.exists() else b""
    entries, comments = team_file.read_team_file(data, file.name)
    rules = memory.rules.all_rules().rules
    entries += [team_file.entry_of(rule) for rule in rules if rule.is_checked]
    data = team_file.write_team_file(entries, comments).encode()
    entries, _ = team_file.read_team_file(data, file.name)  # raises for what nobody could import
    try:
        replace_file(file.resolve(), data)
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror}", "file") from error
    click.echo(f"{plain(str(file))} holds {len(entries)} rule(s)")


@rules.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask. Without a terminal, what loosens waits.")
@options.with_memory(exists=False)
def import_rules(memory: ToolMem, file: Path, yes: bool) -> None:
    """Show what FILE changes of the rules, ask, and change it. What it lacks is named, and stays.

    Exit code 1: something waits. FILE is a team's file of rules. Calls of other programs: toolmem
    import; a dump of a workspace: toolmem store import.

    \b
    Example:
      toolmem rules import toolmem.rules.yaml
    """
    user = user_actor()
    entries, _ = team_file.read_team_file(team_file.read_bytes(file), file.name)
    found = team_file.compare(entries, memory.rules)
    click.echo("\n".join(map(str, found)))
    changes = [each for each in found if each.kind in team_file.CHANGES]
    if changes and not yes and not (user.evidence and click.confirm("Change this?")):
        print_error("nothing is changed: run this in a terminal of yours, or with --yes")
        sys.exit(1)
    done = [each.apply(memory.rules, user if user.evidence else None) for each in changes]
    waiting = sum(rule.request is not None for rule in done)
    click.echo(f"{len(changes) - waiting} rule(s) changed; {waiting} wait for `rules approve`")
    sys.exit(1 if waiting else 0)


@rules.command("capture")
@click.option("--turns", type=click.Path(exists=True), help="JSON Lines of turns.")
@click.option("--conversations", type=click.Path(exists=True), help="The same of conversations.")
@click.option("--apply", "applies", is_flag=True, help="Keep what is found.")
@options.memory_options
@options.as_json
def capture(
    turns: str | None, conversations: str | None, applies: bool, as_json: bool, **where: Any
) -> None:
    """Show which rules turns would make; --apply keeps them.

    A turn is {"user_message": ..., "tool_calls": [{"name": ...}], "tools": [...]}.

    \b
    Examples:
      toolmem rules capture --turns turns.jsonl
      toolmem rules capture --conversations chats.jsonl --apply --store memory.db
    """
    if (turns is None) == (conversations is None):
        raise click.UsageError("give one of --turns and --conversations")
    found = list(_turns(turns) if turns else _turns_of_chats(conversations or ""))
    with options.open_memory(**(where if applies else {**where, "store": ":memory:"})) as memory:
        hook = ToolMemoryCaptureHook(memory.rules, enabled=True)
        for number, given in enumerate(found):
            turn = read_turn({**given, "tools": []})
            turn.tools = schemas_of(given.get("tools"))
            turn.session_id = turn.session_id or f"turn {number}"
            _print_captured(number, turn, hook.after_turn(turn), as_json)


def _print_captured(number: int, turn: Turn, done: Captured, as_json: bool) -> None:
    if not as_json:
        for line in done.told:
            click.echo(f"{number}: {plain(line, 600)}")
        return
    names = ("tool_name", "rule", "priority", "source", "tags")
    row = {
        "turn": number,
        "rules": [{n: getattr(r, n) for n in names} for r in done.kept if not r.session],
        "session": [{n: getattr(r, n) for n in names[:2]} for r in done.kept if r.session],
        "too_long": too_long(turn.user_message),
    }
    click.echo(json.dumps(row, ensure_ascii=False))


def _turns(path: str) -> Iterator[dict[str, Any]]:
    for line in read_lines(path):
        if line.error or not isinstance(line.value, dict):
            raise RequestError(f"{path}, line {line.number}: {line.error or 'no JSON object'}")
        yield line.value


def _turns_of_chats(path: str) -> Iterator[dict[str, Any]]:
    for line in read_lines(path):
        if not is_conversation(line.value):
            raise RequestError(f"{path}, line {line.number}: expected an object with `messages`")
        body = line.value if isinstance(line.value, dict) else {"messages": line.value}
        chat = read_chat(body["messages"])
        tools = body.get("tools") or list(dict.fromkeys(call.name for call in chat.calls))
        for message in body["messages"]:
            if isinstance(message, dict) and message.get("role") == "user":
                text = text_of(message.get("content"))
                calls = [{"name": call.name} for call in chat.calls if call.context == text]
                typed = typed_text(message.get("content"))
                yield {"user_message": typed, "tool_calls": calls, "tools": tools}


def _all_rules(memory: ToolMem) -> list[ToolMemoryRule]:
    return [*memory.rules.all_rules().rules, *memory.rules.every_session_rule()]


def _alternatives(option: str, given: str | None) -> list[dict[str, Any]] | None:
    value = None if given is None else read_json(given, option)
    return value if value is None or isinstance(value, list) else [value]


def _rule_row(rule: ToolMemoryRule) -> tuple[str, ...]:
    return rule.id[:8], rule.tool_name, rule.priority, rule.effect, rule.said.by, rule.rule


def _request_row(rule: ToolMemoryRule) -> tuple[str, ...]:
    change = rule.request.after if rule.request else {}
    what = "new" if rule.status == "request" else json.dumps(change, ensure_ascii=False)
    return rule.id[:8], rule.tool_name, what, rule.rule
