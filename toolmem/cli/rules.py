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
from toolmem.cli.console import confirm, print_error, print_items, print_json, user_actor
from toolmem.errors import RequestError
from toolmem.files import replace_file
from toolmem.flow.runner import with_new_names
from toolmem.formats.chat import is_conversation, read_chat, text_of, typed_text
from toolmem.formats.files import read_json, read_lines
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import with_all_fields
from toolmem.models.rules import Effect, Priority, ToolMemoryRule
from toolmem.operations.rules import RuleOverview, State, schemas_of
from toolmem.rules import team_file
from toolmem.rules.capture import ToolMemoryCaptureHook, describe_effect
from toolmem.rules.changes import rule_digest
from toolmem.rules.identity import find_rule, folded_name
from toolmem.rules.reader import too_long
from toolmem.rules.review import Review
from toolmem.rules.turn import Captured, Turn, read_turn
from toolmem.text.display import marked, plain, visible


@click.group()
def rules() -> None:
    """Show and change what the user demands of agents."""


@rules.command("list")
@click.argument("tool", required=False)
@click.option(
    "--state",
    type=click.Choice(get_args(State)),
    default="holds",
    show_default=True,
    help="waiting: for you, with a requested change or as a whole.",
)
@click.option("--effect", type=click.Choice(get_args(Effect)), help="Those with this effect only.")
@click.option("--text", help="Those with this in their sentence or tool's name only.")
@click.option("--session", default="", help="Also what holds in this session alone.")
@options.with_memory()
@options.as_json
def list_rules(
    memory: ToolMem, tool: str | None, session: str, as_json: bool, **chosen: Any
) -> None:
    """List the rules, of one tool or of all, with how often and when last each stopped a call.

    \b
    Examples:
      toolmem rules list
      toolmem rules list send_email --json
      toolmem rules list --state ended --text bob
    """
    found = [
        each
        for each in memory.tool_rules(**chosen)
        if each.rule.session in ("", session)
        and (tool is None or folded_name(each.rule.tool_name) == folded_name(tool))
    ]
    if as_json:
        names = ("state", "stopped", "last_stopped")
        rows = [{**with_all_fields(e.rule), **{n: getattr(e, n) for n in names}} for e in found]
        print_json(rows)
        return
    columns = ("id", "tool", "priority", "effect", "said by", "stopped", "last", "rule")
    print_items(found, False, columns, _rule_row, nothing="no rule fits")


@rules.command("show")
@click.argument("rule_id")
@options.with_memory()
@options.as_json
def show_rule(memory: ToolMem, rule_id: str, as_json: bool) -> None:
    """Show a rule with its conditions and changes. An id's beginning is enough."""
    rule = find_rule(memory.rules.every_rule(), rule_id)
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
    rule = find_rule(memory.rules.every_rule(), rule_id)
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
    if as_json:
        print_json(found)
        return
    for rule in found:
        _print_request(rule)
    if not found:
        click.echo("nothing waits for you", err=True)


@rules.command("approve")
@click.argument("rule_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.with_memory()
def approve(memory: ToolMem, rule_id: str, yes: bool) -> None:
    """Show what is asked for a rule, ask, and do it.

    Without a terminal of the user nothing is shown or asked, and in a guarded store nothing done.
    """
    rule = find_rule(memory.rules.requests(), rule_id)
    if user_actor().evidence:
        _print_request(rule)
        confirm("Do this?", yes)
    after = _decided(memory, rule, "approve")
    _print_decided("done", rule, is_done=after.request is None and after.status != "request")


@rules.command("reject")
@click.argument("rule_id")
@options.with_memory()
def reject(memory: ToolMem, rule_id: str) -> None:
    """Leave a rule as it is, or drop one that was only asked for."""
    rule = find_rule(memory.rules.requests(), rule_id)
    _decided(memory, rule, "reject")
    click.echo(f"rejected: {plain(rule.rule, 300)}")


@rules.command("withdraw")
@click.argument("rule_id")
@options.with_memory()
def withdraw(memory: ToolMem, rule_id: str) -> None:
    """Let a rule hold no more; its text is kept. An id's beginning is enough.

    Exit code 1: it only waits, as no user was seen to ask for it.

    \b
    Example:
      toolmem rules withdraw 1f0c9a
    """
    after = _decided(memory, find_rule(memory.rules.every_rule(), rule_id), "withdraw")
    is_done = not after.holds_at(memory.services.clock.now())
    _print_decided("withdrawn", after, is_done=is_done)


@rules.command("restore")
@click.argument("rule_id")
@options.with_memory()
def restore(memory: ToolMem, rule_id: str) -> None:
    """Let a rule that was withdrawn, or has ended, hold again.

    It gets the end that it had before it was withdrawn, if that is still to come; else no end.

    \b
    Example:
      toolmem rules restore 1f0c9a
    """
    after = _decided(memory, find_rule(memory.rules.every_rule(), rule_id), "restore")
    until = "" if after.expires_at is None else f" ({memory.rules.until(after.expires_at)})"
    _print_decided(f"holds again{until}", after, is_done=True)


@rules.command("try")
@click.argument("rule", nargs=-1, required=True, metavar="(ID | TOOL SENTENCE)")
@click.option("--call", help="Arguments of one call as JSON, or a command line.")
@click.option(
    "--recorded",
    type=click.IntRange(1, 10_000),
    help="So many of the newest calls.  [default: 2000, or none with --call]",
)
@options.with_memory(options.config, options.store, options.workspace())
@options.as_json
def try_rule(
    memory: ToolMem, rule: tuple[str, ...], call: str | None, recorded: int | None, as_json: bool
) -> None:
    """Show what a rule would stop, and how many of these calls had worked. Nothing is changed.

    A rule that waits is tried with the change that is asked for. A sentence is read as `rules add`
    reads it.

    \b
    Examples:
      toolmem rules try 1f0c9a
      toolmem rules try @shell "Never push to main" --call "git push origin main"
      toolmem rules try send_email "Never email Bob" --recorded 500
    """
    if len(rule) > 2:
        raise click.UsageError("give the id of a rule, or a tool and a sentence in quotes")
    given: dict[str, Any] = {"tool_name": rule[0], "rule": rule[-1]}
    if len(rule) == 1:
        given = {"id": find_rule(memory.rules.every_rule(), rule[0]).id}
    is_object = call is not None and call.lstrip().startswith("{")
    value = read_json(call or "", "--call") if is_object else call
    trial = memory.tool_rule_try(**given, call=value, recorded=recorded)
    if as_json:
        print_json(trial)
        return
    click.echo(plain(describe_effect([trial.rule]) or "a reminder: no call is checked", 600))
    if trial.match:
        click.echo(f"does it mean the call: {trial.match}")
    if call is None or recorded is not None:
        stopped = "asked about" if trial.rule.effect == "ask" else "stopped"
        done = f"{len(trial.stopped):,} {stopped}, {trial.worked:,} of these had worked"
        click.echo(f"recorded calls: {trial.calls:,} tried, {done}")
    if trial.is_partial:
        click.echo("its tests of earlier calls knew of none")


def _decided(memory: ToolMem, rule: ToolMemoryRule, review: Review) -> ToolMemoryRule:
    acting = memory.acting_as(user_actor())
    return acting.tool_rule_review(rule.id, review, seen=rule_digest(rule))


def _print_decided(done: str, rule: ToolMemoryRule, *, is_done: bool) -> None:
    if not is_done:
        print_error("the store is guarded: it waits, run this in a terminal of yours")
        sys.exit(1)
    click.echo(f"{done}: {plain(rule.rule, 300)}")


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
            turn = read_turn({**with_new_names(given), "tools": []})
            turn.tools = schemas_of(given.get("tools"))
            turn.conversation_id = turn.conversation_id or f"turn {number}"
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


def _alternatives(option: str, given: str | None) -> list[dict[str, Any]] | None:
    value = None if given is None else read_json(given, option)
    return value if value is None or isinstance(value, list) else [value]


def _rule_row(found: RuleOverview) -> tuple[Any, ...]:
    rule, last = found.rule, found.last_stopped
    when = None if last is None else last.isoformat(timespec="seconds")
    about = (rule.id[:8], rule.tool_name, rule.priority, rule.effect, rule.said.by)
    return *about, found.stopped, when, rule.rule


_BINDING = ["priority", "effect", "when", "unless", "expires_at", "session", "tags", "replaces"]


def _print_request(rule: ToolMemoryRule) -> None:
    """Print all that is asked for a rule, with what is invisible in it."""
    given, asked = msgspec.to_builtins(rule), rule.request
    if asked is None:
        lines = [f"asked for: a new rule, by {rule.said.by}"]
        lines += [f"{name}: {_whole(given[name])}" for name in _BINDING if given[name]]
    else:
        words = f", in its words: {_whole(asked.words)}" if asked.words else ""
        lines = [f"asked for: a change, by {asked.by}{words}"]
        for name, value in msgspec.to_builtins(asked.after).items():
            change = f"{name}: {_whole(given[name])} -> {_whole(value)}"
            lines.append("delete it" if (name, value) == ("status", "deleted") else change)
    click.echo(f"{rule.id[:8]}  {_whole(rule.tool_name)}  {_whole(rule.rule)}")
    for line in lines:
        click.echo(f"    {line}")


def _whole(value: Any) -> str:
    """All of a value as JSON, with the code point in the place of each invisible character."""
    return marked(json.dumps(value, ensure_ascii=False)).replace("\n", "\n      ")
